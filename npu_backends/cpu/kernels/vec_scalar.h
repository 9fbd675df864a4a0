// Eight floats in plain C++, for every CPU. Compilers turn the loops into whatever vectors the target's baseline has.
#pragma once
#include "half.h"
#include "panels.h"

namespace hybrid {

struct Scalar8 {
    float lane[8];

    template <class F>
    static Scalar8 each(F f) {
        Scalar8 out;
        for (int i = 0; i < 8; i++) out.lane[i] = f(i);
        return out;
    }
    static Scalar8 all(float x) {
        return each([&](int) { return x; });
    }
    static Scalar8 load(const float* p) {
        return each([&](int i) { return p[i]; });
    }
    static Scalar8 load_half(const uint16_t* p) {
        return each([&](int i) { return half_to_float(p[i]); });
    }
    void store(float* p) const {
        for (int i = 0; i < 8; i++) p[i] = lane[i];
    }
    void store_half(uint16_t* p) const {
        for (int i = 0; i < 8; i++) p[i] = float_to_half(lane[i]);
    }
    float first() const { return lane[0]; }

    friend Scalar8 operator+(Scalar8 a, Scalar8 b) {
        return each([&](int i) { return a.lane[i] + b.lane[i]; });
    }
    friend Scalar8 operator-(Scalar8 a, Scalar8 b) {
        return each([&](int i) { return a.lane[i] - b.lane[i]; });
    }
    friend Scalar8 operator*(Scalar8 a, Scalar8 b) {
        return each([&](int i) { return a.lane[i] * b.lane[i]; });
    }
    friend Scalar8 operator/(Scalar8 a, Scalar8 b) {
        return each([&](int i) { return a.lane[i] / b.lane[i]; });
    }
    static Scalar8 multiply_add(Scalar8 a, Scalar8 b, Scalar8 c) {  // two roundings: a fused one would need libm
        return each([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
    }
    static Scalar8 maximum(Scalar8 a, Scalar8 b) {
        return each([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static Scalar8 minimum(Scalar8 a, Scalar8 b) {
        return each([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
    }
    static Scalar8 absolute(Scalar8 a) {
        return each([&](int i) { return bits_to_float(float_to_bits(a.lane[i]) & 0x7fffffffu); });
    }
    // value where x >= limit, else 0
    static Scalar8 zero_below(Scalar8 x, float limit, Scalar8 value) {
        return each([&](int i) { return x.lane[i] < limit ? 0.0f : value.lane[i]; });
    }
    // a in the lanes from <= i < to, `other` elsewhere
    static Scalar8 keep(Scalar8 a, int from, int to, float other) {
        return each([&](int i) { return from <= i && i < to ? a.lane[i] : other; });
    }
    // nearest integer, ties to even, |x| < 2^22: at 1.5 * 2^23 a float's last bit is worth one
    static Scalar8 round(Scalar8 x) {
        return each([&](int i) { return (x.lane[i] + 0x1.8p23f) - 0x1.8p23f; });
    }
    // 2^n for whole n in [-126, 127]
    static Scalar8 power_of_two(Scalar8 n) {
        return each([&](int i) { return bits_to_float((float_to_bits(n.lane[i] + 0x1.8p23f) - 0x4b400000u + 127u) << 23); });
    }
    float sum() const { return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7])); }
    float largest() const {
        float best = lane[0];
        for (int i = 1; i < 8; i++) best = lane[i] > best ? lane[i] : best;
        return best;
    }
    // (a, b) -> (a cos - b sin, b cos + a sin) for the four pairs
    static Scalar8 rotate_pairs(Scalar8 x, Scalar8 cos_sin) {
        Scalar8 out;
        for (int i = 0; i < 8; i += 2) {
            const float cosine = cos_sin.lane[i], sine = cos_sin.lane[i + 1];
            out.lane[i] = x.lane[i] * cosine - x.lane[i + 1] * sine;
            out.lane[i + 1] = x.lane[i + 1] * cosine + x.lane[i] * sine;
        }
        return out;
    }
    // 32 floats in [-127, 127] to int8, rounded half to even, and the sums of both halves
    static void to_codes(const Scalar8 (&x)[4], int8_t* codes, int16_t (&sums)[2]) {
        sums[0] = sums[1] = 0;
        for (int i = 0; i < kGroup; i++) {
            const uint32_t bits = float_to_bits(x[i / 8].lane[i % 8] + 0x1.8p23f) - 0x4b400000u;
            codes[i] = static_cast<int8_t>(bits & 0xffu);
            sums[i / 16] = static_cast<int16_t>(sums[i / 16] + codes[i]);
        }
    }
};

}  // namespace hybrid
