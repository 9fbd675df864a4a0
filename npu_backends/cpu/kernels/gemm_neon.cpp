// Panels times int8 rows with NEON's dot products: a register holds four weight rows times four inputs, a quarter of a panel's word.
//
//   sdot        dots[row][quad] += four rows of a word (signed bytes) * four codes of an activation row, added up in fours
//   registers   dots[row][quad], exact integers of one group;  sums[row][quad], float32, groups added in ascending order
//
// Every float operation is the one of gemm_avx2.cpp, in its order, a multiply-add rounding once: the results are equal to the bit.
#include "kernels.h"

#if HYBRID_NEON
#include <arm_neon.h>

#include "cache.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("dotprod"))), apply_to = function)
#else
#pragma GCC target("arch=armv8.2-a+dotprod")
#endif
// after the target, for it:
#include "row_kernels.h"
#include "unpack_neon.h"
#include "vec_neon.h"

namespace hybrid {

namespace {

constexpr int kTileRows = 4;
constexpr int kQuads = 4;     // of rows in a panel
constexpr int kAhead = 2560;  // bytes fetched ahead in the stream of panels, by the first tile

template <int Bytes>
inline void prefetch(const uint8_t* p) {
    for (int line = 0; line < Bytes; line += 64) __builtin_prefetch(p + line);
}

inline int8x16_t four_times(const int8_t* four) {
    int32_t bits;
    __builtin_memcpy(&bits, four, sizeof bits);
    return vreinterpretq_s8_s32(vdupq_n_s32(bits));
}

// dots[r][quad] = sum over `words` words of code * activation
template <int K, int Rows>
inline void dot(const uint8_t* group, int first, int words, const int8_t* codes, int64_t stride, int32x4_t (&dots)[Rows][kQuads]) {
    for (int r = 0; r < Rows; r++) {
        for (int quad = 0; quad < kQuads; quad++) dots[r][quad] = vdupq_n_s32(0);
    }
#pragma GCC unroll 8
    for (int word = first; word < first + words; word++) {
        int8x16_t weights[kQuads];
        for (int quad = 0; quad < kQuads; quad++) weights[quad] = codes_of<K>(group, word, quad);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; r++) {
            const int8x16_t x = four_times(codes + r * stride + word * 4);
#pragma GCC unroll 4
            for (int quad = 0; quad < kQuads; quad++) dots[r][quad] = vdotq_s32(dots[r][quad], weights[quad], x);
        }
    }
}

template <int K, int Rows>
inline void add_group(const uint8_t* header, const uint8_t* group, const int8_t* codes, int64_t stride, const GroupScale* scales,
                      int64_t groups, float32x4_t (&sums)[Rows][kQuads]) {
    int32x4_t dots[Rows][kQuads], second[Rows][kQuads];
    dot<K, Rows>(group, 0, scales_halves(K) ? 4 : 8, codes, stride, dots);
    if constexpr (scales_halves(K)) dot<K, Rows>(group, 4, 4, codes, stride, second);
    for (int quad = 0; quad < kQuads; quad++) {
        const Factors factors = factors_of<K>(header, group, quad);
        for (int r = 0; r < Rows; r++) {
            const GroupScale& s = scales[r * groups];
            int32x4_t whole = dots[r][quad];
            if constexpr (scales_halves(K)) whole = vmlaq_s32(vmulq_s32(whole, factors.scale[0]), second[r][quad], factors.scale[1]);
            if constexpr (code_offset(K) != 0) {
                whole = vmlsq_n_s32(vmlsq_n_s32(whole, factors.sums[0], s.sums[0]), factors.sums[1], s.sums[1]);
            }
            float32x4_t& sum = sums[r][quad];
            sum = vfmaq_f32(sum, vmulq_n_f32(factors.d, s.scale), vcvtq_f32_s32(whole));
            if constexpr (K == kQ2_K) {
                const int32x4_t least = vmlaq_n_s32(vmulq_n_s32(factors.sums[0], s.sums[0]), factors.sums[1], s.sums[1]);
                sum = vfmaq_f32(sum, vmulq_n_f32(factors.m, s.scale), vcvtq_f32_s32(least));
            } else if constexpr (has_minimum(K)) {
                sum = vfmaq_n_f32(sum, factors.m, s.scaled_sum);
            }
        }
    }
}

// Float weights of four rows for one input.
template <int K>
inline float32x4_t floats_of(const uint8_t* group, int input, int quad) {
    const int at = input * kPanel + 4 * quad;
    if constexpr (K == kF32) return vreinterpretq_f32_u8(vld1q_u8(group + 4 * at));
    if constexpr (K == kF16) return halves4(group + 2 * at);
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(group + 2 * at)), 16));
}

template <int K, int Rows>
inline void add_float_group(const uint8_t* group, const int8_t* codes, int64_t stride, const GroupScale* scales, int64_t groups,
                            float32x4_t (&sums)[Rows][kQuads]) {
    float32x4_t products[Rows][kQuads];
    for (int r = 0; r < Rows; r++) {
        for (int quad = 0; quad < kQuads; quad++) products[r][quad] = vdupq_n_f32(0.0f);
    }
    for (int i = 0; i < kGroup; i++) {
        for (int quad = 0; quad < kQuads; quad++) {
            const float32x4_t weights = floats_of<K>(group, i, quad);
            for (int r = 0; r < Rows; r++) {
                products[r][quad] = vfmaq_n_f32(products[r][quad], weights, static_cast<float>(codes[r * stride + i]));
            }
        }
    }
    for (int r = 0; r < Rows; r++) {
        for (int quad = 0; quad < kQuads; quad++) sums[r][quad] = vfmaq_n_f32(sums[r][quad], products[r][quad], scales[r * groups].scale);
    }
}

// A tile of rows against one panel; the stream of panels is fetched `ahead` bytes on, where that is not 0.
template <int K, int Rows>
void tile(const uint8_t* panel, const Activations& inputs, int first, int ahead, float* out, int64_t out_stride) {
    const int groups = inputs.groups();
    const int8_t* codes = inputs.row_codes(first);
    const GroupScale* scales = inputs.row_scales(first);
    float32x4_t sums[Rows][kQuads];
    for (int r = 0; r < Rows; r++) {
        for (int quad = 0; quad < kQuads; quad++) sums[r][quad] = vdupq_n_f32(0.0f);
    }
    for (int unit = 0; unit < groups; unit += unit_groups(K)) {
        const uint8_t* header = panel;
        panel += header_bytes(K);
        for (int g = unit; g < unit + unit_groups(K); g++, panel += group_bytes(K), codes += kGroup) {
            if (ahead != 0) prefetch<group_bytes(K)>(panel + ahead);
            if constexpr (is_float(K)) add_float_group<K, Rows>(panel, codes, inputs.columns, scales + g, groups, sums);
            else add_group<K, Rows>(header, panel, codes, inputs.columns, scales + g, groups, sums);
        }
    }
    for (int r = 0; r < Rows; r++) {
        for (int quad = 0; quad < kQuads; quad++) vst1q_f32(out + r * out_stride + 4 * quad, sums[r][quad]);
    }
}

template <int K>
void gemm(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    for (int done = 0, tiles = (rows + kTileRows - 1) / kTileRows; tiles > 0; tiles--) {
        const int height = (rows - done + tiles - 1) / tiles, ahead = done == 0 ? kAhead : 0;
        float* to = out + static_cast<int64_t>(done) * out_stride;
        switch (height) {
            case 1: tile<K, 1>(panel, inputs, first + done, ahead, to, out_stride); break;
            case 2: tile<K, 2>(panel, inputs, first + done, ahead, to, out_stride); break;
            case 3: tile<K, 3>(panel, inputs, first + done, ahead, to, out_stride); break;
            default: tile<K, 4>(panel, inputs, first + done, ahead, to, out_stride); break;
        }
        done += height;
    }
}

constexpr RowKernels kRowKernels = row_kernels<Neon8>();

}  // namespace

#define HYBRID_GEMM(K) one_by_one<K, gemm<K>>,
constexpr Kernels kNeonKernels = {
    "neon",
    "neon-3",
    {HYBRID_FOR_EVERY_KIND(HYBRID_GEMM)},
    {attend<Pair<Neon8>, false>, attend<Pair<Neon8>, true>},
    kRowKernels,
};
#undef HYBRID_GEMM

}  // namespace hybrid

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
