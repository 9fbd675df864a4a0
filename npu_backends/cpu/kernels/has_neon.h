// Whether gemm_neon.cpp can be compiled: Clang before 16 has dot products only where the command line names them.
#pragma once

#if defined(__aarch64__) && (!defined(__clang__) || __clang_major__ >= 16 || defined(__ARM_FEATURE_DOTPROD))
#define HYBRID_NEON 1
#else
#define HYBRID_NEON 0
#endif
