// Everything after this line of a file is compiled for AVX-512 with VNNI, whatever the command line says; like target_avx2.h, include it
// after the headers that other files share.
#pragma once
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,f16c")
#endif
