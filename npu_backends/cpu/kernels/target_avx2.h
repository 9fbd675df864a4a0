// Everything after this line of a file is compiled for AVX2, FMA and F16C, whatever the command line says; include it last of the
// headers that other files share, or their inline functions would be compiled for AVX2 too and might be the copy the linker keeps.
#pragma once
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
