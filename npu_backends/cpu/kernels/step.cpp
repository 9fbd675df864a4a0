// A whole step of a decoder-only transformer on a ragged batch, in one parallel run. Per layer, "|" being a barrier:
//
//   norm, quantise | q k v of a head, rotate, store K V | attention, quantise | output, + residual |
//   norm, quantise | gate and up of 32 columns, activation, quantise | down, + residual |
#include "step.h"

#include "load_row.h"

namespace hybrid {

namespace {

void copy(float* to, const float* from, int n) { std::memcpy(to, from, sizeof(float) * static_cast<size_t>(n)); }

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

// item(first row, rows, first output, outputs up to whole panels), until all `rows` rows and `outputs` outputs were given. Work item: a block
// of rows and one panel, or two where they share the reading of the rows and enough items are left to keep every thread busy.
template <class Item>
void Step::for_each_panels(int outputs, int rows, Item item) {
    const int panels = (outputs + kPanel - 1) / kPanel, blocks = row_blocks(rows);
    const int wide = rows >= kRowsForPairs && blocks * panels >= kPanelsForPairs * s_.threads ? 2 : 1, items = (panels + wide - 1) / wide;
    member_.for_each(blocks * items, [&](int number) {
        const int first = number / items * kRowBlock, panel = number % items * wide;
        item(first, std::min(kRowBlock, rows - first), panel * kPanel, std::min(wide, panels - panel) * kPanel);
    });
}

// put(row, column, a row of `columns` results) for each of `rows` rows of inputs times matrix, `outputs` of them.
template <class Put>
void Step::for_each_product(const HybridMatrix& matrix, int outputs, const Activations& inputs, int rows, Put put) {
    for_each_panels(outputs, rows, [&](int first, int count, int column, int width) {
        gemm_panels(matrix, column, width, inputs, first, count, scratch_, width);
        for (int r = 0; r < count; r++) put(first + r, column, scratch_ + r * width, std::min(width, outputs - column));
    });
}

// rows[r][0 .. hidden) = or += inputs times matrix.
void Step::project(const HybridMatrix& matrix, const Activations& inputs, void (*put)(float* to, const float* from, int n), float* rows) {
    for_each_product(matrix, s_.hidden, inputs, batch_.tokens, [&](int row, int column, const float* result, int columns) {
        put(rows + static_cast<int64_t>(row) * s_.hidden + column, result, columns);
    });
}

// hidden += inputs times matrix, normed before where the network norms it.
void Step::project_onto_hidden(const HybridMatrix& matrix, const Activations& inputs, const float* post_norm) {
    if (post_norm == nullptr) return project(matrix, inputs, k_.row.add, m_.hidden.get());
    project(matrix, inputs, copy, m_.projected.get());
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

// Logits of the rows that were asked for, written where they belong, except that the last panel of the vocabulary may be part padding; and
// the rows that the head multiplies, where somebody asks for them.
void Step::predict() {
    const Activations inputs = m_.narrow.view(s_.hidden);
    member_.for_each(batch_.logit_rows, [&](int row) {
        normalise_row(batch_.logit_index[row], s_.final_norm, inputs, row);
        if (hidden_states_ != nullptr) copy(hidden_states_ + static_cast<int64_t>(row) * s_.hidden, scratch_, s_.hidden);
    });
    for_each_panels(s_.vocab, batch_.logit_rows, [&](int first, int count, int column, int width) {
        const int columns = std::min(width, s_.vocab - column);
        float* const logits = logits_ + static_cast<int64_t>(first) * s_.vocab + column;
        float* const out = columns == width ? logits : scratch_;
        const int stride = columns == width ? s_.vocab : width;
        gemm_panels(s_.head, column, width, inputs, first, count, out, stride);
        for (int r = 0; r < count; r++) {
            float* const row = out + static_cast<int64_t>(r) * stride;
            if (s_.logit_softcap > 0.0f) k_.row.soft_cap(row, width, s_.logit_softcap);
            if (columns < width) copy(logits + static_cast<int64_t>(r) * s_.vocab, row, columns);
        }
    });
}

void run_step(Model& model, const HybridBatch& batch, float* logits, float* hidden_states) {
    model.pool.run([&](Member& member) { Step(model, batch, logits, hidden_states, member).run(); });
}

}  // namespace hybrid
