// Panels times int8 rows in plain C++: the arithmetic that the vector versions are checked against, and what serves elsewhere.
#pragma once
#include "kernels.h"

namespace hybrid {

// out[r * out_stride + 0..15] = one panel of kind K against row first + r, for r < rows
template <int K>
void gemm_scalar(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride);

}  // namespace hybrid
