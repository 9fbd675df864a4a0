// One step as one member of the team computes it: step.cpp, and step_attention.cpp for what mixes positions.
//
// Every work item writes its own rows and columns and reads only what a barrier has published, so who does it changes nothing.
#pragma once
#include <algorithm>
#include <cstring>

#include "model.h"

namespace hybrid {

class Step {
   public:
    Step(Model& model, const HybridBatch& batch, float* logits, float* hidden_states, Member& member)
        : m_(model),
          s_(model.spec),
          k_(model.kernels),
          batch_(batch),
          logits_(logits),
          hidden_states_(hidden_states),
          member_(member),
          scratch_(model.scratch.get() + member.index() * model.scratch_stride) {}

    void run();

   private:
    float* hidden(int row) const { return m_.hidden.get() + static_cast<int64_t>(row) * s_.hidden; }
    static int row_blocks(int rows) { return (rows + kRowBlock - 1) / kRowBlock; }

    const int32_t* table(int row) const { return batch_.block_tables + static_cast<int64_t>(m_.sequence_of.get()[row]) * batch_.max_blocks; }
    int block_of(int row) const { return table(row)[batch_.positions[row] / s_.block_size]; }

    // out[r * stride + 0 .. count) = row first + r of the inputs times `count` outputs of the matrix, from `column` on
    void gemm_panels(const HybridMatrix& matrix, int column, int count, const Activations& inputs, int first, int rows, float* out,
                     int stride) const {
        const uint8_t* panels = matrix.panels + column / kPanel * panel_bytes(matrix.kind, inputs.columns);
        k_.gemm[matrix.kind](panels, count / kPanel, inputs, first, rows, out, stride);
    }

    void embed();
    void normalise_row(int row, const float* weight, const Activations& out, int out_row);
    void normalise(const float* weight);
    void project_onto_hidden(const HybridMatrix& matrix, const Activations& inputs, const float* post_norm);
    template <class Item>
    void for_each_panels(int outputs, int rows, Item item);
    template <class Put>
    void for_each_product(const HybridMatrix& matrix, int outputs, const Activations& inputs, int rows, Put put);
    void project(const HybridMatrix& matrix, const Activations& inputs, void (*put)(float* to, const float* from, int n), float* rows);
    void gate_and_up(const HybridLayer& weights);
    void predict();
    // step_attention.cpp
    void project_heads(int layer, const LayerPlan& plan);
    void store_query(int row, int head, const float* values);
    void store_key(int layer, int row, int kv_head, const float* values);
    void store_value(int layer, int row, int kv_head, const float* values);
    void attend(int layer);
    void attend_part(int layer, int item, const QueryBlock& block, int kv_head, int part, const Attended& out);
    const QueryBlock& block_of_item(int item) const {
        const std::vector<QueryBlock>& blocks = m_.attention_plan.blocks;
        return blocks[blocks.size() - 1 - static_cast<size_t>(item / s_.kv_heads)];
    }
    AttentionWork attention_work(int layer, const QueryBlock& block, int kv_head, int part) const;
    void take_part(int layer, const QueryBlock& block, int part, const Attended& from, const Attended& into);
    void finish_heads(const QueryBlock& block, int kv_head, const Attended& attended);
    Attended attended_at(float* memory) const;
    int first_part_seen(int layer, int position) const { return m_.layers[static_cast<size_t>(layer)].first_seen(position) / kPart; }
    float* query_at(int row, int kv_head) const {
        return m_.query.get() + (static_cast<int64_t>(kv_head) * batch_.tokens + row) * m_.shared_columns();
    }

    Model& m_;
    const HybridModelSpec& s_;
    const Kernels& k_;
    const HybridBatch& batch_;
    float* logits_;
    float* hidden_states_;  // of the rows of the logits, or null
    Member& member_;
    Activations inputs_{};  // of the next projection, after a norm
    float* scratch_;        // this thread's
};

}  // namespace hybrid
