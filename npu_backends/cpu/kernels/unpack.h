// Single codes and scales out of a panel, in plain C++ for every kind; the pictures are in panels.h.
#pragma once
#include "half.h"
#include "panels.h"

namespace hybrid {

inline float half_at(const uint8_t* bytes, int index) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * index, sizeof half);
    return half_to_float(half);
}

// The code of one word and lane of a group, its offset taken off or looked up in the book: what its scale multiplies.
template <int K>
inline int code_at(const uint8_t* group, int word, int lane) {
    constexpr int kPlanes = code_bytes(K), kLow = kPlanes & kNibbles;
    if constexpr (kPlanes == kBytes) return static_cast<int8_t>(group[word * 64 + lane]);
    int code = 0, bits = 0;
    if constexpr (kLow != 0) {
        code = group[word % 4 * 64 + lane] >> (word / 4 * 4) & 15;
        bits = 4;
    }
    if constexpr ((kPlanes & kTwos) != 0) {
        code |= (group[kLow + word / 4 * 64 + lane] >> (word % 4 * 2) & 3) << bits;
        bits += 2;
    }
    if constexpr ((kPlanes & kOnes) != 0) code |= (group[kPlanes - kOnes + lane] >> word & 1) << bits;
    return has_book(K) ? kCodebook[code & 15] : code - code_offset(K);
}

// weight = d * code + m, the same for a half of a group of a row. Every product in here is exact in float32.
struct RowScale {
    float d, m;
};

template <int K>
inline RowScale row_scale(const uint8_t* header, const uint8_t* group, int row, int half) {
    const uint8_t* fields = group + code_bytes(K);
    if constexpr (K == kQ4_1 || K == kQ5_1) return {half_at(fields, row), half_at(fields + 2 * kPanel, row)};
    if constexpr (kLayouts[K].header == 0) return {half_at(fields, row), 0.0f};
    const float d = half_at(header, row);
    if constexpr (K == kQ6_K || K == kQ3_K) return {d * static_cast<float>(static_cast<int8_t>(fields[2 * row + half])), 0.0f};
    if constexpr (K == kIQ4_XS) return {d * static_cast<float>(static_cast<int8_t>(fields[row])), 0.0f};
    const float least = half_at(header + 2 * kPanel, row);
    if constexpr (K == kQ2_K) {
        const int both = fields[2 * row + half];
        return {d * static_cast<float>(both & 15), -(least * static_cast<float>(both >> 4))};
    }
    return {d * static_cast<float>(fields[row]), -(least * static_cast<float>(fields[kPanel + row]))};
}

// The weight of one input (0 .. 31) and row of a group of a float kind.
template <int K>
inline float float_at(const uint8_t* group, int input, int row) {
    const int index = input * kPanel + row;
    if constexpr (K == kF16) return half_at(group, index);
    uint32_t bits = 0;
    if constexpr (K == kF32) std::memcpy(&bits, group + 4 * index, 4);
    else bits = static_cast<uint32_t>(group[2 * index] | group[2 * index + 1] << 8) << 16;
    return bits_to_float(bits);
}

}  // namespace hybrid
