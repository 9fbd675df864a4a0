// Eight floats in two NEON registers; include after the target of gemm_neon.cpp. Each function is the same step as in vec_avx2.h, multiply_add rounding
// once, and maximum and minimum choosing as x86 does: the second where either is NaN.
#pragma once
#include "panels.h"

namespace hybrid {

struct Neon8 {
    float32x4_t low, high;

    static Neon8 all(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
    static Neon8 load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
    static Neon8 load_half(const uint16_t* p) {
        const float16x8_t eight = vreinterpretq_f16_u16(vld1q_u16(p));
        return {vcvt_f32_f16(vget_low_f16(eight)), vcvt_high_f32_f16(eight)};
    }
    void store(float* p) const {
        vst1q_f32(p, low);
        vst1q_f32(p + 4, high);
    }
    void store_half(uint16_t* p) const { vst1q_u16(p, vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(low), high))); }
    float first() const { return vgetq_lane_f32(low, 0); }

    static Neon8 multiply_add(Neon8 a, Neon8 b, Neon8 c) { return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)}; }
    static Neon8 maximum(Neon8 a, Neon8 b) {
        return {vbslq_f32(vcgtq_f32(a.low, b.low), a.low, b.low), vbslq_f32(vcgtq_f32(a.high, b.high), a.high, b.high)};
    }
    static Neon8 minimum(Neon8 a, Neon8 b) {
        return {vbslq_f32(vcltq_f32(a.low, b.low), a.low, b.low), vbslq_f32(vcltq_f32(a.high, b.high), a.high, b.high)};
    }
    static Neon8 absolute(Neon8 a) { return {vabsq_f32(a.low), vabsq_f32(a.high)}; }
    static Neon8 zero_below(Neon8 x, float limit, Neon8 value) {
        const float32x4_t bound = vdupq_n_f32(limit), zero = vdupq_n_f32(0.0f);
        return {vbslq_f32(vcltq_f32(x.low, bound), zero, value.low), vbslq_f32(vcltq_f32(x.high, bound), zero, value.high)};
    }
    static Neon8 keep(Neon8 a, int from, int to, float other) {
        const int32_t lanes[8] = {0, 1, 2, 3, 4, 5, 6, 7};
        const int32x4_t begin = vdupq_n_s32(from), end = vdupq_n_s32(to), first = vld1q_s32(lanes), second = vld1q_s32(lanes + 4);
        const uint32x4_t kept_low = vandq_u32(vcgeq_s32(first, begin), vcltq_s32(first, end));
        const uint32x4_t kept_high = vandq_u32(vcgeq_s32(second, begin), vcltq_s32(second, end));
        return {vbslq_f32(kept_low, a.low, vdupq_n_f32(other)), vbslq_f32(kept_high, a.high, vdupq_n_f32(other))};
    }
    static Neon8 round(Neon8 x) { return {vrndnq_f32(x.low), vrndnq_f32(x.high)}; }
    static Neon8 power_of_two(Neon8 n) { return {power4(n.low), power4(n.high)}; }
    float sum() const {
        const float32x4_t fours = vaddq_f32(low, high);
        const float32x2_t twos = vadd_f32(vget_low_f32(fours), vget_high_f32(fours));
        return vget_lane_f32(twos, 0) + vget_lane_f32(twos, 1);
    }
    float largest() const {
        float lanes[8];
        store(lanes);
        float best = lanes[0];
        for (int i = 1; i < 8; i++) best = lanes[i] > best ? lanes[i] : best;
        return best;
    }
    static Neon8 rotate_pairs(Neon8 x, Neon8 cos_sin) { return {rotate4(x.low, cos_sin.low), rotate4(x.high, cos_sin.high)}; }
    static void to_codes(const Neon8 (&x)[4], int8_t* codes, int16_t (&sums)[2]) {
        for (int half = 0; half < 2; half++) {
            const Neon8 first = x[2 * half], second = x[2 * half + 1];
            const int16x8_t a = vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(first.low)), vqmovn_s32(vcvtnq_s32_f32(first.high)));
            const int16x8_t b = vcombine_s16(vqmovn_s32(vcvtnq_s32_f32(second.low)), vqmovn_s32(vcvtnq_s32_f32(second.high)));
            vst1q_s8(codes + 16 * half, vcombine_s8(vqmovn_s16(a), vqmovn_s16(b)));
            sums[half] = vaddvq_s16(vaddq_s16(a, b));
        }
    }

   private:
    static float32x4_t power4(float32x4_t n) {
        return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127)), 23));
    }
    // (a, b) -> (a cos - b sin, b cos + a sin): minus is plus with the sign turned
    static float32x4_t rotate4(float32x4_t x, float32x4_t cos_sin) {
        const uint32_t turn[4] = {0x80000000u, 0, 0x80000000u, 0};
        const float32x4_t with_cosine = vmulq_f32(x, vtrn1q_f32(cos_sin, cos_sin));
        const float32x4_t with_sine = vmulq_f32(vrev64q_f32(x), vtrn2q_f32(cos_sin, cos_sin));
        return vaddq_f32(with_cosine, vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(with_sine), vld1q_u32(turn))));
    }
};

inline Neon8 operator+(Neon8 a, Neon8 b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
inline Neon8 operator-(Neon8 a, Neon8 b) { return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
inline Neon8 operator*(Neon8 a, Neon8 b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
inline Neon8 operator/(Neon8 a, Neon8 b) { return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }

}  // namespace hybrid
