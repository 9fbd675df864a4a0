// The functions on rows, for one type of eight floats.
#pragma once
#include "attention.h"
#include "elementwise.h"
#include "kernels.h"
#include "vec_pair.h"

namespace hybrid {

template <class F8>
constexpr RowKernels row_kernels() {
    return {
        quantise<F8>,      rms_norm<F8>,
        add<F8>,           rotate_interleaved<F8>,
        rotate_halves<F8>, {silu_multiply<F8>, gelu_multiply<F8>},
        soft_cap<F8>,      to_f16<F8>,
        merge<Pair<F8>>,   divide<Pair<F8>>,
    };
}

}  // namespace hybrid
