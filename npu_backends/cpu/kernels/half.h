// IEEE half precision in plain integer arithmetic, for the places where no instruction does it.
#pragma once
#include <cstdint>
#include <cstring>

namespace hybrid {

inline float bits_to_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t float_to_bits(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Exact: every half is a float.
inline float half_to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) return bits_to_float(sign | 0x7f800000u | (magnitude << 13));
    // exponents differ by 112; multiplying by 2^112 also normalises subnormal halves
    const float value = bits_to_float(magnitude << 13) * 0x1p112f;
    return bits_to_float(float_to_bits(value) | sign);
}

// Rounds to nearest, ties to even; overflow gives infinity, NaN stays NaN.
inline uint16_t float_to_half(float value) {
    const uint32_t bits = float_to_bits(value);
    const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 2^16 and above
    if (magnitude < 0x38800000u) {                                               // below 2^-14: subnormal half
        // adding 0.5 leaves the half's 10 bits, rounded to even, at the bottom of the mantissa
        const uint32_t rounded = float_to_bits(bits_to_float(magnitude) + 0.5f);
        return static_cast<uint16_t>(sign | (rounded - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0x0fffu + odd) >> 13));
}

}  // namespace hybrid
