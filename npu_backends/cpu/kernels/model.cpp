#include "model.h"

#include <algorithm>

namespace hybrid {

Model::Model(const HybridModelSpec& given, const Kernels& table)
    : spec(given),
      kernels(table),
      cache(given.num_layers, given.num_blocks, given.kv_heads, given.block_size, given.head_dim),
      pool(given.threads) {
    for (int i = 0; i < given.num_layers; i++) layers.emplace_back(spec, given.layers[i]);
    post_norms = std::any_of(layers.begin(), layers.end(), [](const LayerPlan& layer) {
        return layer.weights.attention_post_norm != nullptr || layer.weights.ffn_post_norm != nullptr;
    });
    attend = kernels.attend[spec.attention_softcap > 0.0f ? 1 : 0];
    // the largest use is one of: a normed row; a head of q, k or v and one row of it in f16; gate and up of a group; attention of a block
    // of rows, and of one part of their keys
    const int64_t heads = static_cast<int64_t>(kRowBlock + 1) * spec.head_dim;
    scratch_stride = std::max({static_cast<int64_t>(spec.hidden), heads, 2 * attended_floats(), static_cast<int64_t>(2 * kRowBlock * kGroup)});
    scratch_stride = (scratch_stride + 31) / 32 * 32;
    scratch.reserve(scratch_stride * spec.threads);
    own_narrow.resize(static_cast<size_t>(spec.threads));
    for (QuantisedRows& rows : own_narrow) rows.reserve(kOwnRows, spec.hidden);
}

void Model::prepare(const HybridBatch& batch) {
    const int64_t tokens = batch.tokens;
    attention_plan.make(batch, spec);
    if (attention_plan.split) parts.reserve(static_cast<int64_t>(attention_plan.block_of_part.size()) * spec.kv_heads * attended_floats());
    hidden.reserve(tokens * spec.hidden);
    query.reserve(tokens * head_columns());
    if (!whole_groups()) attention.reserve(tokens * head_columns());
    if (post_norms) projected.reserve(tokens * spec.hidden);
    narrow.reserve(tokens, std::max(spec.hidden, head_columns()));
    wide.reserve(tokens, spec.ffn);
    sequence_of.reserve(tokens);
    for (int sequence = 0; sequence < batch.sequences; sequence++) {
        const int32_t* start = batch.query_start + sequence;
        std::fill(sequence_of.get() + start[0], sequence_of.get() + start[1], sequence);
    }
}

int64_t Model::scratch_bytes() const {
    int64_t own = 0;
    for (const QuantisedRows& rows : own_narrow) own += rows.bytes();
    return own + hidden.bytes() + query.bytes() + attention.bytes() + projected.bytes() + parts.bytes() + narrow.bytes() + wide.bytes() + sequence_of.bytes() + scratch.bytes();
}

}  // namespace hybrid
