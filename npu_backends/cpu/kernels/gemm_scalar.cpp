// Panels times int8 rows in plain C++: the arithmetic that the vector versions are checked against, and what serves elsewhere.
#include "attention.h"
#include "elementwise.h"
#include "kernels.h"
#include "vec_scalar.h"

namespace hybrid {

namespace {

uint16_t half_at(const uint8_t* bytes, int index) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * index, sizeof half);
    return half;
}

// sum over the group of code(row, input) * activation(input), exact
int dot_q4_1(const uint8_t* group, int row, const int8_t* codes) {
    int sum = 0;
    for (int input = 0; input < 16; input++) {
        const uint8_t byte = group[(input / 4) * 64 + row * 4 + input % 4];
        sum += (byte & 15) * codes[input] + (byte >> 4) * codes[16 + input];
    }
    return sum;
}

int dot_q8_0(const uint8_t* group, int row, const int8_t* codes) {
    int sum = 0;
    for (int input = 0; input < kGroup; input++) {
        sum += static_cast<int8_t>(group[(input / 4) * 64 + row * 4 + input % 4]) * codes[input];
    }
    return sum;
}

void gemm_q4_1(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    for (int r = 0; r < rows; r++) {
        float sums[kPanel] = {};
        for (int g = 0; g < inputs.groups(); g++) {
            const uint8_t* group = panel + static_cast<int64_t>(g) * group_bytes(kQ4_1);
            const GroupScale s = inputs.row_scales(first + r)[g];
            for (int row = 0; row < kPanel; row++) {
                const int dot = dot_q4_1(group, row, inputs.row_codes(first + r) + g * kGroup);
                sums[row] += half_to_float(half_at(group + 256, row)) * s.scale * static_cast<float>(dot);
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
            for (int row = 0; row < kPanel; row++) {
                const int dot = dot_q8_0(group, row, inputs.row_codes(first + r) + g * kGroup);
                sums[row] += half_to_float(half_at(group + 512, row)) * scale * static_cast<float>(dot);
            }
        }
        std::memcpy(out + static_cast<int64_t>(r) * out_stride, sums, sizeof sums);
    }
}

}  // namespace

const Kernels kScalarKernels = {
    "scalar",
    "scalar-1",
    [] { return true; },
    {gemm_q4_1, gemm_q8_0},
    quantise<Scalar8>,
    rms_norm<Scalar8>,
    rotate<Scalar8>,
    silu_multiply<Scalar8>,
    to_f16<Scalar8>,
    attend<Scalar8>,
};

}  // namespace hybrid
