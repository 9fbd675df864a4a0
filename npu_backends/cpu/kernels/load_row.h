// One row of a matrix in panels, back as floats: the embedding of a token.
#pragma once
#include "api.h"

namespace hybrid {

// out[0 .. columns) = row `row` of the matrix, exactly as its GGUF block dequantises in float32.
void load_row(const HybridMatrix& matrix, int row, float* out);

}  // namespace hybrid
