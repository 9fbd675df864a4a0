// Panels times int8 rows with AVX2: tiles of up to four rows by one panel, sixteen columns wide.
//
//   registers of a tile    columns 0-7          columns 8-15
//   row 0 .. 3             dots[row][0]         dots[row][1]      exact integers of one group
//   row 0 .. 3             sums[row][0]         sums[row][1]      float32, groups added in ascending order
//
// The order of operations for one row does not depend on the height of its tile.
#include "kernels.h"

#if defined(__x86_64__)
#include "cache.h"
#include "target_avx2.h"
// after target_avx2.h, for its target:
#include "row_kernels.h"
#include "vec_avx2.h"

namespace hybrid {

namespace {

constexpr int kTileRows = 4;
constexpr int kAhead = 2560;  // bytes fetched ahead in the stream of panels

inline __m256i load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

inline __m256i broadcast4(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

inline __m256 halves(const uint8_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }

template <int Bytes>
inline void prefetch(const uint8_t* p) {
    for (int line = 0; line < Bytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(p + line), _MM_HINT_T0);
}

// Takes the sums here and now. Left alone, GCC computes all products of a group first and adds them up afterwards, through memory.
inline void in_order(__m256i (&sums)[2]) { asm("" : "+x"(sums[0]), "+x"(sums[1])); }

// dots[r][half] = sum over the group's 32 inputs of code * activation. A pair product is at most 2 * 15 * 128, eight of them fit int16.
template <int Rows>
inline void dot_q4_1(const uint8_t* group, const int8_t* codes, int64_t stride, __m256i (&dots)[Rows][2]) {
    const __m256i low_mask = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
    for (int word = 0; word < 4; word++) {
        const __m256i left = load(group + word * 64), right = load(group + word * 64 + 32);
        const __m256i low_left = _mm256_and_si256(left, low_mask), high_left = _mm256_and_si256(_mm256_srli_epi16(left, 4), low_mask);
        const __m256i low_right = _mm256_and_si256(right, low_mask), high_right = _mm256_and_si256(_mm256_srli_epi16(right, 4), low_mask);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            const __m256i low = broadcast4(codes + r * stride + word * 4), high = broadcast4(codes + r * stride + 16 + word * 4);
            const __m256i sum_left = _mm256_add_epi16(_mm256_maddubs_epi16(low_left, low), _mm256_maddubs_epi16(high_left, high));
            const __m256i sum_right = _mm256_add_epi16(_mm256_maddubs_epi16(low_right, low), _mm256_maddubs_epi16(high_right, high));
            dots[r][0] = word == 0 ? sum_left : _mm256_add_epi16(dots[r][0], sum_left);
            dots[r][1] = word == 0 ? sum_right : _mm256_add_epi16(dots[r][1], sum_right);
            in_order(dots[r]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) {
        dots[r][0] = _mm256_madd_epi16(dots[r][0], ones);
        dots[r][1] = _mm256_madd_epi16(dots[r][1], ones);
    }
}

// maddubs wants one unsigned side: |weight| times the activation with the weight's sign.
template <int Rows>
inline void dot_q8_0(const uint8_t* group, const int8_t* codes, int64_t stride, __m256i (&dots)[Rows][2]) {
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; r++) dots[r][0] = dots[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int word = 0; word < 8; word++) {
        const __m256i left = load(group + word * 64), right = load(group + word * 64 + 32);
        const __m256i size_left = _mm256_abs_epi8(left), size_right = _mm256_abs_epi8(right);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            const __m256i x = broadcast4(codes + r * stride + word * 4);
            const __m256i pairs_left = _mm256_maddubs_epi16(size_left, _mm256_sign_epi8(x, left));
            const __m256i pairs_right = _mm256_maddubs_epi16(size_right, _mm256_sign_epi8(x, right));
            dots[r][0] = _mm256_add_epi32(dots[r][0], _mm256_madd_epi16(pairs_left, ones));
            dots[r][1] = _mm256_add_epi32(dots[r][1], _mm256_madd_epi16(pairs_right, ones));
            in_order(dots[r]);
        }
    }
}

template <int K, int Rows>
void tile(const uint8_t* panel, int groups, const int8_t* codes, int64_t code_stride, const GroupScale* scales, float* out,
          int64_t out_stride) {
    constexpr int kBytes = group_bytes(K), kCodes = K == kQ4_1 ? 256 : 512;
    __m256 sums[Rows][2];
    for (int r = 0; r < Rows; r++) sums[r][0] = sums[r][1] = _mm256_setzero_ps();
    for (int g = 0; g < groups; g++, panel += kBytes, codes += kGroup) {
        if (Rows < kTileRows) prefetch<kBytes>(panel + kAhead);
        __m256i dots[Rows][2];
        if constexpr (K == kQ4_1) dot_q4_1<Rows>(panel, codes, code_stride, dots);
        else dot_q8_0<Rows>(panel, codes, code_stride, dots);
        const __m256 d_left = halves(panel + kCodes), d_right = halves(panel + kCodes + 16);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; r++) {
            const __m256 scale = _mm256_set1_ps(scales[r * groups + g].scale);
            sums[r][0] = _mm256_fmadd_ps(_mm256_mul_ps(d_left, scale), _mm256_cvtepi32_ps(dots[r][0]), sums[r][0]);
            sums[r][1] = _mm256_fmadd_ps(_mm256_mul_ps(d_right, scale), _mm256_cvtepi32_ps(dots[r][1]), sums[r][1]);
        }
        if constexpr (K == kQ4_1) {
            const __m256 m_left = halves(panel + kCodes + 32), m_right = halves(panel + kCodes + 48);
#pragma GCC unroll 8
            for (int r = 0; r < Rows; r++) {
                const __m256 scaled_sum = _mm256_set1_ps(scales[r * groups + g].scaled_sum);
                sums[r][0] = _mm256_fmadd_ps(m_left, scaled_sum, sums[r][0]);
                sums[r][1] = _mm256_fmadd_ps(m_right, scaled_sum, sums[r][1]);
            }
        }
    }
    for (int r = 0; r < Rows; r++) {
        _mm256_storeu_ps(out + r * out_stride, sums[r][0]);
        _mm256_storeu_ps(out + r * out_stride + 8, sums[r][1]);
    }
}

template <int K>
void gemm(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    const int groups = inputs.groups();
    for (int r = 0; r < rows; r += kTileRows) {
        const int8_t* codes = inputs.row_codes(first + r);
        const GroupScale* scales = inputs.row_scales(first + r);
        float* to = out + static_cast<int64_t>(r) * out_stride;
        switch (rows - r) {
            case 1: tile<K, 1>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            case 2: tile<K, 2>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            case 3: tile<K, 3>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
            default: tile<K, 4>(panel, groups, codes, inputs.columns, scales, to, out_stride); break;
        }
    }
}

}  // namespace

const Kernels kAvx2Kernels = {
    "avx2",
    "avx2-1",
    {gemm<kQ4_1>, gemm<kQ8_0>},
    row_kernels<Avx8>(),
};

}  // namespace hybrid

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
