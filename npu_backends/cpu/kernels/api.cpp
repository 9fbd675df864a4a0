// The C interface over Model and Step; turns every exception into a null or an error number.
#include "api.h"

#include <algorithm>
#include <new>

#include "model.h"

namespace hybrid {

Model::Model(const HybridModelSpec& given, const Kernels& table)
    : spec(given),
      kernels(table),
      layers(given.layers, given.layers + given.num_layers),
      cache(given.num_layers, given.num_blocks, given.kv_heads, given.block_size, given.head_dim),
      pool(given.threads) {
    // the largest use is one of: a normed row; a head of q, k or v and one row of it in f16; gate and up of a group; attention's output
    const int64_t heads = static_cast<int64_t>(kRowBlock + 1) * spec.head_dim;
    const int64_t shared = static_cast<int64_t>(spec.heads / spec.kv_heads) * spec.head_dim;
    scratch_stride = std::max({static_cast<int64_t>(spec.hidden), heads, shared, static_cast<int64_t>(2 * kRowBlock * kGroup)});
    scratch_stride = (scratch_stride + 31) / 32 * 32;
    scratch.reserve(scratch_stride * spec.threads);
    own_narrow.resize(static_cast<size_t>(spec.threads));
    for (QuantisedRows& rows : own_narrow) rows.reserve(kOwnRows, spec.hidden);
}

void Model::reserve(int tokens) {
    hidden.reserve(static_cast<int64_t>(tokens) * spec.hidden);
    query.reserve(static_cast<int64_t>(tokens) * head_columns());
    if (spec.heads / spec.kv_heads * spec.head_dim % kGroup != 0) attention.reserve(static_cast<int64_t>(tokens) * head_columns());
    narrow.reserve(tokens, std::max(spec.hidden, head_columns()));
    wide.reserve(tokens, spec.ffn);
    sequence_of.reserve(tokens);
}

int64_t Model::scratch_bytes() const {
    int64_t own = 0;
    for (const QuantisedRows& rows : own_narrow) own += rows.bytes();
    return own + hidden.bytes() + query.bytes() + attention.bytes() + narrow.bytes() + wide.bytes() + sequence_of.bytes() + scratch.bytes();
}

}  // namespace hybrid

using hybrid::choose_kernels;
using hybrid::Kernels;
using hybrid::Model;

int32_t hybrid_abi(void) { return HYBRID_ABI; }

const char* hybrid_isa(const char* request) {
    const Kernels* kernels = choose_kernels(request);
    return kernels == nullptr ? nullptr : kernels->isa;
}

const char* hybrid_kernel_id(const char* isa) {
    const Kernels* kernels = choose_kernels(isa);
    return kernels == nullptr ? nullptr : kernels->id;
}

void* hybrid_open(const HybridModelSpec* spec, const char* isa) {
    const Kernels* kernels = choose_kernels(isa);
    if (kernels == nullptr) return nullptr;
    try {
        return new Model(*spec, *kernels);
    } catch (...) {
        return nullptr;
    }
}

int32_t hybrid_step(void* handle, const HybridBatch* batch, float* logits) {
    Model& model = *static_cast<Model*>(handle);
    try {
        model.reserve(batch->tokens);
    } catch (const std::bad_alloc&) {
        return 1;
    }
    for (int sequence = 0; sequence < batch->sequences; sequence++) {
        const int32_t* start = batch->query_start + sequence;
        std::fill(model.sequence_of.get() + start[0], model.sequence_of.get() + start[1], sequence);
    }
    run_step(model, *batch, logits);
    return 0;
}

HybridMemory hybrid_memory(const void* handle) {
    const Model& model = *static_cast<const Model*>(handle);
    return {model.cache.bytes(), model.scratch_bytes()};
}

void hybrid_close(void* handle) { delete static_cast<Model*>(handle); }
