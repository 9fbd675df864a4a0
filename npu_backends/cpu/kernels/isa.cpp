// Which of the compiled instruction sets this CPU runs.
#include <cstring>

#include "kernels.h"

namespace hybrid {

namespace {
const Kernels* const kBestFirst[] = {
#if defined(__x86_64__)
    &kAvx2Kernels,
#endif
    &kScalarKernels,
};
}  // namespace

const Kernels* choose_kernels(const char* request) {
    for (const Kernels* kernels : kBestFirst) {
        const bool wanted = request == nullptr || *request == '\0' || std::strcmp(request, kernels->isa) == 0;
        if (wanted && kernels->available()) return kernels;
    }
    return nullptr;
}

}  // namespace hybrid
