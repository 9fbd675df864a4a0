// Panels times int8 rows in plain C++: the arithmetic that the vector versions are checked against, and what serves elsewhere.
//
// Per group of 32 inputs, for every kind of integer codes (a * x is the activation, d and m of panels.h with their scales):
//
//   sum += (d * a) * (dot of the codes)          the dot an exact integer; where 16 inputs have a scale, it is scale * dot of both, added
//   sum += m * (a * sum of x)                    kinds with a minimum; Q2_K: (m * a) * (integer sum of minimum * sum of x over halves)
//
// and for float weights: sum += a * (w[0] * x[0] + w[1] * x[1] + .., in this order). Groups ascend, each row for itself.
#include "kernels.h"
#include "row_kernels.h"
#include "unpack.h"
#include "vec_scalar.h"

namespace hybrid {

namespace {

constexpr int kTileRows = 8;  // share one decoding of a group

// The activations of four inputs, once for each of the sixteen rows of a word: the loops below then run over 64 bytes side by side,
// which compilers turn into the vectors of whatever CPU this is.
struct Repeated {
    explicit Repeated(const int8_t* four) {
        const int16_t wide[4] = {four[0], four[1], four[2], four[3]};
        for (int row = 0; row < kPanel; row++) std::memcpy(lane + row * 4, wide, sizeof wide);
    }
    int16_t lane[64];
};

// A group of a panel as numbers.
template <int K>
struct Decoded {
    Decoded(const uint8_t* header, const uint8_t* group) {
        for (int word = 0; word < kWords; word++) {
            for (int lane = 0; lane < 64; lane++) codes[word][lane] = static_cast<int16_t>(code_at<K>(group, word, lane));
        }
        for (int row = 0; row < kPanel; row++) {
            if constexpr (scales_halves(K)) {
                d[row] = half_at(header, row);
                m[row] = has_minimum(K) ? -half_at(header + 2 * kPanel, row) : 0.0f;
                for (int half = 0; half < 2; half++) {
                    const uint8_t byte = group[code_bytes(K) + 2 * row + half];
                    scales[half][row] = K == kQ2_K ? byte & 15 : static_cast<int8_t>(byte);
                    minima[half][row] = byte >> 4;
                }
            } else {
                const RowScale scale = row_scale<K>(header, group, row, 0);
                d[row] = scale.d;
                m[row] = scale.m;
            }
        }
    }

    int16_t codes[kWords][64];
    float d[kPanel], m[kPanel];
    int scales[2][kPanel], minima[2][kPanel];  // where 16 inputs have a scale
};

// dots[row] = sum over the four words from `first` on of code * activation
inline void dot(const int16_t (*codes)[64], const int8_t* activations, int (&dots)[kPanel]) {
    int32_t lanes[64] = {};
    for (int word = 0; word < 4; word++) {
        const Repeated four(activations + word * 4);
        for (int i = 0; i < 64; i++) lanes[i] += static_cast<int16_t>(codes[word][i] * four.lane[i]);
    }
    for (int row = 0; row < kPanel; row++) dots[row] = lanes[row * 4] + lanes[row * 4 + 1] + lanes[row * 4 + 2] + lanes[row * 4 + 3];
}

template <int K>
void add_group(const Decoded<K>& group, const int8_t* activations, const GroupScale& s, float* sums) {
    int first[kPanel], second[kPanel];
    dot(group.codes, activations, first);
    dot(group.codes + 4, activations + 16, second);
    for (int row = 0; row < kPanel; row++) {
        if constexpr (scales_halves(K)) {
            const int whole = group.scales[0][row] * first[row] + group.scales[1][row] * second[row];
            sums[row] += group.d[row] * s.scale * static_cast<float>(whole);
            const int least = group.minima[0][row] * s.sums[0] + group.minima[1][row] * s.sums[1];
            if (has_minimum(K)) sums[row] += group.m[row] * s.scale * static_cast<float>(least);
        } else {
            sums[row] += group.d[row] * s.scale * static_cast<float>(first[row] + second[row]);
            if (has_minimum(K)) sums[row] += group.m[row] * s.scaled_sum;
        }
    }
}

template <int K>
void add_float_group(const uint8_t* group, const int8_t* activations, float scale, float* sums) {
    float products[kPanel] = {};
    for (int i = 0; i < kGroup; i++) {
        for (int row = 0; row < kPanel; row++) products[row] += float_at<K>(group, i, row) * static_cast<float>(activations[i]);
    }
    for (int row = 0; row < kPanel; row++) sums[row] += scale * products[row];
}

template <int K>
void gemm(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    for (int r = 0; r < rows; r += kTileRows) {
        const int count = rows - r < kTileRows ? rows - r : kTileRows;
        float sums[kTileRows][kPanel] = {};
        const uint8_t *group = panel, *header = panel;
        for (int g = 0; g < inputs.groups(); g++, group += group_bytes(K)) {
            if (g % unit_groups(K) == 0) {
                header = group;
                group += header_bytes(K);
            }
            if constexpr (is_float(K)) {
                for (int i = 0; i < count; i++) {
                    add_float_group<K>(group, inputs.row_codes(first + r + i) + g * kGroup, inputs.row_scales(first + r + i)[g].scale, sums[i]);
                }
            } else {
                const Decoded<K> decoded(header, group);
                for (int i = 0; i < count; i++) {
                    add_group<K>(decoded, inputs.row_codes(first + r + i) + g * kGroup, inputs.row_scales(first + r + i)[g], sums[i]);
                }
            }
        }
        for (int i = 0; i < count; i++) std::memcpy(out + static_cast<int64_t>(r + i) * out_stride, sums[i], sizeof sums[i]);
    }
}

constexpr RowKernels kRowKernels = row_kernels<Scalar8>();

}  // namespace

#define HYBRID_GEMM(K) one_by_one<K, gemm<K>>,
constexpr Kernels kScalarKernels = {
    "scalar",
    "scalar-3",
    {HYBRID_FOR_EVERY_KIND(HYBRID_GEMM)},
    {attend<Pair<Scalar8>, false>, attend<Pair<Scalar8>, true>},
    kRowKernels,
};
#undef HYBRID_GEMM

}  // namespace hybrid
