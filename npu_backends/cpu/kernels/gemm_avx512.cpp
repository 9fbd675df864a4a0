// Panels times int8 rows with AVX-512 and VNNI: one register holds a whole word of a panel, 16 weight rows times 4 inputs.
//
//   vpdpbusd    dots[row] += word (unsigned bytes) * four codes of an activation row (signed), added up in fours
//   registers   dots[row], exact integers of one group;  sums[row], float32, groups added in ascending order
//
// A CPU may load no more words than it multiplies (Zen 5: two of each a cycle), so from three rows on a tile takes two panels, and each
// broadcast of four codes serves both. All tiles of a pair of panels then fetch the next pair together: memory works all the time.
//
//   panels p, p + 1 | tile 0, rows 0-3 | tile 1, rows 4-7 | .. | tile 7, rows 28-31 |      panels p + 2, p + 3 | tile 0 ..
//   fetched meanwhile, of the panels p + 2 and p + 3:
//                   | first eighth     | second eighth    | .. | last eighth        |
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

constexpr int kHighest = 5;    // rows of the largest tile
constexpr int kTileRows = 4;   // of the fastest
constexpr int kAhead = 8192;   // bytes fetched ahead in the stream of panels, for a few rows

inline __m512i broadcast4(const void* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

// dots[r] = sum over the group's 32 inputs of code * activation, times the scale of 16 inputs where there is one; a broadcast serves all
// panels of the tile
template <int K, int Rows, int Panels>
inline void dot(const uint8_t* group, int64_t panel_bytes, const Factors (&factors)[Panels], const int8_t* codes, int64_t stride,
                const GroupScale* scales, int64_t groups, __m512i (&dots)[Rows][Panels]) {
    __m512i half[Rows][Panels];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 2
        for (int p = 0; p < Panels; p++) {
            dots[r][p] = held_offset(K) != 0 ? _mm512_madd_epi16(factors[p].sums, broadcast4(scales[r * groups].sums)) : _mm512_setzero_si512();
            half[r][p] = _mm512_setzero_si512();
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kWords; i++) {
        const int word = scales_halves(K) ? i : i / 2 + i % 2 * 4;  // the two nibbles of a byte after one another
        __m512i weights[Panels];
#pragma GCC unroll 2
        for (int p = 0; p < Panels; p++) weights[p] = codes_of<K>(group + p * panel_bytes, word);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            const __m512i four = broadcast4(codes + r * stride + word * 4);
#pragma GCC unroll 2
            for (int p = 0; p < Panels; p++) {
                __m512i& sum = scales_halves(K) ? half[r][p] : dots[r][p];
                sum = _mm512_dpbusd_epi32(sum, weights[p], four);
            }
        }
        if (!scales_halves(K) || i % 4 != 3) continue;
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 2
            for (int p = 0; p < Panels; p++) {
                dots[r][p] = _mm512_add_epi32(dots[r][p], _mm512_mullo_epi32(half[r][p], factors[p].scale[i / 4]));
                half[r][p] = _mm512_setzero_si512();
            }
        }
    }
}

template <int K, int Rows, int Panels>
inline void add_group(const uint8_t* group, int64_t panel_bytes, const Factors (&factors)[Panels], const int8_t* codes, int64_t stride,
                      const GroupScale* scales, int64_t groups, __m512 (&sums)[Rows][Panels]) {
    __m512i dots[Rows][Panels];
    dot<K, Rows, Panels>(group, panel_bytes, factors, codes, stride, scales, groups, dots);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) {
        const GroupScale& s = scales[r * groups];
        const __m512 scale = _mm512_set1_ps(s.scale);
#pragma GCC unroll 2
        for (int p = 0; p < Panels; p++) {
            __m512& sum = sums[r][p];
            sum = _mm512_fmadd_ps(_mm512_mul_ps(factors[p].d, scale), _mm512_cvtepi32_ps(dots[r][p]), sum);
            if constexpr (K == kQ2_K) {
                const __m512 least = _mm512_cvtepi32_ps(_mm512_madd_epi16(factors[p].sums, broadcast4(s.sums)));
                sum = _mm512_fmadd_ps(_mm512_mul_ps(factors[p].m, scale), least, sum);
            } else if constexpr (has_minimum(K)) {
                sum = _mm512_fmadd_ps(factors[p].m, _mm512_set1_ps(s.scaled_sum), sum);
            }
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

template <int K, int Rows, int Panels>
inline void add_float_group(const uint8_t* group, int64_t panel_bytes, const int8_t* codes, int64_t stride, const GroupScale* scales,
                            int64_t groups, __m512 (&sums)[Rows][Panels]) {
    alignas(64) float x[Rows][kGroup];
    __m512 products[Rows][Panels];
    for (int r = 0; r < Rows; r++) {
        for (int p = 0; p < Panels; p++) products[r][p] = _mm512_setzero_ps();
        for (int i = 0; i < kGroup; i += 16) _mm512_store_ps(x[r] + i, signed16(reinterpret_cast<const uint8_t*>(codes + r * stride + i)));
    }
    for (int i = 0; i < kGroup; i++) {
        __m512 weights[Panels];
#pragma GCC unroll 2
        for (int p = 0; p < Panels; p++) weights[p] = floats_of<K>(group + p * panel_bytes, i);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
#pragma GCC unroll 2
            for (int p = 0; p < Panels; p++) products[r][p] = _mm512_fmadd_ps(weights[p], _mm512_set1_ps(x[r][i]), products[r][p]);
        }
    }
    for (int r = 0; r < Rows; r++) {
        for (int p = 0; p < Panels; p++) sums[r][p] = _mm512_fmadd_ps(_mm512_set1_ps(scales[r * groups].scale), products[r][p], sums[r][p]);
    }
}

// A tile of rows against one or two panels. With each group, `step` bytes are fetched from `ahead` on, for later; where a row or two wait
// for memory, those that follow in the stream.
template <int K, int Rows, int Panels>
void tile(const uint8_t* panel, const Activations& inputs, int first, const uint8_t* ahead, int step, float* out, int64_t out_stride) {
    const int groups = inputs.groups();
    const int64_t bytes = panel_bytes(K, inputs.columns);
    const int8_t* codes = inputs.row_codes(first);
    const GroupScale* scales = inputs.row_scales(first);
    __m512 sums[Rows][Panels];
    for (int r = 0; r < Rows; r++) {
        for (int p = 0; p < Panels; p++) sums[r][p] = _mm512_setzero_ps();
    }
    for (int unit = 0; unit < groups; unit += unit_groups(K)) {
        const uint8_t* header = panel;
        panel += header_bytes(K);
        for (int g = unit; g < unit + unit_groups(K); g++, panel += group_bytes(K), codes += kGroup) {
            if constexpr (Rows < kRowsForPairs) {  // one tile: whole groups, and no loop that costs a single row 5 %
                for (int line = 0; line < group_bytes(K); line += 64) {
                    _mm_prefetch(reinterpret_cast<const char*>(panel + kAhead + line), _MM_HINT_T0);
                }
            } else {
                for (int line = 0; line < step; line += 64, ahead += 64) _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
            }
            if constexpr (is_float(K)) {
                add_float_group<K, Rows, Panels>(panel, bytes, codes, inputs.columns, scales + g, groups, sums);
            } else {
                Factors factors[Panels];
#pragma GCC unroll 2
                for (int p = 0; p < Panels; p++) factors[p] = factors_of<K>(header + p * bytes, panel + p * bytes);
                add_group<K, Rows, Panels>(panel, bytes, factors, codes, inputs.columns, scales + g, groups, sums);
            }
        }
    }
    for (int r = 0; r < Rows; r++) {
        for (int p = 0; p < Panels; p++) _mm512_storeu_ps(out + r * out_stride + p * kPanel, sums[r][p]);
    }
}

// One tile of up to five rows, else tiles of nearly equal height up to four.
template <int K, int Panels>
void all_rows(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    constexpr int kLines = (Panels * group_bytes(K) + 63) / 64;  // of a group
    const int tiles = rows <= kHighest ? 1 : (rows + kTileRows - 1) / kTileRows, step = (kLines + tiles - 1) / tiles * 64;
    const uint8_t* ahead = panel + Panels * panel_bytes(K, inputs.columns);
    for (int done = 0, left = tiles; left > 0; left--) {
        const int height = (rows - done + left - 1) / left;
        float* to = out + static_cast<int64_t>(done) * out_stride;
        switch (height) {
            case 1: tile<K, 1, Panels>(panel, inputs, first + done, ahead, step, to, out_stride); break;
            case 2: tile<K, 2, Panels>(panel, inputs, first + done, ahead, step, to, out_stride); break;
            case 3: tile<K, 3, Panels>(panel, inputs, first + done, ahead, step, to, out_stride); break;
            case 4: tile<K, 4, Panels>(panel, inputs, first + done, ahead, step, to, out_stride); break;
            default: tile<K, 5, Panels>(panel, inputs, first + done, ahead, step, to, out_stride); break;
        }
        done += height;
        ahead += step * inputs.groups();
    }
}

template <int K>
void gemm(const uint8_t* panels, int count, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    const int64_t bytes = panel_bytes(K, inputs.columns);
    int p = 0;
    if (rows >= kRowsForPairs) {
        for (; p + 1 < count; p += 2) all_rows<K, 2>(panels + p * bytes, inputs, first, rows, out + p * kPanel, out_stride);
    }
    for (; p < count; p++) all_rows<K, 1>(panels + p * bytes, inputs, first, rows, out + p * kPanel, out_stride);
}

}  // namespace

// Attention over registers of sixteen; the other functions on rows are AVX2's.
#define HYBRID_GEMM(K) gemm<K>,
constexpr Kernels kAvx512Kernels = {
    "avx512",
    "avx512-3",
    {HYBRID_FOR_EVERY_KIND(HYBRID_GEMM)},
    {attend<Avx16, false>, attend<Avx16, true>},
    kAvx2RowKernels,
};
#undef HYBRID_GEMM

}  // namespace hybrid

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
