// The C interface over Model and Step; turns every exception into a null or an error number.
#include "api.h"

#include <new>

#include "model.h"

using hybrid::choose_kernels;
using hybrid::Kernels;
using hybrid::Model;

int32_t hybrid_abi(void) { return HYBRID_ABI; }

void hybrid_struct_bytes(int32_t bytes[6]) {
    const size_t sizes[6] = {sizeof(HybridMatrix),    sizeof(HybridRotary), sizeof(HybridLayer),
                             sizeof(HybridModelSpec), sizeof(HybridBatch),  sizeof(HybridMemory)};
    for (int i = 0; i < 6; i++) bytes[i] = static_cast<int32_t>(sizes[i]);
}

const char* hybrid_isa(const char* request) {
    const Kernels* kernels = choose_kernels(request);
    return kernels == nullptr ? nullptr : kernels->isa;
}

const char* hybrid_kernel_id(const char* isa) {
    const Kernels* kernels = choose_kernels(isa);
    return kernels == nullptr ? nullptr : kernels->id;
}

void* hybrid_open(const HybridModelSpec* spec, const char* isa) {
    const Kernels* kernels = choose_kernels(isa);
    if (kernels == nullptr) return nullptr;
    try {
        return new Model(*spec, *kernels);
    } catch (...) {
        return nullptr;
    }
}

int32_t hybrid_step(void* handle, const HybridBatch* batch, float* logits, float* hidden_states) {
    Model& model = *static_cast<Model*>(handle);
    try {
        model.prepare(*batch);
    } catch (const std::bad_alloc&) {
        return 1;
    }
    run_step(model, *batch, logits, hidden_states);
    return 0;
}

HybridMemory hybrid_memory(const void* handle) {
    const Model& model = *static_cast<const Model*>(handle);
    return {model.cache.bytes(), model.scratch_bytes()};
}

void hybrid_close(void* handle) { delete static_cast<Model*>(handle); }
