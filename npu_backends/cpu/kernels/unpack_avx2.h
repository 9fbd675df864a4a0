// Codes and scales of a group of a panel in AVX2 registers: `left` for rows 0-7, `right` for rows 8-15. Include after target_avx2.h.
//
// Sources that give the same: the panel itself, a group that another tile has unpacked into bytes, a panel that is unpacked while read, and,
// for signed codes, a group that was unpacked into another form before.
#pragma once
#include "panels.h"

namespace hybrid {

inline __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline __m256 halves8(const uint8_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
inline __m128i load64(const uint8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
inline __m256 unsigned8(const uint8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load64(p))); }
inline __m256 signed8(const uint8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load64(p))); }

constexpr bool is_signed(int kind) { return kind == kQ8_0 || has_book(kind); }

// Bits `from`.. of every byte moved to `to`.., under the mask.
inline __m256i moved(__m256i bytes, int from, int to, int mask) {
    if (from > to) bytes = _mm256_srli_epi16(bytes, from - to);
    if (from < to) bytes = _mm256_slli_epi16(bytes, to - from);
    return _mm256_and_si256(bytes, _mm256_set1_epi8(static_cast<char>(mask << to)));
}

// The codes of four inputs and eight rows; `at` is 0 for rows 0-7, 32 for rows 8-15. Unsigned, except in signed kinds.
template <int K>
inline __m256i codes_of(const uint8_t* group, int word, int at) {
    constexpr int kPlanes = code_bytes(K), kLow = kPlanes & kNibbles, kTwoBits = kLow == 0 ? 0 : 4;
    if constexpr (kPlanes == kBytes) return load256(group + word * 64 + at);
    __m256i codes = _mm256_setzero_si256();
    if constexpr (kLow != 0) codes = moved(load256(group + word % 4 * 64 + at), word / 4 * 4, 0, 15);
    if constexpr (has_book(K)) {
        const __m128i book = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kCodebook));
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(book), codes);
    }
    if constexpr ((kPlanes & kTwos) != 0) {
        const __m256i two = moved(load256(group + kLow + word / 4 * 64 + at), word % 4 * 2, kTwoBits, 3);
        codes = kLow == 0 ? two : _mm256_or_si256(codes, two);
    }
    if constexpr ((kPlanes & kOnes) != 0) {
        codes = _mm256_or_si256(codes, moved(load256(group + kPlanes - kOnes + at), word, kLow == 0 ? 2 : 4, 1));
    }
    return codes;
}

// What the dot products of a group are multiplied with, 8 rows a register.
struct Factors {
    __m256 d[2];         // kinds whose 16 inputs have a scale: d alone
    __m256 m[2];         // minimum; -dmin alone for Q2_K
    __m256i scale[2][2]; // [half of the inputs][rows]: the scale of those 16 inputs as int16, twice a row
    __m256i both[2];     // int16 pairs of both halves: 32 or 4 times the scales; the minima for Q2_K
};

template <int K>
inline Factors factors_of(const uint8_t* header, const uint8_t* group) {
    const uint8_t* fields = group + code_bytes(K);
    Factors f;
#pragma GCC unroll 2
    for (int side = 0; side < 2; side++) {
        const __m256 high = halves8((kLayouts[K].header == 0 ? fields : header) + 16 * side);
        f.d[side] = high;
        if constexpr (K == kQ4_1 || K == kQ5_1) f.m[side] = halves8(fields + 32 + 16 * side);
        if constexpr (K == kIQ4_XS) f.d[side] = _mm256_mul_ps(high, signed8(fields + 8 * side));
        if constexpr (K == kQ4_K || K == kQ5_K) {
            f.d[side] = _mm256_mul_ps(high, unsigned8(fields + 8 * side));
            const __m256 least = _mm256_mul_ps(halves8(header + 32 + 16 * side), unsigned8(fields + 16 + 8 * side));
            f.m[side] = _mm256_xor_ps(least, _mm256_set1_ps(-0.0f));
        }
        if constexpr (scales_halves(K)) {
            __m256i pairs = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(fields + 16 * side)));
            if constexpr (K == kQ2_K) {
                f.m[side] = _mm256_xor_ps(halves8(header + 32 + 16 * side), _mm256_set1_ps(-0.0f));
                f.both[side] = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), _mm256_set1_epi16(15));
                pairs = _mm256_and_si256(pairs, _mm256_set1_epi16(15));
            } else {
                f.both[side] = _mm256_mullo_epi16(pairs, _mm256_set1_epi16(code_offset(K)));
            }
            f.scale[0][side] = _mm256_or_si256(_mm256_slli_epi32(pairs, 16), _mm256_and_si256(pairs, _mm256_set1_epi32(0xffff)));
            f.scale[1][side] = _mm256_or_si256(_mm256_srli_epi32(pairs, 16), _mm256_andnot_si256(_mm256_set1_epi32(0xffff), pairs));
        }
    }
    return f;
}

template <int K>
struct InPanel {
    const uint8_t *header, *group;
    __m256i codes(int word, int side) const { return codes_of<K>(group, word, 32 * side); }
    Factors factors() const { return factors_of<K>(header, group); }
};

template <int K>
struct alignas(64) Unpacked {
    __m256i codes(int word, int side) const { return _mm256_load_si256(bytes + 2 * word + side); }
    const Factors& factors() const { return all; }

    __m256i bytes[2 * kWords];
    Factors all;
};

// Signed codes as sizes and flips, so that maddubs gets its unsigned side without an instruction for each sign: with flip = -1 where
// w < 0, else 0, the product |w| * (x ^ flip) is w * x where w >= 0, and w * x - |w| where w < 0. `added` is the sum of those |w|.
// |w| <= 128 and -128 <= x ^ flip <= 127, and no x is -128: a pair stays inside an int16.
template <int K>
struct alignas(64) Folded {
    void fill(const InPanel<K>& from) {
        const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 2
        for (int side = 0; side < 2; side++) {
            __m256i taken = _mm256_setzero_si256();
#pragma GCC unroll 8
            for (int word = 0; word < kWords; word++) {
                const __m256i found = from.codes(word, side), size = _mm256_abs_epi8(found);
                const __m256i flip = _mm256_cmpgt_epi8(_mm256_setzero_si256(), found);
                _mm256_store_si256(sizes + 2 * word + side, size);
                _mm256_store_si256(flips + 2 * word + side, flip);
                taken = _mm256_sub_epi16(taken, _mm256_maddubs_epi16(size, flip));
            }
            added[side] = _mm256_madd_epi16(taken, ones);
        }
        all = from.factors();
    }
    const Factors& factors() const { return all; }

    __m256i sizes[2 * kWords], flips[2 * kWords], added[2];
    Factors all;
};

// Reads a panel and leaves what it read for the tiles that follow.
template <int K>
struct Unpacking {
    InPanel<K> from;
    Unpacked<K>* to;

    __m256i codes(int word, int side) const {
        const __m256i found = from.codes(word, side);
        _mm256_store_si256(to->bytes + 2 * word + side, found);
        return found;
    }
    const Factors& factors() const { return to->all = from.factors(); }
};

}  // namespace hybrid
