// Panels times int8 rows in plain C++: the arithmetic that the vector versions are checked against, and what serves elsewhere.
#include "kernels.h"
#include "row_kernels.h"
#include "vec_scalar.h"

namespace hybrid {

namespace {

uint16_t half_at(const uint8_t* bytes, int index) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * index, sizeof half);
    return half;
}

// The activations of four inputs, once for each of the sixteen rows of a word: the loops below then run over 64 bytes side by side,
// which compilers turn into the vectors of whatever CPU this is.
struct Repeated {
    explicit Repeated(const int8_t* four) {
        const int16_t wide[4] = {four[0], four[1], four[2], four[3]};
        for (int row = 0; row < kPanel; row++) std::memcpy(lane + row * 4, wide, sizeof wide);
    }
    int16_t lane[64];
};

// dots[row] = sum over the group of code * activation, exact
void dot_q4_1(const uint8_t* group, const int8_t* codes, int (&dots)[kPanel]) {
    int16_t lanes[64] = {};  // eight products of at most 15 * 128 each
    for (int word = 0; word < 4; word++) {
        const Repeated low(codes + word * 4), high(codes + 16 + word * 4);
        const uint8_t* bytes = group + word * 64;
        for (int i = 0; i < 64; i++) {
            lanes[i] = static_cast<int16_t>(lanes[i] + (bytes[i] & 15) * low.lane[i] + (bytes[i] >> 4) * high.lane[i]);
        }
    }
    for (int row = 0; row < kPanel; row++) dots[row] = lanes[row * 4] + lanes[row * 4 + 1] + lanes[row * 4 + 2] + lanes[row * 4 + 3];
}

void dot_q8_0(const uint8_t* group, const int8_t* codes, int (&dots)[kPanel]) {
    int32_t lanes[64] = {};
    for (int word = 0; word < 8; word++) {
        const Repeated four(codes + word * 4);
        const int8_t* bytes = reinterpret_cast<const int8_t*>(group + word * 64);
        for (int i = 0; i < 64; i++) lanes[i] += static_cast<int16_t>(bytes[i] * four.lane[i]);
    }
    for (int row = 0; row < kPanel; row++) dots[row] = lanes[row * 4] + lanes[row * 4 + 1] + lanes[row * 4 + 2] + lanes[row * 4 + 3];
}

void gemm_q4_1(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    for (int r = 0; r < rows; r++) {
        float sums[kPanel] = {};
        for (int g = 0; g < inputs.groups(); g++) {
            const uint8_t* group = panel + static_cast<int64_t>(g) * group_bytes(kQ4_1);
            const GroupScale s = inputs.row_scales(first + r)[g];
            int dots[kPanel];
            dot_q4_1(group, inputs.row_codes(first + r) + g * kGroup, dots);
            for (int row = 0; row < kPanel; row++) {
                sums[row] += half_to_float(half_at(group + 256, row)) * s.scale * static_cast<float>(dots[row]);
                sums[row] += half_to_float(half_at(group + 288, row)) * s.scaled_sum;
            }
        }
        std::memcpy(out + static_cast<int64_t>(r) * out_stride, sums, sizeof sums);
    }
}

void gemm_q8_0(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    for (int r = 0; r < rows; r++) {
        float sums[kPanel] = {};
        for (int g = 0; g < inputs.groups(); g++) {
            const uint8_t* group = panel + static_cast<int64_t>(g) * group_bytes(kQ8_0);
            const float scale = inputs.row_scales(first + r)[g].scale;
            int dots[kPanel];
            dot_q8_0(group, inputs.row_codes(first + r) + g * kGroup, dots);
            for (int row = 0; row < kPanel; row++) {
                sums[row] += half_to_float(half_at(group + 512, row)) * scale * static_cast<float>(dots[row]);
            }
        }
        std::memcpy(out + static_cast<int64_t>(r) * out_stride, sums, sizeof sums);
    }
}

}  // namespace

const Kernels kScalarKernels = {
    "scalar",
    "scalar-1",
    {gemm_q4_1, gemm_q8_0},
    row_kernels<Scalar8>(),
};

}  // namespace hybrid
