// A whole step of the Llama architecture on a ragged batch, in one parallel run. Per layer, "|" being a barrier:
//
//   norm, quantise | q k v of a head, rotate, store K V | attention | quantise | output, + residual |
//   norm, quantise | gate and up of 32 columns, SiLU, quantise | down, + residual |
//
// Every work item writes its own rows and columns and reads only what a barrier has published, so who does it changes nothing.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "load_row.h"
#include "model.h"

namespace hybrid {

namespace {

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
            const HybridLayer& weights = m_.layers[static_cast<size_t>(layer)];
            normalise(weights.attention_norm);
            project_heads(layer, weights);
            attend(layer);
            project_onto_hidden(weights.output, m_.narrow.view(m_.head_columns()));
            normalise(weights.ffn_norm);
            gate_and_up(weights);
            project_onto_hidden(weights.down, m_.wide.view(s_.ffn));
        }
        predict();
    }

   private:
    float* hidden(int row) const { return m_.hidden.get() + static_cast<int64_t>(row) * s_.hidden; }
    int row_blocks(int rows) const { return (rows + kRowBlock - 1) / kRowBlock; }

    const float* rotary(int row) const { return s_.rotary + static_cast<int64_t>(batch_.positions[row]) * s_.head_dim; }
    const int32_t* table(int row) const { return batch_.block_tables + static_cast<int64_t>(m_.sequence_of.get()[row]) * batch_.max_blocks; }
    int block_of(int row) const { return table(row)[batch_.positions[row] / s_.block_size]; }

    // out[r * stride + 0 .. count) = row first + r of the inputs times `count` outputs of the matrix, from `column` on
    void gemm_panels(const HybridMatrix& matrix, int column, int count, const Activations& inputs, int first, int rows, float* out,
                     int stride) const {
        const int64_t panel_bytes = static_cast<int64_t>(inputs.groups()) * group_bytes(matrix.kind);
        for (int i = 0; i < count; i += kPanel) {
            k_.gemm[matrix.kind](matrix.panels + (column + i) / kPanel * panel_bytes, inputs, first, rows, out + i, stride);
        }
    }

    void embed();
    void normalise_row(int row, const float* weight, const Activations& out, int out_row);
    void normalise(const float* weight);
    void project_heads(int layer, const HybridLayer& weights);
    void store_query(int row, int head, float* values);
    void store_key(int layer, int row, int kv_head, float* values);
    void store_value(int layer, int row, int kv_head, const float* values);
    void attend(int layer);
    void project_onto_hidden(const HybridMatrix& matrix, const Activations& inputs);
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
    member_.for_each(batch_.tokens, [&](int row) { load_row(s_.embedding, batch_.token_ids[row], hidden(row)); });
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
void Step::project_heads(int layer, const HybridLayer& weights) {
    const int dim = s_.head_dim, heads = s_.heads + 2 * s_.kv_heads;
    member_.for_each(row_blocks(batch_.tokens) * heads, [&](int item) {
        const int first = item / heads * kRowBlock, rows = std::min(kRowBlock, batch_.tokens - first);
        const int head = item % heads, kv_head = (head - s_.heads) % s_.kv_heads;
        if (head < s_.heads) {
            gemm_panels(weights.query, head * dim, dim, inputs_, first, rows, scratch_, dim);
            for (int r = 0; r < rows; r++) store_query(first + r, head, scratch_ + r * dim);
        } else if (head < s_.heads + s_.kv_heads) {
            gemm_panels(weights.key, kv_head * dim, dim, inputs_, first, rows, scratch_, dim);
            for (int r = 0; r < rows; r++) store_key(layer, first + r, kv_head, scratch_ + r * dim);
        } else {
            gemm_panels(weights.value, kv_head * dim, dim, inputs_, first, rows, scratch_, dim);
            for (int r = 0; r < rows; r++) store_value(layer, first + r, kv_head, scratch_ + r * dim);
        }
    });
}

void Step::store_query(int row, int head, float* values) {
    k_.row.rotate(values, rotary(row), s_.head_dim);
    std::memcpy(m_.query.get() + static_cast<int64_t>(row) * m_.head_columns() + head * s_.head_dim, values, sizeof(float) * s_.head_dim);
}

void Step::store_key(int layer, int row, int kv_head, float* values) {
    uint16_t* half = reinterpret_cast<uint16_t*>(scratch_ + kRowBlock * s_.head_dim);
    k_.row.rotate(values, rotary(row), s_.head_dim);
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
        work.scale = 1.0f / std::sqrt(static_cast<float>(dim));
        k_.row.attend(work);
        if (whole_groups) k_.row.quantise(work.output, columns, out.codes + at, out.scales + at / kGroup);
    });
    if (whole_groups) return;
    member_.for_each(batch_.tokens, [&](int row) {
        const float* values = m_.attention.get() + static_cast<int64_t>(row) * m_.head_columns();
        k_.row.quantise(values, m_.head_columns(), out.row_codes(row), out.row_scales(row));
    });
}

// hidden += inputs times matrix. Work item: one panel for a block of rows.
void Step::project_onto_hidden(const HybridMatrix& matrix, const Activations& inputs) {
    const int panels = s_.hidden / kPanel;
    member_.for_each(row_blocks(batch_.tokens) * panels, [&](int item) {
        const int first = item / panels * kRowBlock, rows = std::min(kRowBlock, batch_.tokens - first), column = item % panels * kPanel;
        gemm_panels(matrix, column, kPanel, inputs, first, rows, scratch_, kPanel);
        for (int r = 0; r < rows; r++) {
            float* to = hidden(first + r) + column;
            for (int i = 0; i < kPanel; i++) to[i] += scratch_[r * kPanel + i];
        }
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
        k_.row.silu_multiply(scratch_, up, rows * kGroup);
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
        float* to = logits_ + static_cast<int64_t>(first) * s_.vocab + column;
        if (columns == kPanel) return gemm_panels(s_.head, column, kPanel, inputs, first, rows, to, s_.vocab);
        gemm_panels(s_.head, column, kPanel, inputs, first, rows, scratch_, kPanel);
        for (int r = 0; r < rows; r++) {
            std::memcpy(to + static_cast<int64_t>(r) * s_.vocab, scratch_ + r * kPanel, sizeof(float) * static_cast<size_t>(columns));
        }
    });
}

}  // namespace

void run_step(Model& model, const HybridBatch& batch, float* logits) {
    model.pool.run([&](Member& member) { Step(model, batch, logits, member).run(); });
}

}  // namespace hybrid
