// Which of the compiled instruction sets this CPU runs.
#include <cstring>

#include "kernels.h"

namespace hybrid {

namespace {

struct Choice {
    const Kernels* kernels;
    bool (*available)();
};

const Choice kBestFirst[] = {
#if defined(__x86_64__)
    {&kAvx2Kernels, [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); }},
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
