// Eight floats in one AVX2 register; include after target_avx2.h. Each function is the same step as in vec_scalar.h, except that
// multiply_add rounds once.
#pragma once
#include "panels.h"

namespace hybrid {

struct Avx8 {
    __m256 v;

    static Avx8 all(float x) { return {_mm256_set1_ps(x)}; }
    static Avx8 load(const float* p) { return {_mm256_loadu_ps(p)}; }
    static Avx8 load_half(const uint16_t* p) { return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))}; }
    void store(float* p) const { _mm256_storeu_ps(p, v); }
    void store_half(uint16_t* p) const {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    float first() const { return _mm256_cvtss_f32(v); }

    static Avx8 multiply_add(Avx8 a, Avx8 b, Avx8 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
    static Avx8 maximum(Avx8 a, Avx8 b) { return {_mm256_max_ps(a.v, b.v)}; }
    static Avx8 minimum(Avx8 a, Avx8 b) { return {_mm256_min_ps(a.v, b.v)}; }
    static Avx8 absolute(Avx8 a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
    static Avx8 zero_below(Avx8 x, float limit, Avx8 value) {
        return {_mm256_and_ps(_mm256_cmp_ps(x.v, _mm256_set1_ps(limit), _CMP_NLT_UQ), value.v)};
    }
    static Avx8 keep(Avx8 a, int from, int to, float other) {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i dropped = _mm256_or_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(from), lane), _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(to - 1)));
        return {_mm256_blendv_ps(a.v, _mm256_set1_ps(other), _mm256_castsi256_ps(dropped))};
    }
    static Avx8 round(Avx8 x) { return {_mm256_round_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
    static Avx8 power_of_two(Avx8 n) {
        const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
        return {_mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23))};
    }
    float sum() const {
        __m128 pairs = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        pairs = _mm_add_ps(pairs, _mm_movehl_ps(pairs, pairs));
        return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
    }
    float largest() const {
        __m128 pairs = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        pairs = _mm_max_ps(pairs, _mm_movehl_ps(pairs, pairs));
        return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
    }
    static Avx8 rotate_pairs(Avx8 x, Avx8 cos_sin) {
        const __m256 swapped = _mm256_permute_ps(x.v, 0xb1);
        const __m256 cosine = _mm256_moveldup_ps(cos_sin.v), sine = _mm256_movehdup_ps(cos_sin.v);
        return {_mm256_addsub_ps(_mm256_mul_ps(x.v, cosine), _mm256_mul_ps(swapped, sine))};
    }
    static void to_codes(const Avx8 (&x)[4], int8_t* codes, int16_t (&sums)[2]) {
        const __m256i a = _mm256_cvtps_epi32(x[0].v), b = _mm256_cvtps_epi32(x[1].v);
        const __m256i c = _mm256_cvtps_epi32(x[2].v), d = _mm256_cvtps_epi32(x[3].v);
        // the packs work inside 128-bit halves: put the eight runs of four back in order
        const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        const __m256i ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), ordered);
        // [a + b | c + d] in fours, then twos, then ones: |sum| <= 16 * 127 stays inside the saturation of the packs
        const __m256i first = _mm256_add_epi32(a, b), second = _mm256_add_epi32(c, d);
        __m256i sum = _mm256_hadd_epi32(first, second);  // first, first, second, second, in each 128-bit half
        sum = _mm256_hadd_epi32(sum, sum);
        const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        const int packed = _mm_cvtsi128_si32(_mm_packs_epi32(both, both));
        __builtin_memcpy(sums, &packed, sizeof packed);
    }
};

inline Avx8 operator+(Avx8 a, Avx8 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Avx8 operator-(Avx8 a, Avx8 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Avx8 operator*(Avx8 a, Avx8 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Avx8 operator/(Avx8 a, Avx8 b) { return {_mm256_div_ps(a.v, b.v)}; }

}  // namespace hybrid
