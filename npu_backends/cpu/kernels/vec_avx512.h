// Sixteen floats in one AVX-512 register; include after target_avx512.h. Each function is the same step as in vec_pair.h over Avx8.
#pragma once
#include <cstdint>

namespace hybrid {

struct Avx16 {
    static constexpr int kAccumulators = 16;

    __m512 v;

    static Avx16 all(float x) { return {_mm512_set1_ps(x)}; }
    static Avx16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
    static Avx16 load_half(const uint16_t* p) { return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
    void store(float* p) const { _mm512_storeu_ps(p, v); }
    float first() const { return _mm512_cvtss_f32(v); }

    static Avx16 multiply_add(Avx16 a, Avx16 b, Avx16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
    static Avx16 maximum(Avx16 a, Avx16 b) { return {_mm512_max_ps(a.v, b.v)}; }
    static Avx16 minimum(Avx16 a, Avx16 b) { return {_mm512_min_ps(a.v, b.v)}; }
    static Avx16 zero_below(Avx16 x, float limit, Avx16 value) {
        return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, _mm512_set1_ps(limit), _CMP_NLT_UQ), value.v)};
    }
    static Avx16 keep(Avx16 a, int from, int to, float other) {
        const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __mmask16 kept = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(from)) & _mm512_cmplt_epi32_mask(lane, _mm512_set1_epi32(to));
        return {_mm512_mask_mov_ps(_mm512_set1_ps(other), kept, a.v)};
    }
    static Avx16 round(Avx16 x) { return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
    static Avx16 power_of_two(Avx16 n) {
        const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
        return {_mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23))};
    }
    float sum() const {
        const __m256 halves = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        __m128 pairs = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
        pairs = _mm_add_ps(pairs, _mm_movehl_ps(pairs, pairs));
        return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
    }
    float largest() const {
        const __m256 halves = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
        __m128 pairs = _mm_max_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
        pairs = _mm_max_ps(pairs, _mm_movehl_ps(pairs, pairs));
        return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
    }
};

inline Avx16 operator+(Avx16 a, Avx16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Avx16 operator-(Avx16 a, Avx16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Avx16 operator*(Avx16 a, Avx16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Avx16 operator/(Avx16 a, Avx16 b) { return {_mm512_div_ps(a.v, b.v)}; }

}  // namespace hybrid
