// One matrix by itself, behind the plain C interface: pack it, read a row back, multiply with it. For loading, tests and benchmarks.
#pragma once
#include "api.h"

namespace hybrid {

void pack(int kind, const uint8_t* blocks, int64_t block_bytes, int rows, int columns, uint8_t* panels);

}  // namespace hybrid

extern "C" {

// panels [packed_bytes of quant/repack.py] = the GGUF blocks [rows][blocks of a row], one block being `block_bytes` long.
HYBRID_EXPORT void hybrid_pack(int32_t kind, const uint8_t* blocks, int64_t block_bytes, int32_t rows, int32_t columns, uint8_t* panels);

// out[0 .. columns) = row `row`, exactly as it dequantises.
HYBRID_EXPORT void hybrid_load_row(const HybridMatrix* matrix, int32_t row, float* out);

// out [rows][matrix.rows up to a multiple of 16] = x [rows][matrix.columns], rounded to int8 per 32, times the matrix; one thread.
// 0, or 1 when memory is short or the ISA is not there.
HYBRID_EXPORT int32_t hybrid_multiply(const HybridMatrix* matrix, const char* isa, const float* x, int32_t rows, float* out);
}
