#include "load_row.h"

#include "unpack.h"

namespace hybrid {

namespace {

template <int K>
void load(const uint8_t* panel, int columns, int row, float* out) {
    const uint8_t* header = panel;
    for (int g = 0; g < columns / kGroup; g++, panel += group_bytes(K), out += kGroup) {
        if (g % unit_groups(K) == 0) {
            header = panel;
            panel += header_bytes(K);
        }
        for (int i = 0; i < kGroup; i++) {
            if constexpr (is_float(K)) {
                out[i] = float_at<K>(panel, i, row);
            } else {
                const RowScale scale = row_scale<K>(header, panel, row, i / 16);
                const float product = static_cast<float>(code_at<K>(panel, i / 4, row * 4 + i % 4)) * scale.d;
                out[i] = has_minimum(K) ? product + scale.m : product;  // adding 0 would turn -0 into 0
            }
        }
    }
}

using Load = void (*)(const uint8_t*, int, int, float*);

#define HYBRID_LOAD(K) load<K>,
constexpr Load kLoads[kKinds] = {HYBRID_FOR_EVERY_KIND(HYBRID_LOAD)};
#undef HYBRID_LOAD

}  // namespace

void load_row(const HybridMatrix& matrix, int row, float* out) {
    const uint8_t* panel = matrix.panels + row / kPanel * panel_bytes(matrix.kind, matrix.columns);
    kLoads[matrix.kind](panel, matrix.columns, row % kPanel, out);
}

}  // namespace hybrid
