// A whole step of a decoder-only transformer on a ragged batch, in one parallel run. Per layer, "|" being a barrier:
//
//   norm, quantise | q k v of a head, rotate, store K V | attention | quantise | output, + residual |
//   norm, quantise | gate and up of 32 columns, SiLU, quantise | down, + residual |
//
// Every work item writes its own rows and columns and reads only what a barrier has published, so who does it changes nothing.
#include <algorithm>
#include <cstring>

#include "load_row.h"
#include "model.h"

namespace hybrid {

namespace {

void add_panel(float* to, const float* from) {
    for (int i = 0; i < kPanel; i++) to[i] += from[i];
}

void copy_panel(float* to, const float* from) { std::memcpy(to, from, sizeof(float) * kPanel); }

class Step {
   public:
    Step(Model& model, const HybridBatch& batch, float* logits, Member& member)
        : m_(model),
          s_(model.spec),
          k_(model.kernels),
          batch_(batch),
          logits_(logits),
          member_(member),
          scratch_(model.scratch.get() + member.index() * model.scratch_stride) {}

    void run() {
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

   private:
    float* hidden(int row) const { return m_.hidden.get() + static_cast<int64_t>(row) * s_.hidden; }
    int row_blocks(int rows) const { return (rows + kRowBlock - 1) / kRowBlock; }

    const int32_t* table(int row) const { return batch_.block_tables + static_cast<int64_t>(m_.sequence_of.get()[row]) * batch_.max_blocks; }
    int block_of(int row) const { return table(row)[batch_.positions[row] / s_.block_size]; }

    // out[r * stride + 0 .. count) = row first + r of the inputs times `count` outputs of the matrix, from `column` on
    void gemm_panels(const HybridMatrix& matrix, int column, int count, const Activations& inputs, int first, int rows, float* out,
                     int stride) const {
        const int64_t bytes = panel_bytes(matrix.kind, inputs.columns);
        for (int i = 0; i < count; i += kPanel) {
            k_.gemm[matrix.kind](matrix.panels + (column + i) / kPanel * bytes, inputs, first, rows, out + i, stride);
        }
    }

    void embed();
    void normalise_row(int row, const float* weight, const Activations& out, int out_row);
    void normalise(const float* weight);
    void project_heads(int layer, const LayerPlan& plan);
    void store_query(int row, int head, const float* values);
    void store_key(int layer, int row, int kv_head, const float* values);
    void store_value(int layer, int row, int kv_head, const float* values);
    void attend(int layer);
    void project_onto_hidden(const HybridMatrix& matrix, const Activations& inputs, const float* post_norm);
    void project_panels(const HybridMatrix& matrix, const Activations& inputs, void (*put)(float* to, const float* from), float* rows);
    void gate_and_up(const HybridLayer& weights);
    void predict();

    Model& m_;
    const HybridModelSpec& s_;
    const Kernels& k_;
    const HybridBatch& batch_;
    float* logits_;
    Member& member_;
    Activations inputs_{};  // of the next projection, after a norm
    float* scratch_;        // this thread's
};

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

// Work item: one head of q, k or v for a block of rows. Heads 0 .. heads - 1 are queries, then come keys, then values.
void Step::project_heads(int layer, const LayerPlan& plan) {
    const int dim = s_.head_dim, heads = s_.heads + 2 * s_.kv_heads;
    member_.for_each(row_blocks(batch_.tokens) * heads, [&](int item) {
        const int first = item / heads * kRowBlock, rows = std::min(kRowBlock, batch_.tokens - first), number = item % heads;
        const int part = number < s_.heads ? 0 : number < s_.heads + s_.kv_heads ? 1 : 2;
        const int head = part == 0 ? number : (number - s_.heads) % s_.kv_heads;
        const HybridMatrix* const matrices[] = {&plan.weights.query, &plan.weights.key, &plan.weights.value};
        const HeadSteps* const steps[] = {&plan.query, &plan.key, &plan.value};
        gemm_panels(*matrices[part], head * dim, dim, inputs_, first, rows, scratch_, dim);
        for (int r = 0; r < rows; r++) {
            float* values = scratch_ + r * dim;
            apply(*steps[part], k_.row, head, batch_.positions[first + r], values);
            if (part == 0) store_query(first + r, head, values);
            else if (part == 1) store_key(layer, first + r, head, values);
            else store_value(layer, first + r, head, values);
        }
    });
}

void Step::store_query(int row, int head, const float* values) {
    std::memcpy(m_.query.get() + static_cast<int64_t>(row) * m_.head_columns() + head * s_.head_dim, values, sizeof(float) * s_.head_dim);
}

void Step::store_key(int layer, int row, int kv_head, const float* values) {
    uint16_t* half = reinterpret_cast<uint16_t*>(scratch_ + kRowBlock * s_.head_dim);
    k_.row.to_f16(values, s_.head_dim, half);
    m_.cache.store_key(layer, kv_head, block_of(row), batch_.positions[row] % s_.block_size, half);
}

void Step::store_value(int layer, int row, int kv_head, const float* values) {
    k_.row.to_f16(values, s_.head_dim, m_.cache.value_at(layer, kv_head, block_of(row), batch_.positions[row] % s_.block_size));
}

// Work item: one row and KV head, with the query heads that share it.
void Step::attend(int layer) {
    const int dim = s_.head_dim, shared = s_.heads / s_.kv_heads, columns = shared * dim;
    const bool whole_groups = columns % kGroup == 0;  // else a group spans two work items
    const Activations out = m_.narrow.view(m_.head_columns());
    member_.for_each(batch_.tokens * s_.kv_heads, [&](int item) {
        const int row = item / s_.kv_heads, kv_head = item % s_.kv_heads;
        const int64_t at = static_cast<int64_t>(row) * m_.head_columns() + kv_head * columns;
        AttentionRow work;
        work.query = m_.query.get() + at;
        work.output = whole_groups ? scratch_ : m_.attention.get() + at;
        work.heads = shared;
        work.head_dim = dim;
        work.position = batch_.positions[row];
        work.keys = m_.cache.keys(layer, kv_head);
        work.values = m_.cache.values(layer, kv_head);
        work.blocks = table(row);
        work.block_size = s_.block_size;
        work.block_stride = m_.cache.block_stride();
        work.scale = s_.attention_scale;
        k_.row.attend(work);
        if (whole_groups) k_.row.quantise(work.output, columns, out.codes + at, out.scales + at / kGroup);
    });
    if (whole_groups) return;
    member_.for_each(batch_.tokens, [&](int row) {
        const float* values = m_.attention.get() + static_cast<int64_t>(row) * m_.head_columns();
        k_.row.quantise(values, m_.head_columns(), out.row_codes(row), out.row_scales(row));
    });
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

}  // namespace

void run_step(Model& model, const HybridBatch& batch, float* logits) {
    model.pool.run([&](Member& member) { Step(model, batch, logits, member).run(); });
}

}  // namespace hybrid
