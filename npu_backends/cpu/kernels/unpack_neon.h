// Codes and scales of a group of a panel in NEON registers, four rows in each: `quad` 0 .. 3. Include after the target of gemm_neon.cpp.
#pragma once
#include "panels.h"

namespace hybrid {

namespace {

inline float32x4_t halves4(const uint8_t* p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }
inline int32x4_t signed4(const uint8_t* p) {
    int8_t bytes[8] = {};
    __builtin_memcpy(bytes, p, 4);
    return vmovl_s16(vget_low_s16(vmovl_s8(vld1_s8(bytes))));
}
inline float32x4_t unsigned4(const uint8_t* p) { return vcvtq_f32_s32(vandq_s32(signed4(p), vdupq_n_s32(255))); }

// codes | bits `from`.. of every byte of the plane moved to `to`.., under the mask.
inline uint8x16_t with_bits(uint8x16_t codes, const uint8_t* plane, int from, int to, int mask) {
    const uint8x16_t moved = vshlq_u8(vld1q_u8(plane), vdupq_n_s8(static_cast<int8_t>(to - from)));
    return vorrq_u8(codes, vandq_u8(moved, vdupq_n_u8(static_cast<uint8_t>(mask << to))));
}

// The codes of four inputs and four rows: with their offset still in them, signed where the kind's are.
template <int K>
inline int8x16_t codes_of(const uint8_t* group, int word, int quad) {
    constexpr int kPlanes = code_bytes(K), kLow = kPlanes & kNibbles, kTwoBits = kLow == 0 ? 0 : 4;
    const uint8_t* at = group + 16 * quad;
    if constexpr (kPlanes == kBytes) return vreinterpretq_s8_u8(vld1q_u8(at + word * 64));
    uint8x16_t codes = vdupq_n_u8(0);
    if constexpr (kLow != 0) codes = with_bits(codes, at + word % 4 * 64, word / 4 * 4, 0, 15);
    if constexpr (has_book(K)) return vqtbl1q_s8(vld1q_s8(kCodebook), codes);
    if constexpr ((kPlanes & kTwos) != 0) codes = with_bits(codes, at + kLow + word / 4 * 64, word % 4 * 2, kTwoBits, 3);
    if constexpr ((kPlanes & kOnes) != 0) codes = with_bits(codes, at + kPlanes - kOnes, word, kLow == 0 ? 2 : 4, 1);
    return vreinterpretq_s8_u8(codes);
}

// What the dot products of a group are multiplied with, for four rows.
struct Factors {
    float32x4_t d;         // kinds whose 16 inputs have a scale: d alone
    float32x4_t m;         // minimum; -dmin alone for Q2_K
    int32x4_t scale[2];    // of 16 inputs
    int32x4_t sums[2];     // multiply the sums of the activations' halves: the offset with its scale; the minima for Q2_K
};

template <int K>
inline Factors factors_of(const uint8_t* header, const uint8_t* group, int quad) {
    const uint8_t* fields = group + code_bytes(K);
    Factors f;
    f.d = halves4((kLayouts[K].header == 0 ? fields : header) + 8 * quad);
    f.m = vdupq_n_f32(0.0f);
    f.scale[0] = f.scale[1] = vdupq_n_s32(1);
    f.sums[0] = f.sums[1] = vdupq_n_s32(code_offset(K));
    if constexpr (K == kQ4_1 || K == kQ5_1) f.m = halves4(fields + 32 + 8 * quad);
    if constexpr (K == kIQ4_XS) f.d = vmulq_f32(f.d, vcvtq_f32_s32(signed4(fields + 4 * quad)));
    if constexpr (K == kQ4_K || K == kQ5_K) {
        f.d = vmulq_f32(f.d, unsigned4(fields + 4 * quad));
        f.m = vnegq_f32(vmulq_f32(halves4(header + 32 + 8 * quad), unsigned4(fields + 16 + 4 * quad)));
    }
    if constexpr (scales_halves(K)) {
        const int16x8_t pairs = vmovl_s8(vreinterpret_s8_u8(vld1_u8(fields + 8 * quad)));  // both halves of four rows
        const int32x4_t first = vmovl_s16(vget_low_s16(vuzp1q_s16(pairs, pairs))), second = vmovl_s16(vget_low_s16(vuzp2q_s16(pairs, pairs)));
        f.scale[0] = first;
        f.scale[1] = second;
        if constexpr (K == kQ2_K) {
            const int32x4_t nibble = vdupq_n_s32(15);
            f.m = vnegq_f32(halves4(header + 32 + 8 * quad));
            f.scale[0] = vandq_s32(first, nibble);
            f.scale[1] = vandq_s32(second, nibble);
            f.sums[0] = vandq_s32(vshrq_n_s32(first, 4), nibble);
            f.sums[1] = vandq_s32(vshrq_n_s32(second, 4), nibble);
        } else {
            f.sums[0] = vmulq_n_s32(first, code_offset(K));
            f.sums[1] = vmulq_n_s32(second, code_offset(K));
        }
    }
    return f;
}

}  // namespace

}  // namespace hybrid
