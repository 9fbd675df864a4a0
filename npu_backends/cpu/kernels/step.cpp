// A whole step of a decoder-only transformer on a ragged batch, in one parallel run. Per layer, "|" being a barrier:
//
//   norm, quantise | q k v of a head, rotate, store K V | attention, quantise | output, + residual |
//   norm, quantise | gate and up of 32 columns, activation, quantise | down, + residual |
#include "step.h"

#include "load_row.h"

namespace hybrid {

namespace {

void add_panel(float* to, const float* from) {
    for (int i = 0; i < kPanel; i++) to[i] += from[i];
}

void copy_panel(float* to, const float* from) { std::memcpy(to, from, sizeof(float) * kPanel); }

}  // namespace

void Step::run() {
    embed();
    for (int layer = 0; layer < s_.num_layers; layer++) {
        const LayerPlan& plan = m_.layers[static_cast<size_t>(layer)];
        const HybridLayer& weights = plan.weights;
        normalise(weights.attention_norm);
        project_heads(layer, plan);
        attend(layer);
        project_onto_hidden(weights.output, m_.narrow.view(m_.head_columns()), weights.attention_post_norm);
        normalise(weights.ffn_norm);
        gate_and_up(weights);
        project_onto_hidden(weights.down, m_.wide.view(s_.ffn), weights.ffn_post_norm);
    }
    predict();
}

void Step::embed() {
    member_.for_each(batch_.tokens, [&](int row) { 
        load_row(s_.embedding, batch_.token_ids[row], hidden(row));
        for (int i = 0; i < s_.hidden; i++) hidden(row)[i] *= s_.embedding_scale;
    });
}

void Step::normalise_row(int row, const float* weight, const Activations& out, int out_row) {
    k_.row.rms_norm(hidden(row), weight, s_.hidden, s_.norm_eps, scratch_);
    k_.row.quantise(scratch_, s_.hidden, out.row_codes(out_row), out.row_scales(out_row));
}

// inputs_ = quantised(norm(hidden)). A few rows are normed by every member for itself: that costs less than a barrier. Nobody writes
// `hidden` again before the barrier of the projection that reads inputs_.
void Step::normalise(const float* weight) {
    if (batch_.tokens <= kOwnRows) {
        inputs_ = m_.own_narrow[static_cast<size_t>(member_.index())].view(s_.hidden);
        for (int row = 0; row < batch_.tokens; row++) normalise_row(row, weight, inputs_, row);
        return;
    }
    inputs_ = m_.narrow.view(s_.hidden);
    member_.for_each(batch_.tokens, [&](int row) { normalise_row(row, weight, inputs_, row); });
}

// rows[r][0 .. hidden) = or += inputs times matrix. Work item: one panel for a block of rows.
void Step::project_panels(const HybridMatrix& matrix, const Activations& inputs, void (*put)(float* to, const float* from), float* rows) {
    const int panels = s_.hidden / kPanel;
    member_.for_each(row_blocks(batch_.tokens) * panels, [&](int item) {
        const int first = item / panels * kRowBlock, count = std::min(kRowBlock, batch_.tokens - first), column = item % panels * kPanel;
        gemm_panels(matrix, column, kPanel, inputs, first, count, scratch_, kPanel);
        for (int r = 0; r < count; r++) put(rows + static_cast<int64_t>(first + r) * s_.hidden + column, scratch_ + r * kPanel);
    });
}

// hidden += inputs times matrix, normed before where the network norms it.
void Step::project_onto_hidden(const HybridMatrix& matrix, const Activations& inputs, const float* post_norm) {
    if (post_norm == nullptr) return project_panels(matrix, inputs, add_panel, m_.hidden.get());
    project_panels(matrix, inputs, copy_panel, m_.projected.get());
    member_.for_each(batch_.tokens, [&](int row) {
        k_.row.rms_norm(m_.projected.get() + static_cast<int64_t>(row) * s_.hidden, post_norm, s_.hidden, s_.norm_eps, scratch_);
        k_.row.add(hidden(row), scratch_, s_.hidden);
    });
}

// wide = quantised(silu(gate) * up). Work item: the 32 columns of one group for a block of rows.
void Step::gate_and_up(const HybridLayer& weights) {
    const Activations out = m_.wide.view(s_.ffn);
    const int groups = s_.ffn / kGroup;
    member_.for_each(row_blocks(batch_.tokens) * groups, [&](int item) {
        const int first = item / groups * kRowBlock, rows = std::min(kRowBlock, batch_.tokens - first), group = item % groups;
        float* up = scratch_ + kRowBlock * kGroup;
        gemm_panels(weights.gate, group * kGroup, kGroup, inputs_, first, rows, scratch_, kGroup);
        gemm_panels(weights.up, group * kGroup, kGroup, inputs_, first, rows, up, kGroup);
        k_.row.gate_multiply[s_.activation](scratch_, up, rows * kGroup);
        for (int r = 0; r < rows; r++) {
            const int row = first + r;
            k_.row.quantise(scratch_ + r * kGroup, kGroup, out.row_codes(row) + group * kGroup, out.row_scales(row) + group);
        }
    });
}

// Logits of the rows that were asked for. Work item: one panel of the vocabulary for a block of rows; the last may be part padding.
void Step::predict() {
    const Activations inputs = m_.narrow.view(s_.hidden);
    member_.for_each(batch_.logit_rows, [&](int row) { normalise_row(batch_.logit_index[row], m_.spec.final_norm, inputs, row); });
    const int panels = (s_.vocab + kPanel - 1) / kPanel;
    member_.for_each(row_blocks(batch_.logit_rows) * panels, [&](int item) {
        const int first = item / panels * kRowBlock, rows = std::min(kRowBlock, batch_.logit_rows - first), column = item % panels * kPanel;
        const int columns = std::min(kPanel, s_.vocab - column);
        gemm_panels(s_.head, column, kPanel, inputs, first, rows, scratch_, kPanel);
        if (s_.logit_softcap > 0.0f) k_.row.soft_cap(scratch_, rows * kPanel, s_.logit_softcap);
        for (int r = 0; r < rows; r++) {
            float* to = logits_ + static_cast<int64_t>(first + r) * s_.vocab + column;
            if (columns == kPanel) copy_panel(to, scratch_ + r * kPanel);
            else std::memcpy(to, scratch_ + r * kPanel, sizeof(float) * static_cast<size_t>(columns));
        }
    });
}

void run_step(Model& model, const HybridBatch& batch, float* logits) {
    model.pool.run([&](Member& member) { Step(model, batch, logits, member).run(); });
}

}  // namespace hybrid
