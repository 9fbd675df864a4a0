// Which of the compiled instruction sets this CPU, and its operating system, run.
#include <cstring>

#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif HYBRID_NEON && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace hybrid {

namespace {

struct Choice {
    const Kernels* kernels;
    bool (*available)();
};

#if defined(__x86_64__)
bool has_avx2() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;  // Clang's __builtin_cpu_supports may not know this one
    return f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#elif HYBRID_NEON && defined(__linux__)
bool has_dot_products() {
    constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP
    return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
}
#elif HYBRID_NEON
bool has_dot_products() {  // every 64-bit Mac; elsewhere we do not know
#if defined(__APPLE__)
    return true;
#else
    return false;
#endif
}
#endif

const Choice kBestFirst[] = {
#if defined(__x86_64__)
    {&kAvx512Kernels, has_avx512},
    {&kAvx2Kernels, has_avx2},
#endif
#if HYBRID_NEON
    {&kNeonKernels, has_dot_products},
#endif
    {&kScalarKernels, [] { return true; }},
};

}  // namespace

const Kernels* choose_kernels(const char* request) {
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    for (const Choice& choice : kBestFirst) {
        const bool wanted = request == nullptr || *request == '\0' || std::strcmp(request, choice.kernels->isa) == 0;
        if (wanted && choice.available()) return choice.kernels;
    }
    return nullptr;
}

}  // namespace hybrid
