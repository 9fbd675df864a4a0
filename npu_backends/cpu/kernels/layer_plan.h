// What each layer does, worked out once when a model opens, so that a step asks no question about families.
//
//   heads of         Llama     Qwen 2         Qwen 3          between their projection and their use
//   q and k          rotate    bias, rotate   norm, rotate
//   v                -         bias           -
#pragma once
#include <vector>

#include "api.h"
#include "kernels.h"

namespace hybrid {

// One thing that is done to one head of q, k or v.
struct HeadStep {
    void (*apply)(const HeadStep& step, const RowKernels& kernels, int head, int position, float* values);
    const float* operand;  // bias of all heads, weights of the norm, or table of the angles
    int size;              // inputs of a head, or pairs that turn
    float eps = 0.0f;
};

using HeadSteps = std::vector<HeadStep>;

struct LayerPlan {
    LayerPlan(const HybridModelSpec& spec, const HybridLayer& layer);

    // The first position that a query at `position` sees.
    int first_seen(int position) const { return weights.window > 0 && position >= weights.window ? position + 1 - weights.window : 0; }

    HybridLayer weights;
    HeadSteps query, key, value;
};

inline void apply(const HeadSteps& steps, const RowKernels& kernels, int head, int position, float* values) {
    for (const HeadStep& step : steps) step.apply(step, kernels, head, position, values);
}

}  // namespace hybrid
