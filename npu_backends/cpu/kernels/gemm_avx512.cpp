// Panels times int8 rows with AVX-512 and VNNI: one register holds a whole word of a panel, 16 weight rows times 4 inputs.
//
//   vpdpbusd    dots[row] += word (unsigned bytes) * four codes of an activation row (signed), added up in fours
//   registers   dots[row], exact integers of one group;  sums[row], float32, groups added in ascending order
//
// Integers are exact in any order, and every float operation is the one of gemm_avx2.cpp, in its order: the results are equal to the bit.
#include "kernels.h"

#if defined(__x86_64__)
#include "cache.h"
#include "target_avx512.h"
// after target_avx512.h, for its target:
#include "attention.h"
#include "unpack_avx512.h"
#include "vec_avx512.h"

namespace hybrid {

namespace {

constexpr int kTileRows = 8;
constexpr int kAhead = 8192;  // bytes fetched ahead in the stream of panels, by the first tile

inline __m512i broadcast4(const void* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

template <int Bytes>
inline void prefetch(const uint8_t* p) {
    for (int line = 0; line < Bytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(p + line), _MM_HINT_T0);
}

// dots[r] = sum over the group's 32 inputs of code * activation, times the scale of 16 inputs where there is one
template <int K, int Rows>
inline void dot(const uint8_t* group, const Factors& factors, const int8_t* codes, int64_t stride, const GroupScale* scales, int64_t groups,
                __m512i (&dots)[Rows]) {
    __m512i half[Rows];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) {
        dots[r] = held_offset(K) != 0 ? _mm512_madd_epi16(factors.sums, broadcast4(scales[r * groups].sums)) : _mm512_setzero_si512();
        half[r] = _mm512_setzero_si512();
    }
#pragma GCC unroll 8
    for (int i = 0; i < kWords; i++) {
        const int word = scales_halves(K) ? i : i / 2 + i % 2 * 4;  // the two nibbles of a byte after one another
        const __m512i weights = codes_of<K>(group, word);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            __m512i& sum = scales_halves(K) ? half[r] : dots[r];
            sum = _mm512_dpbusd_epi32(sum, weights, broadcast4(codes + r * stride + word * 4));
        }
        if (!scales_halves(K) || i % 4 != 3) continue;
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            dots[r] = _mm512_add_epi32(dots[r], _mm512_mullo_epi32(half[r], factors.scale[i / 4]));
            half[r] = _mm512_setzero_si512();
        }
    }
}

template <int K, int Rows>
inline void add_group(const uint8_t* group, const Factors& factors, const int8_t* codes, int64_t stride, const GroupScale* scales,
                      int64_t groups, __m512 (&sums)[Rows]) {
    __m512i dots[Rows];
    dot<K, Rows>(group, factors, codes, stride, scales, groups, dots);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) {
        const GroupScale& s = scales[r * groups];
        const __m512 scale = _mm512_set1_ps(s.scale);
        sums[r] = _mm512_fmadd_ps(_mm512_mul_ps(factors.d, scale), _mm512_cvtepi32_ps(dots[r]), sums[r]);
        if constexpr (K == kQ2_K) {
            const __m512 least = _mm512_cvtepi32_ps(_mm512_madd_epi16(factors.sums, broadcast4(s.sums)));
            sums[r] = _mm512_fmadd_ps(_mm512_mul_ps(factors.m, scale), least, sums[r]);
        } else if constexpr (has_minimum(K)) {
            sums[r] = _mm512_fmadd_ps(factors.m, _mm512_set1_ps(s.scaled_sum), sums[r]);
        }
    }
}

// Float weights of sixteen rows for one input.
template <int K>
inline __m512 floats_of(const uint8_t* group, int input) {
    const int at = input * kPanel;
    if constexpr (K == kF32) return _mm512_loadu_ps(group + 4 * at);
    if constexpr (K == kF16) return halves16(group + 2 * at);
    const __m256i sixteen = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group + 2 * at));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(sixteen), 16));
}

template <int K, int Rows>
inline void add_float_group(const uint8_t* group, const int8_t* codes, int64_t stride, const GroupScale* scales, int64_t groups,
                            __m512 (&sums)[Rows]) {
    alignas(64) float x[Rows][kGroup];
    __m512 products[Rows];
    for (int r = 0; r < Rows; r++) {
        products[r] = _mm512_setzero_ps();
        for (int i = 0; i < kGroup; i += 16) _mm512_store_ps(x[r] + i, signed16(reinterpret_cast<const uint8_t*>(codes + r * stride + i)));
    }
    for (int i = 0; i < kGroup; i++) {
        const __m512 weights = floats_of<K>(group, i);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) products[r] = _mm512_fmadd_ps(weights, _mm512_set1_ps(x[r][i]), products[r]);
    }
    for (int r = 0; r < Rows; r++) sums[r] = _mm512_fmadd_ps(_mm512_set1_ps(scales[r * groups].scale), products[r], sums[r]);
}

// A tile of rows against one panel; the stream of panels is fetched `ahead` bytes on, where that is not 0.
template <int K, int Rows>
void tile(const uint8_t* panel, const Activations& inputs, int first, int ahead, float* out, int64_t out_stride) {
    const int groups = inputs.groups();
    const int8_t* codes = inputs.row_codes(first);
    const GroupScale* scales = inputs.row_scales(first);
    __m512 sums[Rows];
    for (int r = 0; r < Rows; r++) sums[r] = _mm512_setzero_ps();
    for (int unit = 0; unit < groups; unit += unit_groups(K)) {
        const uint8_t* header = panel;
        panel += header_bytes(K);
        for (int g = unit; g < unit + unit_groups(K); g++, panel += group_bytes(K), codes += kGroup) {
            if (ahead != 0) prefetch<group_bytes(K)>(panel + ahead);
            if constexpr (is_float(K)) add_float_group<K, Rows>(panel, codes, inputs.columns, scales + g, groups, sums);
            else add_group<K, Rows>(panel, factors_of<K>(header, panel), codes, inputs.columns, scales + g, groups, sums);
        }
    }
    for (int r = 0; r < Rows; r++) _mm512_storeu_ps(out + r * out_stride, sums[r]);
}

// One tile of up to eight rows, else tiles of nearly equal height up to seven: eight are a little short of address registers, and a single
// row left over would cost half a tile.
template <int K>
void gemm(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    for (int done = 0, tiles = rows <= kTileRows ? 1 : (rows + kTileRows - 2) / (kTileRows - 1); tiles > 0; tiles--) {
        const int height = (rows - done + tiles - 1) / tiles, ahead = done == 0 ? kAhead : 0;
        float* to = out + static_cast<int64_t>(done) * out_stride;
        switch (height) {
            case 1: tile<K, 1>(panel, inputs, first + done, ahead, to, out_stride); break;
            case 2: tile<K, 2>(panel, inputs, first + done, ahead, to, out_stride); break;
            case 3: tile<K, 3>(panel, inputs, first + done, ahead, to, out_stride); break;
            case 4: tile<K, 4>(panel, inputs, first + done, ahead, to, out_stride); break;
            case 5: tile<K, 5>(panel, inputs, first + done, ahead, to, out_stride); break;
            case 6: tile<K, 6>(panel, inputs, first + done, ahead, to, out_stride); break;
            case 7: tile<K, 7>(panel, inputs, first + done, ahead, to, out_stride); break;
            default: tile<K, 8>(panel, inputs, first + done, ahead, to, out_stride); break;
        }
        done += height;
    }
}

RowKernels row_functions() {
    RowKernels row = kAvx2Kernels.row;
    row.attend[0] = attend<Avx16, false>;
    row.attend[1] = attend<Avx16, true>;
    return row;
}

}  // namespace

// Attention over registers of sixteen; the other functions on rows are AVX2's, and are there when this is made: that table is a constant.
#define HYBRID_GEMM(K) gemm<K>,
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
