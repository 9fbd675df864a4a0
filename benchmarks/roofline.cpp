// Two ceilings of this CPU, one thread each: how fast memory is read, and how fast 4-bit weights meet 8-bit activations when nothing
// but the dot products is done. Plain loops over what the compiler's vector extensions give; built by roofline.py.
#include <immintrin.h>

#include <cstdint>

// Reads `bytes` (a multiple of 512) once; the sum keeps the loads alive.
extern "C" __attribute__((target("avx2"))) uint64_t read_all(const uint8_t* data, int64_t bytes) {
    __m256i sums[4] = {};
    for (int64_t at = 0; at < bytes; at += 512) {
        _mm_prefetch(reinterpret_cast<const char*>(data + at + 4096), _MM_HINT_T0);
        for (int i = 0; i < 16; i++) {
            const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + at + 32 * i));
            sums[i % 4] = _mm256_add_epi64(sums[i % 4], v);
        }
    }
    const __m256i sum = _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
    return static_cast<uint64_t>(_mm256_extract_epi64(sum, 0) + _mm256_extract_epi64(sum, 1) + _mm256_extract_epi64(sum, 2) +
                                 _mm256_extract_epi64(sum, 3));
}

namespace {
constexpr int kRows = 4;  // of activations, that share one unpacking
inline int32_t four(const int8_t* p) {
    int32_t value;
    __builtin_memcpy(&value, p, sizeof value);
    return value;
}
}  // namespace

// `groups` groups of 16 x 32 weights (256 bytes each) against kRows rows of activations, `times` over. Returns a sum of the dots.
extern "C" __attribute__((target("avx2"))) int64_t dots_avx2(const uint8_t* codes, const int8_t* x, int groups, int times) {
    const __m256i mask = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
    __m256i total[kRows][2] = {};
    for (int t = 0; t < times; t++) {
        for (int g = 0; g < groups; g++) {
            __m256i dots[kRows][2] = {};
#pragma GCC unroll 4
            for (int word = 0; word < 4; word++) {
                const uint8_t* at = codes + g * 256 + word * 64;
#pragma GCC unroll 2
                for (int half = 0; half < 2; half++) {
                    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32 * half));
                    const __m256i low = _mm256_and_si256(both, mask), high = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
#pragma GCC unroll 4
                    for (int r = 0; r < kRows; r++) {
                        const int8_t* row = x + r * groups * 32 + g * 32;
                        const __m256i a = _mm256_maddubs_epi16(low, _mm256_set1_epi32(four(row + word * 4)));
                        const __m256i b = _mm256_maddubs_epi16(high, _mm256_set1_epi32(four(row + 16 + word * 4)));
                        dots[r][half] = _mm256_add_epi16(dots[r][half], _mm256_add_epi16(a, b));
                        asm("" : "+x"(dots[r][half]));
                    }
                }
            }
#pragma GCC unroll 4
            for (int r = 0; r < kRows; r++)
                for (int half = 0; half < 2; half++)
                    total[r][half] = _mm256_add_epi32(total[r][half], _mm256_madd_epi16(dots[r][half], ones));
        }
    }
    int64_t sum = 0;
    for (int r = 0; r < kRows; r++)
        for (int half = 0; half < 2; half++) {
            alignas(32) int32_t lanes[8];
            _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), total[r][half]);
            for (int lane : lanes) sum += lane;
        }
    return sum;
}

extern "C" __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) int64_t dots_avx512(const uint8_t* codes, const int8_t* x,
                                                                                              int groups, int times) {
    const __m512i mask = _mm512_set1_epi8(15);
    constexpr int kMore = 2 * kRows;  // a tile of eight rows fits the registers
    __m512i total[kMore] = {};
    for (int t = 0; t < times; t++) {
        for (int g = 0; g < groups; g++) {
#pragma GCC unroll 4
            for (int word = 0; word < 4; word++) {
                const __m512i both = _mm512_loadu_si512(codes + g * 256 + word * 64);
                const __m512i low = _mm512_and_si512(both, mask), high = _mm512_and_si512(_mm512_srli_epi16(both, 4), mask);
#pragma GCC unroll 8
                for (int r = 0; r < kMore; r++) {
                    const int8_t* row = x + r * groups * 32 + g * 32;
                    total[r] = _mm512_dpbusd_epi32(total[r], low, _mm512_set1_epi32(four(row + word * 4)));
                    total[r] = _mm512_dpbusd_epi32(total[r], high, _mm512_set1_epi32(four(row + 16 + word * 4)));
                }
            }
        }
    }
    int64_t sum = 0;
    for (int r = 0; r < kMore; r++) sum += _mm512_reduce_add_epi32(total[r]);
    return sum;
}
