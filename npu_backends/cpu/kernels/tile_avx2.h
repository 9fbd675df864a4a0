// One group of a panel against the rows of a tile, in AVX2 registers; the formulas stand in gemm_scalar.cpp. Include after target_avx2.h.
//
//   registers of a tile    columns 0-7          columns 8-15
//   row 0, 1, ..           dots[row][0]         dots[row][1]      exact integers of one group
//   row 0, 1, ..           sums[row][0]         sums[row][1]      float32, groups added in ascending order
//
// The order of operations for one row does not depend on the height of its tile.
#pragma once
#include "unpack_avx2.h"

namespace hybrid {

inline __m256i broadcast4(const void* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

// Takes the sums here and now. Left alone, GCC computes all products of a group first and adds them up afterwards, through memory.
inline void in_order(__m256i (&sums)[2]) { asm("" : "+x"(sums[0]), "+x"(sums[1])); }

// Words whose products an int16 can hold: a byte pair gives at most 2 * code * 127.
constexpr int run_words(int kind) { return scales_halves(kind) || (code_bytes(kind) & kOnes) != 0 ? 4 : 8; }

// dots[r][side] = sum over the group's 32 inputs of code * activation, times the scale of 16 inputs where there is one
template <int K, int Rows, class Source>
inline void dot(const Source& source, const Factors& factors, const int8_t* codes, int64_t stride, __m256i (&dots)[Rows][2]) {
    constexpr int kRun = run_words(K);
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
    for (int run = 0; run < kWords; run += kRun) {
        __m256i part[Rows][2];
#pragma GCC unroll 8
        for (int i = 0; i < kRun; i++) {
            const int word = kRun == 8 ? i / 2 + i % 2 * 4 : run + i;  // the two nibbles of a byte after one another
            const __m256i left = source.codes(word, 0), right = source.codes(word, 1);
#pragma GCC unroll 8
            for (int r = 0; r < Rows; r++) {
                const __m256i x = broadcast4(codes + r * stride + word * 4);
                const __m256i sum_left = _mm256_maddubs_epi16(left, x), sum_right = _mm256_maddubs_epi16(right, x);
                part[r][0] = i == 0 ? sum_left : _mm256_add_epi16(part[r][0], sum_left);
                part[r][1] = i == 0 ? sum_right : _mm256_add_epi16(part[r][1], sum_right);
                in_order(part[r]);
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            for (int side = 0; side < 2; side++) {
                const __m256i sum = _mm256_madd_epi16(part[r][side], scales_halves(K) ? factors.scale[run / 4][side] : ones);
                dots[r][side] = run == 0 ? sum : _mm256_add_epi32(dots[r][side], sum);
            }
        }
    }
}

// The same for Q6_K, two words of which fill an int16: rows one after the other, so that no sums of pairs wait in registers.
template <int Rows, class Source>
inline void dot_six_bits(const Source& source, const Factors& factors, const int8_t* codes, int64_t stride, __m256i (&dots)[Rows][2]) {
#pragma GCC unroll 4
    for (int word = 0; word < kWords; word += 2) {
        const __m256i left[2] = {source.codes(word, 0), source.codes(word + 1, 0)};
        const __m256i right[2] = {source.codes(word, 1), source.codes(word + 1, 1)};
        const __m256i(&scale)[2] = factors.scale[word / 4];
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            const __m256i x = broadcast4(codes + r * stride + word * 4), y = broadcast4(codes + r * stride + word * 4 + 4);
            const __m256i sum_left = _mm256_add_epi16(_mm256_maddubs_epi16(left[0], x), _mm256_maddubs_epi16(left[1], y));
            const __m256i sum_right = _mm256_add_epi16(_mm256_maddubs_epi16(right[0], x), _mm256_maddubs_epi16(right[1], y));
            const __m256i dot_left = _mm256_madd_epi16(sum_left, scale[0]), dot_right = _mm256_madd_epi16(sum_right, scale[1]);
            dots[r][0] = word == 0 ? dot_left : _mm256_add_epi32(dots[r][0], dot_left);
            dots[r][1] = word == 0 ? dot_right : _mm256_add_epi32(dots[r][1], dot_right);
            in_order(dots[r]);
        }
    }
}

// The same for signed codes. maddubs wants one unsigned side: |code| times the activation with the code's sign.
template <int Rows, class Source>
inline void dot_signed(const Source& source, const int8_t* codes, int64_t stride, __m256i (&dots)[Rows][2]) {
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int word = 0; word < kWords; word++) {
        const __m256i left = source.codes(word, 0), right = source.codes(word, 1);
        const __m256i size_left = _mm256_abs_epi8(left), size_right = _mm256_abs_epi8(right);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            const __m256i x = broadcast4(codes + r * stride + word * 4);
            const __m256i sum_left = _mm256_madd_epi16(_mm256_maddubs_epi16(size_left, _mm256_sign_epi8(x, left)), ones);
            const __m256i sum_right = _mm256_madd_epi16(_mm256_maddubs_epi16(size_right, _mm256_sign_epi8(x, right)), ones);
            dots[r][0] = word == 0 ? sum_left : _mm256_add_epi32(dots[r][0], sum_left);
            dots[r][1] = word == 0 ? sum_right : _mm256_add_epi32(dots[r][1], sum_right);
            in_order(dots[r]);
        }
    }
}

// The same for signed codes that were folded.
template <int Rows, int K>
inline void dot_signed(const Folded<K>& source, const int8_t* codes, int64_t stride, __m256i (&dots)[Rows][2]) {
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int word = 0; word < kWords; word++) {
        const __m256i* const size = source.sizes + 2 * word;
        const __m256i* const flip = source.flips + 2 * word;
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            const __m256i x = broadcast4(codes + r * stride + word * 4);
            const __m256i sum_left = _mm256_madd_epi16(_mm256_maddubs_epi16(size[0], _mm256_xor_si256(x, flip[0])), ones);
            const __m256i sum_right = _mm256_madd_epi16(_mm256_maddubs_epi16(size[1], _mm256_xor_si256(x, flip[1])), ones);
            dots[r][0] = _mm256_add_epi32(word == 0 ? source.added[0] : dots[r][0], sum_left);
            dots[r][1] = _mm256_add_epi32(word == 0 ? source.added[1] : dots[r][1], sum_right);
            in_order(dots[r]);
        }
    }
}

template <int K, int Rows, class Source>
inline void add_group(const Source& source, const int8_t* codes, int64_t stride, const GroupScale* scales, int64_t groups,
                      __m256 (&sums)[Rows][2]) {
    const Factors& factors = source.factors();
    __m256i dots[Rows][2];
    if constexpr (is_signed(K)) dot_signed<Rows>(source, codes, stride, dots);
    else if constexpr (K == kQ6_K) dot_six_bits<Rows>(source, factors, codes, stride, dots);
    else dot<K, Rows>(source, factors, codes, stride, dots);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) {
        const GroupScale& s = scales[r * groups];
        const __m256 scale = _mm256_set1_ps(s.scale);
#pragma GCC unroll 2
        for (int side = 0; side < 2; side++) {
            __m256i whole = dots[r][side];
            if constexpr (code_offset(K) != 0) {
                const __m256i offset = scales_halves(K) ? factors.both[side] : _mm256_set1_epi16(code_offset(K));
                whole = _mm256_sub_epi32(whole, _mm256_madd_epi16(offset, broadcast4(s.sums)));
            }
            __m256& sum = sums[r][side];
            sum = _mm256_fmadd_ps(_mm256_mul_ps(factors.d[side], scale), _mm256_cvtepi32_ps(whole), sum);
            if constexpr (K == kQ2_K) {
                const __m256 least = _mm256_cvtepi32_ps(_mm256_madd_epi16(factors.both[side], broadcast4(s.sums)));
                sum = _mm256_fmadd_ps(_mm256_mul_ps(factors.m[side], scale), least, sum);
            } else if constexpr (has_minimum(K)) {
                sum = _mm256_fmadd_ps(factors.m[side], _mm256_set1_ps(s.scaled_sum), sum);
            }
        }
    }
}

// Eight rows of a word of float weights for one input.
template <int K>
inline __m256 floats_of(const uint8_t* group, int input, int side) {
    const int at = input * kPanel + 8 * side;
    if constexpr (K == kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(group) + at);
    if constexpr (K == kF16) return halves8(group + 2 * at);
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(group + 2 * at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16));
}

template <int K, int Rows>
inline void add_float_group(const uint8_t* group, const int8_t* codes, int64_t stride, const GroupScale* scales, int64_t groups,
                            __m256 (&sums)[Rows][2]) {
    alignas(32) float x[Rows][kGroup];
    __m256 products[Rows][2];
    for (int r = 0; r < Rows; r++) {
        products[r][0] = products[r][1] = _mm256_setzero_ps();
        for (int i = 0; i < kGroup; i += 8) _mm256_store_ps(x[r] + i, signed8(reinterpret_cast<const uint8_t*>(codes + r * stride + i)));
    }
    for (int i = 0; i < kGroup; i++) {
        const __m256 left = floats_of<K>(group, i, 0), right = floats_of<K>(group, i, 1);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            products[r][0] = _mm256_fmadd_ps(left, _mm256_set1_ps(x[r][i]), products[r][0]);
            products[r][1] = _mm256_fmadd_ps(right, _mm256_set1_ps(x[r][i]), products[r][1]);
        }
    }
    for (int r = 0; r < Rows; r++) {
        const __m256 scale = _mm256_set1_ps(scales[r * groups].scale);
        for (int side = 0; side < 2; side++) sums[r][side] = _mm256_fmadd_ps(scale, products[r][side], sums[r][side]);
    }
}

}  // namespace hybrid
