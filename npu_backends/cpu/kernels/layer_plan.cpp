#include "layer_plan.h"

namespace hybrid {

namespace {

void add_bias(const HeadStep& step, const RowKernels& kernels, int head, int, float* values) {
    kernels.add(values, step.operand + static_cast<int64_t>(head) * step.size, step.size);
}

void normalise(const HeadStep& step, const RowKernels& kernels, int, int, float* values) {
    kernels.rms_norm(values, step.operand, step.size, step.eps, values);
}

void rotate_interleaved(const HeadStep& step, const RowKernels& kernels, int, int position, float* values) {
    kernels.rotate_interleaved(values, step.operand + static_cast<int64_t>(position) * 2 * step.size, step.size);
}

void rotate_halves(const HeadStep& step, const RowKernels& kernels, int, int position, float* values) {
    kernels.rotate_halves(values, step.operand + static_cast<int64_t>(position) * 2 * step.size, step.size);
}

void append(HeadSteps& steps, decltype(HeadStep::apply) apply, const float* operand, int size, float eps = 0.0f) {
    if (operand != nullptr) steps.push_back({apply, operand, size, eps});
}

}  // namespace

LayerPlan::LayerPlan(const HybridModelSpec& spec, const HybridLayer& layer) : weights(layer) {
    append(query, add_bias, layer.query_bias, spec.head_dim);
    append(key, add_bias, layer.key_bias, spec.head_dim);
    append(value, add_bias, layer.value_bias, spec.head_dim);
    append(query, normalise, layer.query_norm, spec.head_dim, spec.norm_eps);
    append(key, normalise, layer.key_norm, spec.head_dim, spec.norm_eps);
    for (HeadSteps* steps : {&query, &key}) {
        append(*steps, layer.rotary.interleaved ? rotate_interleaved : rotate_halves, layer.rotary.table, layer.rotary.pairs);
    }
}

}  // namespace hybrid
