// Panels times int8 rows with AVX-512 and VNNI: one register holds a whole word of a panel, 16 weight rows times 4 inputs.
//
//   vpdpbusd    dots[row] += word (unsigned bytes) * four codes of an activation row (signed, one broadcast from memory)
//   registers   dots[row], exact integers of one group;  sums[row], float32, groups added in ascending order
//
// Integers are exact in any order and every float operation is the one of gemm_avx2.cpp, in its order: the results are equal to the bit.
#include "gemm_avx2.h"
#include "kernels.h"

#if defined(__x86_64__)
#include "cache.h"
#include "target_avx512.h"
// after target_avx512.h, for its target:
#include "attention.h"
#include "vec_avx512.h"

namespace hybrid {

namespace {

constexpr int kTileRows = 8;
constexpr int kAhead = 2560;  // bytes fetched ahead in the stream of panels

inline __m512i load(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline __m512 halves(const uint8_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }

// dots += the unsigned bytes of `word` times the four codes at `four`, added up in fours
inline __m512i dot4(__m512i dots, __m512i word, const int8_t* four) {
    int32_t bits;
    __builtin_memcpy(&bits, four, sizeof bits);
    return _mm512_dpbusd_epi32(dots, word, _mm512_set1_epi32(bits));
}

template <int Bytes>
inline void prefetch(const uint8_t* p) {
    for (int line = 0; line < Bytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(p + line), _MM_HINT_T0);
}

template <int Rows>
inline void dot_q4_1(const uint8_t* group, const int8_t* codes, int64_t stride, const GroupScale*, int64_t, __m512i (&dots)[Rows]) {
    const __m512i low_mask = _mm512_set1_epi8(15);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) dots[r] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int word = 0; word < 4; word++) {
        const __m512i both = load(group + word * 64);
        const __m512i low = _mm512_and_si512(both, low_mask), high = _mm512_and_si512(_mm512_srli_epi16(both, 4), low_mask);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) dots[r] = dot4(dots[r], low, codes + r * stride + word * 4);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) dots[r] = dot4(dots[r], high, codes + r * stride + 16 + word * 4);
    }
}

// The unsigned side is weight + 128: the dot products start at -128 times the sum of the activation codes.
template <int Rows>
inline void dot_q8_0(const uint8_t* group, const int8_t* codes, int64_t stride, const GroupScale* scales, int64_t groups, __m512i (&dots)[Rows]) {
    const __m512i sign = _mm512_set1_epi8(-128), offset = _mm512_set1_epi16(-128);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) {
        int32_t both;
        __builtin_memcpy(&both, scales[r * groups].sums, sizeof both);
        dots[r] = _mm512_madd_epi16(_mm512_set1_epi32(both), offset);
    }
#pragma GCC unroll 8
    for (int word = 0; word < 8; word++) {
        const __m512i biased = _mm512_xor_si512(load(group + word * 64), sign);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) dots[r] = dot4(dots[r], biased, codes + r * stride + word * 4);
    }
}

template <int K, int Rows>
void tile(const uint8_t* panel, int groups, const int8_t* codes, int64_t code_stride, const GroupScale* scales, float* out,
          int64_t out_stride) {
    constexpr int kBytes = group_bytes(K), kCodes = K == kQ4_1 ? 256 : 512;
    __m512 sums[Rows];
    for (int r = 0; r < Rows; r++) sums[r] = _mm512_setzero_ps();
    for (int g = 0; g < groups; g++, panel += kBytes, codes += kGroup) {
        if (Rows < kTileRows) prefetch<kBytes>(panel + kAhead);
        __m512i dots[Rows];
        if constexpr (K == kQ4_1) dot_q4_1<Rows>(panel, codes, code_stride, scales + g, groups, dots);
        else dot_q8_0<Rows>(panel, codes, code_stride, scales + g, groups, dots);
        const __m512 d = halves(panel + kCodes);
        __m512 m;
        if constexpr (K == kQ4_1) m = halves(panel + kCodes + 32);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            const GroupScale& s = scales[r * groups + g];
            sums[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(s.scale)), _mm512_cvtepi32_ps(dots[r]), sums[r]);
            if constexpr (K == kQ4_1) sums[r] = _mm512_fmadd_ps(m, _mm512_set1_ps(s.scaled_sum), sums[r]);
        }
    }
    for (int r = 0; r < Rows; r++) _mm512_storeu_ps(out + r * out_stride, sums[r]);
}

template <int K>
void gemm(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    const int groups = inputs.groups();
    for (int r = 0; r < rows; r += kTileRows) {
        const int8_t* codes = inputs.row_codes(first + r);
        const GroupScale* scales = inputs.row_scales(first + r);
        float* to = out + static_cast<int64_t>(r) * out_stride;
        switch (rows - r) {
            case 1: tile<K, 1>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            case 2: tile<K, 2>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            case 3: tile<K, 3>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            case 4: tile<K, 4>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            case 5: tile<K, 5>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            case 6: tile<K, 6>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            case 7: tile<K, 7>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            default: tile<K, 8>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
        }
    }
}

}  // namespace

template <int K>
constexpr Gemm best() {
    if constexpr (K == kQ4_1 || K == kQ8_0) return gemm<K>;
    else return gemm_avx2<K>;
}

// Attention over registers of sixteen; the other functions on rows are AVX2's, and are there when this is made: that table is a constant.
RowKernels row_functions() {
    RowKernels row = kAvx2Kernels.row;
    row.attend[0] = attend<Avx16, false>;
    row.attend[1] = attend<Avx16, true>;
    return row;
}

#define HYBRID_GEMM(K) best<K>(),
const Kernels kAvx512Kernels = {
    "avx512",
    "avx512-3",
    {HYBRID_FOR_EVERY_KIND(HYBRID_GEMM)},
    row_functions(),
};
#undef HYBRID_GEMM

}  // namespace hybrid

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
