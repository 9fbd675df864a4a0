// A model that is open: its sizes and weights, the KV cache, the threads, and the buffers of a step.
#pragma once
#include <memory>
#include <vector>

#include "api.h"
#include "attention_plan.h"
#include "cache.h"
#include "kernels.h"
#include "layer_plan.h"
#include "thread_pool.h"

namespace hybrid {

// Rows that one work item takes through a panel: their activations stay in the second-level cache.
constexpr int kRowBlock = 64;

// Work items are of two panels where there are at least this many panels a thread, and rows for them.
constexpr int kPanelsForPairs = 8;

// Up to this many rows, each member norms all of them for itself.
constexpr int kOwnRows = 8;

// Memory that grows and is never cleared; what a step reads it has written before.
template <class T>
class Buffer {
   public:
    T* get() const { return data_.get(); }
    int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }
    void reserve(int64_t count) {
        if (count <= count_) return;
        data_.reset();
        count_ = 0;
        data_.reset(new T[static_cast<size_t>(count)]);
        count_ = count;
    }

   private:
    std::unique_ptr<T[]> data_;
    int64_t count_ = 0;
};

struct QuantisedRows {
    Buffer<int8_t> codes;
    Buffer<GroupScale> scales;

    void reserve(int64_t rows, int64_t columns) {
        codes.reserve(rows * columns);
        scales.reserve(rows * (columns / kGroup));
    }
    Activations view(int columns) const { return {codes.get(), scales.get(), columns}; }
    int64_t bytes() const { return codes.bytes() + scales.bytes(); }
};

struct Model {
    Model(const HybridModelSpec& given, const Kernels& table);

    // Plan a step and grow the buffers for it; throws std::bad_alloc.
    void prepare(const HybridBatch& batch);
    int64_t scratch_bytes() const;
    int head_columns() const { return spec.heads * spec.head_dim; }
    int shared_columns() const { return spec.heads / spec.kv_heads * spec.head_dim; }  // of the heads that share a KV head
    bool whole_groups() const { return shared_columns() % kGroup == 0; }               // else a group spans two KV heads
    int block_vectors() const { return block_rows(spec) * (spec.heads / spec.kv_heads); }
    int64_t attended_floats() const { return static_cast<int64_t>(block_vectors()) * (spec.head_dim + 2); }
    float* part_memory(int item) const { return parts.get() + item * attended_floats(); }

    HybridModelSpec spec;
    const Kernels& kernels;
    std::vector<LayerPlan> layers;
    bool post_norms;  // of any layer
    void (*attend)(const AttentionWork& work, const Attended& out);
    Cache cache;
    ThreadPool pool;

    Buffer<int32_t> sequence_of;            // [tokens]
    Buffer<float> hidden;                   // [tokens][hidden], the residual stream
    AttentionPlan attention_plan;           // of this step
    Buffer<float> query;                    // [kv_heads][tokens][heads that share it][head_dim], rotated
    Buffer<float> parts;                    // [parts of all query blocks][kv_heads][attended_floats], where they are items of their own
    Buffer<float> attention;                // [tokens][heads * head_dim], where a group spans KV heads
    Buffer<float> projected;                // [tokens][hidden], where it is normed before it is added
    QuantisedRows narrow;                   // [tokens]: the normed stream, then attention's output
    std::vector<QuantisedRows> own_narrow;  // [threads][kOwnRows]: the normed stream of a small step
    QuantisedRows wide;                     // [tokens][ffn], inputs of `down`
    Buffer<float> scratch;                  // [threads][scratch_stride]
    int64_t scratch_stride = 0;
};

// One whole step; the buffers are large enough. hidden_states may be null.
void run_step(Model& model, const HybridBatch& batch, float* logits, float* hidden_states);

}  // namespace hybrid
