// Norm, rotation, activation and quantisation of one row, written once over a type of eight floats (vec_*.h).
#pragma once
#include "panels.h"

namespace hybrid {

// e^x to about 1 ulp for x in [-87, 88]; 0 below, e^88 above. Ours, since a library's may differ from CPU to CPU.
template <class F8>
inline F8 exponential(F8 x) {
    const F8 bounded = F8::minimum(F8::all(88.0f), F8::maximum(F8::all(-87.0f), x));  // a NaN is the second operand, and stays
    const F8 n = F8::round(bounded * F8::all(0x1.715476p+0f));               // 1 / ln 2
    F8 r = F8::multiply_add(n, F8::all(-0x1.62e4p-1f), bounded);             // ln 2 in two parts, the first exact times n
    r = F8::multiply_add(n, F8::all(-0x1.7f7d1cp-20f), r);                   // |r| <= ln 2 / 2
    F8 p = F8::all(1.0f / 5040);                                             // Taylor to r^7: 6e-9 relative at the ends
    p = F8::multiply_add(p, r, F8::all(1.0f / 720));
    p = F8::multiply_add(p, r, F8::all(1.0f / 120));
    p = F8::multiply_add(p, r, F8::all(1.0f / 24));
    p = F8::multiply_add(p, r, F8::all(1.0f / 6));
    p = F8::multiply_add(p, r, F8::all(0.5f));
    p = F8::multiply_add(p, r, F8::all(1.0f));
    p = F8::multiply_add(p, r, F8::all(1.0f));
    return F8::zero_below(x, -87.0f, p * F8::power_of_two(n));
}

template <class F8>
void silu_multiply(float* gate, const float* up, int n) {
    for (int i = 0; i < n; i += 8) {
        const F8 x = F8::load(gate + i);
        const F8 silu = x / (F8::all(1.0f) + exponential<F8>(F8::all(0.0f) - x));
        (silu * F8::load(up + i)).store(gate + i);
    }
}

// GELU by its tanh form, x / 2 * (1 + tanh u) with u = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + e^(-2u))
template <class F8>
void gelu_multiply(float* gate, const float* up, int n) {
    for (int i = 0; i < n; i += 8) {
        const F8 x = F8::load(gate + i);
        const F8 slope = F8::multiply_add(x * x, F8::all(-0x1.2444f2p-4f), F8::all(-0x1.988454p+0f));  // -2u / x
        const F8 gelu = x / (F8::all(1.0f) + exponential<F8>(x * slope));
        (gelu * F8::load(up + i)).store(gate + i);
    }
}

// cap * tanh(x / cap), tanh y = 1 - 2 / (e^2y + 1): right to 1e-7 of the cap. 43 is infinity here, and NaN stays NaN, as the second
// operand of minimum and maximum and then as the difference from itself.
template <class F8>
inline F8 soft_capped(F8 x, F8 cap) {
    const F8 y = F8::minimum(F8::all(43.0f), F8::maximum(F8::all(-43.0f), x / cap));
    const F8 tanh = F8::all(1.0f) - F8::all(2.0f) / (exponential<F8>(y + y) + F8::all(1.0f));
    return cap * (tanh + (y - y));
}

template <class F8>
void soft_cap(float* x, int n, float cap) {
    for (int i = 0; i < n; i += 8) soft_capped<F8>(F8::load(x + i), F8::all(cap)).store(x + i);
}

template <class F8>
void rms_norm(const float* x, const float* weight, int n, float eps, float* out) {
    F8 squares = F8::all(0.0f);
    for (int i = 0; i < n; i += 8) {
        const F8 v = F8::load(x + i);
        squares = F8::multiply_add(v, v, squares);
    }
    const float mean = squares.sum() / static_cast<float>(n) + eps;
    const F8 factor = F8::all(1.0f / __builtin_sqrtf(mean));  // IEEE: correctly rounded everywhere
    for (int i = 0; i < n; i += 8) (F8::load(x + i) * factor * F8::load(weight + i)).store(out + i);
}

template <class F8>
void add(float* x, const float* y, int n) {
    for (int i = 0; i < n; i += 8) (F8::load(x + i) + F8::load(y + i)).store(x + i);
}

template <class F8>
void rotate_interleaved(float* head, const float* cos_sin, int pairs) {
    for (int i = 0; i < 2 * pairs; i += 8) F8::rotate_pairs(F8::load(head + i), F8::load(cos_sin + i)).store(head + i);
}

template <class F8>
void rotate_halves(float* head, const float* cos_sin, int pairs) {
    for (int i = 0; i < pairs; i += 8) {
        const F8 cosine = F8::load(cos_sin + i), sine = F8::load(cos_sin + pairs + i);
        const F8 first = F8::load(head + i), second = F8::load(head + pairs + i);
        (first * cosine - second * sine).store(head + i);
        (second * cosine + first * sine).store(head + pairs + i);
    }
}

template <class F8>
void to_f16(const float* x, int n, uint16_t* out) {
    for (int i = 0; i < n; i += 8) F8::load(x + i).store_half(out + i);
}

// A group whose largest magnitude is at most 1e-30 counts as zero: 127 / peak would overflow.
// One with an infinity or a NaN has the scale NaN, since `maximum` may pass over a NaN, and codes have no room for it: 0 times those is NaN.
template <class F8>
void quantise(const float* x, int n, int8_t* codes, GroupScale* scales) {
    for (int group = 0; group < n / kGroup; group++) {
        F8 v[4];
        F8 magnitude = F8::all(0.0f), nothing = F8::all(0.0f);
        for (int i = 0; i < 4; i++) {
            v[i] = F8::load(x + group * kGroup + i * 8);
            magnitude = F8::maximum(magnitude, F8::absolute(v[i]));
            nothing = F8::multiply_add(v[i], F8::all(0.0f), nothing);
        }
        const float peak = magnitude.largest();
        const bool empty = peak <= 1e-30f;
        const float scale = (empty ? 0.0f : peak / 127.0f) + nothing.sum();
        const float inverse = empty ? 0.0f : 127.0f / peak;
        for (int i = 0; i < 4; i++) v[i] = v[i] * F8::all(inverse);
        GroupScale& out = scales[group];
        F8::to_codes(v, codes + group * kGroup, out.sums);
        out.scale = scale;
        out.scaled_sum = scale * static_cast<float>(out.sums[0] + out.sums[1]);
    }
}

}  // namespace hybrid
