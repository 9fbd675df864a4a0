// The plain C interface of the native CPU kernels: what Python's ctypes sees. No exception crosses it.
//
//   hybrid_open (weights, sizes) -> handle;  hybrid_step (handle, ragged batch) -> logits;  hybrid_close (handle)
//
// The caller has checked every index (validate.py): ids < vocab, positions < max_positions, blocks < num_blocks.
#pragma once
#include <cstdint>

#define HYBRID_ABI 1  // changes with any struct below; library.py refuses another number

#define HYBRID_EXPORT __attribute__((visibility("default")))

extern "C" {

// A weight matrix [rows = outputs, columns = inputs] in panels of 16 rows (panels.h). The memory stays the caller's.
struct HybridMatrix {
    const uint8_t* panels;
    int32_t kind;  // Kind in panels.h
    int32_t rows;
    int32_t columns;
};

struct HybridLayer {
    const float* attention_norm;  // [hidden]
    const float* ffn_norm;        // [hidden]
    HybridMatrix query, key, value, output, gate, up, down;
};

struct HybridModelSpec {
    int32_t num_layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    int32_t num_blocks, block_size, max_positions, threads;
    float norm_eps;
    const HybridLayer* layers;
    const float* final_norm;  // [hidden]
    const float* rotary;      // [max_positions][head_dim / 2] pairs (cos, sin)
    HybridMatrix embedding;   // [vocab, hidden]
    HybridMatrix head;        // [vocab, hidden]; the same panels when tied
};

struct HybridBatch {
    int32_t tokens, sequences, max_blocks, logit_rows;
    const int32_t* token_ids;     // [tokens]
    const int32_t* positions;     // [tokens]
    const int32_t* query_start;   // [sequences + 1]
    const int32_t* block_tables;  // [sequences][max_blocks]
    const int32_t* logit_index;   // [logit_rows], indices into the tokens
};

struct HybridMemory {
    int64_t kv, scratch;  // bytes
};

HYBRID_EXPORT int32_t hybrid_abi(void);

// Name of the ISA chosen for `request` ("scalar", "avx2", or "" for the best this CPU has); null when it has not got it.
HYBRID_EXPORT const char* hybrid_isa(const char* request);

// "avx2-1": ISA and version of the arithmetic. Null for an ISA that is not there.
HYBRID_EXPORT const char* hybrid_kernel_id(const char* isa);

// Null when memory is short, a thread cannot start, or the ISA is not there.
HYBRID_EXPORT void* hybrid_open(const HybridModelSpec* spec, const char* isa);

// Run one step; logits is float32 [logit_rows][vocab]. 0, or 1 when memory is short (nothing was computed).
HYBRID_EXPORT int32_t hybrid_step(void* handle, const HybridBatch* batch, float* logits);

HYBRID_EXPORT HybridMemory hybrid_memory(const void* handle);

HYBRID_EXPORT void hybrid_close(void* handle);
}
