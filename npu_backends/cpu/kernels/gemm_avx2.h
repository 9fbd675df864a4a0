// The AVX2 products by kind; an instruction set that has no faster one of its own takes these.
#pragma once
#include "kernels.h"

namespace hybrid {

#if defined(__x86_64__)
template <int K>
void gemm_avx2(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride);
#endif

}  // namespace hybrid
