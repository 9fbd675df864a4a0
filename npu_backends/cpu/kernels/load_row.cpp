#include "load_row.h"

#include "half.h"
#include "panels.h"

namespace hybrid {

namespace {
float half_at(const uint8_t* bytes, int index) {
    uint16_t half;
    std::memcpy(&half, bytes + 2 * index, sizeof half);
    return half_to_float(half);
}
}  // namespace

void load_row(const HybridMatrix& matrix, int row, float* out) {
    const int groups = matrix.columns / kGroup, lane = row % kPanel, bytes = group_bytes(matrix.kind);
    const uint8_t* group = matrix.panels + static_cast<int64_t>(row / kPanel) * groups * bytes;
    for (int g = 0; g < groups; g++, group += bytes, out += kGroup) {
        if (matrix.kind == kQ4_1) {
            const float d = half_at(group + 256, lane), m = half_at(group + 288, lane);
            for (int i = 0; i < 16; i++) {
                const uint8_t byte = group[i / 4 * 64 + lane * 4 + i % 4];
                out[i] = static_cast<float>(byte & 15) * d + m;
                out[16 + i] = static_cast<float>(byte >> 4) * d + m;
            }
        } else {
            const float d = half_at(group + 512, lane);
            for (int i = 0; i < kGroup; i++) out[i] = static_cast<float>(static_cast<int8_t>(group[i / 4 * 64 + lane * 4 + i % 4])) * d;
        }
    }
}

}  // namespace hybrid
