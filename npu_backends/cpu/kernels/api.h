// The plain C interface of the native CPU kernels: what Python's ctypes sees. No exception crosses it.
//
//   hybrid_open (weights, sizes) -> handle;  hybrid_step (handle, ragged batch) -> logits, hidden states;  hybrid_close (handle)
//
// The caller has checked every index (validate.py): ids < vocab, positions < rows of the rotary tables, blocks < num_blocks.
#pragma once
#include <cstdint>

#define HYBRID_ABI 3  // changes with any struct or function below; library.py refuses another number

#define HYBRID_EXPORT __attribute__((visibility("default")))

extern "C" {

// A weight matrix [rows = outputs, columns = inputs] in panels of 16 rows (panels.h). The memory stays the caller's.
struct HybridMatrix {
    const uint8_t* panels;
    int32_t kind;  // Kind in panels.h
    int32_t rows;
    int32_t columns;
};

// How the positions of a layer turn its heads.
//
//   interleaved   x0 x1 | x2 x3 | ...             pair i is (2i, 2i + 1);  table: cos, sin of pair 0, cos, sin of pair 1, ...
//   else          x0 ... x(n-1) | xn ... x(2n-1)  pair i is (i, n + i);    table: cos of all n pairs, then sin of all n
struct HybridRotary {
    const float* table;  // [positions][2 * pairs]
    int32_t pairs;       // n, a multiple of 8; what lies behind 2n inputs of a head stays as it is
    int32_t interleaved;
};

// Null: the network has no such weights.
struct HybridLayer {
    const float* attention_norm;                        // [hidden]
    const float* ffn_norm;                              // [hidden]
    const float *query_bias, *key_bias, *value_bias;    // [heads * head_dim], or of the KV heads
    const float *query_norm, *key_norm;                 // [head_dim]
    const float *attention_post_norm, *ffn_post_norm;   // [hidden]
    HybridMatrix query, key, value, output, gate, up, down;
    HybridRotary rotary;
    int32_t window;  // positions that a query sees, its own included; 0: all
};

enum HybridActivation : int32_t { HYBRID_SILU = 0, HYBRID_GELU_TANH = 1 };

struct HybridModelSpec {
    int32_t num_layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
    int32_t num_blocks, block_size, threads;
    int32_t activation;       // HybridActivation, of the gate
    float norm_eps;
    float attention_scale;    // multiplies the scores
    float embedding_scale;
    float attention_softcap;  // scores become cap * tanh(score / cap); 0: none
    float logit_softcap;
    const HybridLayer* layers;
    const float* final_norm;  // [hidden]
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

// Bytes of HybridMatrix, HybridRotary, HybridLayer, HybridModelSpec, HybridBatch and HybridMemory, in this order: the caller compares.
HYBRID_EXPORT void hybrid_struct_bytes(int32_t bytes[6]);

// Name of the ISA chosen for `request` (one of kernels.h, or "" for the best this CPU has); null when it has not got it.
HYBRID_EXPORT const char* hybrid_isa(const char* request);

// "avx2-3": ISA and version of the arithmetic. Null for an ISA that is not there.
HYBRID_EXPORT const char* hybrid_kernel_id(const char* isa);

// Null when memory is short, a thread cannot start, or the ISA is not there.
HYBRID_EXPORT void* hybrid_open(const HybridModelSpec* spec, const char* isa);

// Run one step; logits is float32 [logit_rows][vocab], hidden_states float32 [logit_rows][hidden]: what the head multiplies, before it is
// rounded; null when nobody asks. 0, or 1 when memory is short (nothing was computed).
HYBRID_EXPORT int32_t hybrid_step(void* handle, const HybridBatch* batch, float* logits, float* hidden_states);

HYBRID_EXPORT HybridMemory hybrid_memory(const void* handle);

HYBRID_EXPORT void hybrid_close(void* handle);
}
