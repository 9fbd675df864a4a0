#include "matrix.h"

#include <new>
#include <vector>

#include "float_control.h"
#include "kernels.h"
#include "load_row.h"

using namespace hybrid;

void hybrid_pack(int32_t kind, const uint8_t* blocks, int64_t block_bytes, int32_t rows, int32_t columns, uint8_t* panels) {
    pack(kind, blocks, block_bytes, rows, columns, panels);
}

void hybrid_load_row(const HybridMatrix* matrix, int32_t row, float* out) {
    const FloatControl control;
    load_row(*matrix, row, out);
}

int32_t hybrid_multiply(const HybridMatrix* matrix, const char* isa, const float* x, int32_t rows, float* out) {
    const Kernels* kernels = choose_kernels(isa);
    if (kernels == nullptr) return 1;
    const FloatControl control;
    const int columns = matrix->columns, stride = (matrix->rows + kPanel - 1) / kPanel * kPanel;
    try {
        std::vector<int8_t> codes(static_cast<size_t>(rows) * static_cast<size_t>(columns));
        std::vector<GroupScale> scales(codes.size() / kGroup);
        const Activations inputs{codes.data(), scales.data(), columns};
        for (int r = 0; r < rows; r++) {
            kernels->row.quantise(x + static_cast<int64_t>(r) * columns, columns, inputs.row_codes(r), inputs.row_scales(r));
        }
        kernels->gemm[matrix->kind](matrix->panels, stride / kPanel, inputs, 0, rows, out, stride);
    } catch (const std::bad_alloc&) {
        return 1;
    }
    return 0;
}
