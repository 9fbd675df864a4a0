// The arithmetic that an instruction set must supply: one table of functions per ISA, filled at the end of gemm_*.cpp.
//
// What each of them owes: the result for one row depends on that row alone, to the bit. Inputs are summed in one fixed order,
// whatever the number of rows in the call, the threads, or the block size.
#pragma once
#include "panels.h"
#include "has_neon.h"

namespace hybrid {

// Some consecutive rows of one sequence, and their heads that share one KV head, against the keys at positions begin .. end - 1.
struct AttentionWork {
    const float* queries;  // [rows * heads][head_dim]
    int rows, heads, head_dim;
    int position;           // of the first row
    int window;             // positions that a row sees, its own included; 0: all before
    int begin, end;         // multiples of kSoftmaxTile in attention.h
    const uint16_t* keys;   // of this layer and KV head, see cache.h
    const uint16_t* values;
    const int32_t* blocks;  // block table of the sequence
    int block_size;
    int64_t block_stride;   // f16 elements from one block to the next
    float scale;            // multiplies the scores
    float softcap;          // then score = cap * tanh(score / cap); read by the second function of Kernels::attend only
    const AttentionWork* next = nullptr;  // what is attended to afterwards, where that is known: its keys and values are fetched meanwhile
    bool fetched = false;                 // this was the next one before
};

// Attention over some keys, not yet divided by its total: e^(score - maximum) times values, and the sum of those weights.
struct Attended {
    float* output;   // [rows * heads][head_dim]
    float* maximum;  // [rows * heads]
    float* total;    // [rows * heads]
};

// What is done to a row of floats. One list, filled from templates by row_kernels.h.
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
    // one head of one row: into += part, whose keys come after those of `into`
    void (*merge)(const Attended& into, const Attended& part, int head_dim);
    // x /= total; n a multiple of 16
    void (*divide)(float* x, int n, float total);
};

// Attention over one part of the keys; a row that sees none of them gets total 0.
using Attend = void (*)(const AttentionWork& work, const Attended& out);

// `count` panels, which follow one another, against `rows` rows from `first` on: out[r * out_stride + 0 .. 16 * count)
using Gemm = void (*)(const uint8_t* panels, int count, const Activations& inputs, int first, int rows, float* out, int out_stride);

// From this many rows on, panels are best given two at a time.
constexpr int kRowsForPairs = 3;

// The same of a function for a single panel.
template <int K, void (*One)(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride)>
void one_by_one(const uint8_t* panels, int count, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    const int64_t bytes = panel_bytes(K, inputs.columns);
    for (int p = 0; p < count; p++) One(panels + p * bytes, inputs, first, rows, out + p * kPanel, out_stride);
}

struct Kernels {
    const char* isa;
    const char* id;
    Gemm gemm[kKinds];
    Attend attend[2];  // without and with a cap on the scores
    const RowKernels& row;
};

// The tables are defined as constexpr: what had to run when the library is loaded would run in the instruction set of its file, on any CPU.

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const RowKernels kAvx2RowKernels;  // AVX-512 uses them too
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
#endif
#if HYBRID_NEON
extern const Kernels kNeonKernels;
#endif

// The best table this CPU can run, or the one that is named; null when there is none.
const Kernels* choose_kernels(const char* request);

}  // namespace hybrid
