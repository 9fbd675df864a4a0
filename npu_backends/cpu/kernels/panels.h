// How weights lie in memory. A panel is 16 output rows; per group of 32 inputs it holds the bytes of 16 GGUF blocks, reordered:
//
//   Q4_1, 320 bytes a group                                    Q8_0, 544 bytes a group
//   word 0 | row 0 .. row 15 |  4 bytes a row:                 word 0 | row 0 .. row 15 |  inputs 0-3
//   word 1 | row 0 .. row 15 |  low nibbles = inputs 4w ..     ...
//   word 2 | row 0 .. row 15 |  high = inputs 16 + 4w ..       word 7 | row 0 .. row 15 |  inputs 28-31
//   word 3 | row 0 .. row 15 |                                 d      | row 0 .. row 15 |  f16
//   d      | row 0 .. row 15 |  f16
//   m      | row 0 .. row 15 |  f16, weight = d * code + m     weight = d * code
//
// A group of a panel is one run of bytes, groups ascend, panels follow one another: a whole matrix is one forward stream.
// quant/repack.py writes this layout; nothing is lost, since no byte changes its value.
#pragma once
#include <cstdint>

namespace hybrid {

constexpr int kPanel = 16;  // output rows
constexpr int kGroup = 32;  // inputs that share a scale

enum Kind : int32_t { kQ4_1 = 0, kQ8_0 = 1, kKinds = 2 };

constexpr int group_bytes(int kind) { return kind == kQ4_1 ? 320 : 544; }

// Activations of some rows, quantised to int8: x[i] is about scale * code[i], the scale shared by a group.
struct GroupScale {
    float scale;
    float scaled_sum;  // scale * sum of the group's codes; multiplies the weights' minimum m
    int16_t sums[2];   // of the codes of inputs 0-15 and 16-31: what an offset of the weights' codes adds to a dot product, exactly
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
