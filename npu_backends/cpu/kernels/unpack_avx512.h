// Codes and scales of a group of a panel in AVX-512 registers, all 16 rows in one. Include after target_avx512.h.
#pragma once
#include "panels.h"

namespace hybrid {

namespace {

inline __m512i load512(const void* p) { return _mm512_loadu_si512(p); }
inline __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline __m512 halves16(const uint8_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
inline __m512 unsigned16(const uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load128(p))); }
inline __m512 signed16(const uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load128(p))); }

// vpdpbusd wants unsigned codes. Signed ones are held plus 128.
constexpr int held_offset(int kind) { return kind == kQ8_0 || has_book(kind) ? 128 : code_offset(kind); }

// Bits `from`.. of every byte moved to `to`..; those that the neighbour left are still to be masked.
inline __m512i moved(const uint8_t* plane, int from, int to) {
    const __m512i bytes = load512(plane);
    if (from > to) return _mm512_srli_epi16(bytes, static_cast<unsigned>(from - to));
    return from < to ? _mm512_slli_epi16(bytes, static_cast<unsigned>(to - from)) : bytes;
}

// codes | bits `from`.. of every byte moved to `to`.., under the mask.
inline __m512i with_bits(__m512i codes, const uint8_t* plane, int from, int to, int mask) {
    constexpr int kOrAnd = 0xf8;  // a | (b & c)
    return _mm512_ternarylogic_epi32(codes, moved(plane, from, to), _mm512_set1_epi8(static_cast<char>(mask << to)), kOrAnd);
}

// The codes of four inputs and sixteen rows, unsigned.
template <int K>
inline __m512i codes_of(const uint8_t* group, int word) {
    constexpr int kPlanes = code_bytes(K), kLow = kPlanes & kNibbles, kTwoBits = kLow == 0 ? 0 : 4;
    const __m512i sign = _mm512_set1_epi8(-128);
    if constexpr (kPlanes == kBytes) return _mm512_xor_si512(load512(group + word * 64), sign);
    __m512i codes = _mm512_setzero_si512();
    if constexpr (kLow != 0) codes = _mm512_and_si512(moved(group + word % 4 * 64, word / 4 * 4, 0), _mm512_set1_epi8(15));
    if constexpr (has_book(K)) {
        const __m512i book = _mm512_broadcast_i32x4(load128(kCodebook));
        return _mm512_shuffle_epi8(_mm512_xor_si512(book, sign), codes);
    }
    if constexpr ((kPlanes & kTwos) != 0) codes = with_bits(codes, group + kLow + word / 4 * 64, word % 4 * 2, kTwoBits, 3);
    if constexpr ((kPlanes & kOnes) != 0) codes = with_bits(codes, group + kPlanes - kOnes, word, kLow == 0 ? 2 : 4, 1);
    return codes;
}

// What the dot products of a group are multiplied with, a row a lane.
struct Factors {
    __m512 d;           // kinds whose 16 inputs have a scale: d alone
    __m512 m;           // minimum; -dmin alone for Q2_K
    __m512i scale[2];   // the scale of 16 inputs as int32
    __m512i sums;       // int16 pairs that multiply the sums of the activations' halves: what the codes are held above their value, with
                        // its scale, taken off; the minima for Q2_K
};

template <int K>
inline Factors factors_of(const uint8_t* header, const uint8_t* group) {
    const uint8_t* fields = group + code_bytes(K);
    Factors f{};
    f.d = halves16(kLayouts[K].header == 0 ? fields : header);
    if constexpr (held_offset(K) != 0) f.sums = _mm512_set1_epi16(-held_offset(K));
    if constexpr (K == kQ4_1 || K == kQ5_1) f.m = halves16(fields + 32);
    if constexpr (K == kIQ4_XS) f.d = _mm512_mul_ps(f.d, signed16(fields));
    if constexpr (K == kQ4_K || K == kQ5_K) {
        f.d = _mm512_mul_ps(f.d, unsigned16(fields));
        f.m = _mm512_xor_ps(_mm512_mul_ps(halves16(header + 32), unsigned16(fields + 16)), _mm512_set1_ps(-0.0f));
    }
    if constexpr (scales_halves(K)) {
        __m512i pairs = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(fields)));
        if constexpr (K == kQ2_K) {
            f.m = _mm512_xor_ps(halves16(header + 32), _mm512_set1_ps(-0.0f));
            f.sums = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), _mm512_set1_epi16(15));
            pairs = _mm512_and_si512(pairs, _mm512_set1_epi16(15));
        } else {
            f.sums = _mm512_mullo_epi16(pairs, _mm512_set1_epi16(-code_offset(K)));
        }
        f.scale[0] = _mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16);
        f.scale[1] = _mm512_srai_epi32(pairs, 16);
    }
    return f;
}

}  // namespace

}  // namespace hybrid
