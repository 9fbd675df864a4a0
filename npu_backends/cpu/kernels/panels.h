// How weights lie in memory. A panel is 16 output rows; its inputs follow one another in groups of 32. A group is one run of bytes:
//
//   | codes, in planes, see below | fields: the first of rows 0..15, the second of rows 0..15, .. |
//
// and a kind of the GGUF "K" family opens every 8 groups (256 inputs) with a header of f16: | d of rows 0..15 | dmin of rows 0..15 |.
// Panels follow one another: a whole matrix is one forward stream. A word is four inputs; group inputs 4w .. 4w + 3 are word w. In every
// plane a word is 64 bytes, 4 a row, and the byte of (row, input) is `lane` = row * 4 + input % 4:
//
//   bytes    512 B | word 0 | word 1 | .. | word 7 |                       one code a byte
//   nibbles  256 B | words 0, 4 | words 1, 5 | words 2, 6 | words 3, 7 |   bits 0-3 of the code; first word low, second high
//   twos     128 B | words 0 1 2 3 | words 4 5 6 7 |                       two bits of the code; word w at bits 2 (w % 4)
//   ones      64 B | words 0 .. 7 |                                        one bit of the code; word w at bit w
//   halves  1024 B | input 0 | input 1 | .. |                              16 rows of f16 or bf16 an input; floats, 2048 B, likewise
//
// Lower bits of a code come from the earlier plane: q of Q5 = nibble | one << 4, of Q6 = nibble | two << 4, of Q3 = two | one << 2.
// What a code, its fields and its header mean (weight, in the order of operations of the reference, float32):
//
//   kind           fields, per row            weight                        kind     fields              weight
//   Q4_0           d f16                      d * (q - 8)                   Q4_K     sc u8, m u8         (d * sc) * q - (dmin * m)
//   Q4_1           d f16, m f16               d * q + m                     Q5_K     sc u8, m u8         (d * sc) * q - (dmin * m)
//   Q5_0           d f16                      d * (q - 16)                  Q6_K     sc[2] i8            (d * sc[h]) * (q - 32)
//   Q5_1           d f16, m f16               d * q + m                     Q3_K     sc[2] i8            (d * sc[h]) * (q - 4)
//   Q8_0           d f16                      d * q                         Q2_K     b[2]: sc, m nibble  (d * sc[h]) * q - (dmin * m[h])
//   IQ4_NL         d f16                      d * book[q]                   IQ4_XS   sc i8               (d * sc) * book[q]
//   F16 BF16 F32   none                       itself                        h = 0 for the inputs 0-15 of the group, 1 for 16-31
//
// quant/repack.py and pack.cpp write this layout. Nothing is lost: every code, scale and minimum is there as the file has it.
#pragma once
#include <cstdint>

namespace hybrid {

constexpr int kPanel = 16;  // output rows
constexpr int kGroup = 32;  // inputs that share a scale
constexpr int kWords = 8;   // of four inputs, in a group
constexpr int kSuper = 8;   // groups under one header

enum Kind : int32_t { kQ4_1, kQ8_0, kQ5_0, kQ4_K, kQ6_K, kQ4_0, kQ5_1, kQ5_K, kIQ4_NL, kIQ4_XS, kQ3_K, kQ2_K, kF16, kBF16, kF32, kKinds };

// X(kind) for every kind, in the order above.
#define HYBRID_FOR_EVERY_KIND(X) \
    X(kQ4_1) X(kQ8_0) X(kQ5_0) X(kQ4_K) X(kQ6_K) X(kQ4_0) X(kQ5_1) X(kQ5_K) X(kIQ4_NL) X(kIQ4_XS) X(kQ3_K) X(kQ2_K) X(kF16) X(kBF16) X(kF32)

enum Plane : int { kNibbles = 256, kTwos = 128, kOnes = 64, kBytes = 512, kHalves = 1024, kFloats = 2048 };  // bytes; a sum for several

struct Layout {
    int planes;  // bytes of codes of a group, a sum of Plane
    int fields;  // bytes per row after the codes of each group
    int header;  // f16 per row before every 8 groups
};

constexpr Layout kLayouts[kKinds] = {
    {kNibbles, 4, 0},          // Q4_1
    {kBytes, 2, 0},            // Q8_0
    {kNibbles + kOnes, 2, 0},  // Q5_0
    {kNibbles, 2, 2},          // Q4_K
    {kNibbles + kTwos, 2, 1},  // Q6_K
    {kNibbles, 2, 0},          // Q4_0
    {kNibbles + kOnes, 4, 0},  // Q5_1
    {kNibbles + kOnes, 2, 2},  // Q5_K
    {kNibbles, 2, 0},          // IQ4_NL
    {kNibbles, 1, 1},          // IQ4_XS
    {kTwos + kOnes, 2, 1},     // Q3_K
    {kTwos, 2, 2},             // Q2_K
    {kHalves, 0, 0},           // F16
    {kHalves, 0, 0},           // BF16
    {kFloats, 0, 0},           // F32
};

constexpr int code_bytes(int kind) { return kLayouts[kind].planes; }
constexpr int group_bytes(int kind) { return kLayouts[kind].planes + kPanel * kLayouts[kind].fields; }
constexpr int header_bytes(int kind) { return 2 * kPanel * kLayouts[kind].header; }
constexpr int unit_groups(int kind) { return kLayouts[kind].header == 0 ? 1 : kSuper; }  // groups that a row's length is a multiple of
constexpr int unit_bytes(int kind) { return header_bytes(kind) + unit_groups(kind) * group_bytes(kind); }
constexpr int64_t panel_bytes(int kind, int columns) { return static_cast<int64_t>(columns / kGroup / unit_groups(kind)) * unit_bytes(kind); }

constexpr bool is_float(int kind) { return kind == kF16 || kind == kBF16 || kind == kF32; }
constexpr bool has_book(int kind) { return kind == kIQ4_NL || kind == kIQ4_XS; }
constexpr bool has_minimum(int kind) { return kind == kQ4_1 || kind == kQ5_1 || kLayouts[kind].header == 2; }
constexpr bool scales_halves(int kind) { return kind == kQ6_K || kind == kQ3_K || kind == kQ2_K; }  // a scale per 16 inputs
// what is taken off a code
constexpr int code_offset(int kind) { return kind == kQ4_0 ? 8 : kind == kQ5_0 ? 16 : kind == kQ6_K ? 32 : kind == kQ3_K ? 4 : 0; }

// What a nibble of IQ4_NL and IQ4_XS stands for.
constexpr int8_t kCodebook[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Activations of some rows, quantised to int8: x[i] is about scale * code[i], the scale shared by a group.
struct GroupScale {
    float scale;
    float scaled_sum;  // scale * sum of the group's codes; multiplies the weights' minimum m
    int16_t sums[2];   // of the codes of inputs 0-15 and 16-31: what offsets (q - 8) and minima per 16 inputs multiply
};

struct Activations {
    int8_t* codes;       // [rows][columns]
    GroupScale* scales;  // [rows][columns / 32]
    int columns;

    int groups() const { return columns / kGroup; }
    int8_t* row_codes(int row) const { return codes + static_cast<int64_t>(row) * columns; }
    GroupScale* row_scales(int row) const { return scales + static_cast<int64_t>(row) * groups(); }
};

}  // namespace hybrid
