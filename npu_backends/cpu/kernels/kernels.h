// The arithmetic that an instruction set must supply: one table of functions per ISA, filled at the end of gemm_*.cpp.
//
// What each of them owes: the result for one row depends on that row alone, to the bit. Inputs are summed in one fixed order,
// whatever the number of rows in the call, the threads, or the block size.
#pragma once
#include "panels.h"

namespace hybrid {

// One query row against the keys at positions 0 .. position of its own sequence, for the heads that share one KV head.
struct AttentionRow {
    const float* query;     // [heads][head_dim]
    float* output;          // [heads][head_dim]
    int heads, head_dim;
    int position;           // keys 0 .. position are seen
    const uint16_t* keys;   // of this layer and KV head, see cache.h
    const uint16_t* values;
    const int32_t* blocks;  // block table of the sequence
    int block_size;
    int64_t block_stride;   // f16 elements from one block to the next
    float scale;            // 1 / sqrt(head_dim)
};

// What is done to a row of floats. One list, filled from the templates of elementwise.h and attention.h by row_kernels.h.
struct RowKernels {
    // int8 codes and scales of x[0 .. n), n a multiple of 32; rounds half to even
    void (*quantise)(const float* x, int n, int8_t* codes, GroupScale* scales);
    // out = x / rms(x) * weight; n a multiple of 8
    void (*rms_norm)(const float* x, const float* weight, int n, float eps, float* out);
    // x += y; n a multiple of 8
    void (*add)(float* x, const float* y, int n);
    // turn the pairs (2i, 2i + 1) of one head by (cos, sin) pairs; pairs a multiple of 4
    void (*rotate_interleaved)(float* head, const float* cos_sin, int pairs);
    // turn the pairs (i, pairs + i) by `pairs` cosines, then as many sines; pairs a multiple of 8
    void (*rotate_halves)(float* head, const float* cos_sin, int pairs);
    // gate = activation(gate) * up, n a multiple of 8; by HybridActivation
    void (*gate_multiply[2])(float* gate, const float* up, int n);
    // x = cap * tanh(x / cap), n a multiple of 8
    void (*soft_cap)(float* x, int n, float cap);
    void (*to_f16)(const float* x, int n, uint16_t* out);
    void (*attend)(const AttentionRow& row);
};

// One panel against `rows` rows from `first` on: out[r * out_stride + 0..15]
using Gemm = void (*)(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride);

struct Kernels {
    const char* isa;
    const char* id;
    Gemm gemm[kKinds];
    RowKernels row;
};

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif

// The best table this CPU can run, or the one that is named; null when there is none.
const Kernels* choose_kernels(const char* request);

}  // namespace hybrid
