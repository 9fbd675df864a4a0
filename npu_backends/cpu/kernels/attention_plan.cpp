#include "attention_plan.h"

#include <algorithm>

namespace hybrid {

void AttentionPlan::make(const HybridBatch& batch, const HybridModelSpec& spec) {
    blocks.clear();
    block_of_part.clear();
    const int most = block_rows(spec);
    for (int sequence = 0; sequence < batch.sequences; sequence++) {
        const int end = batch.query_start[sequence + 1];
        for (int first = batch.query_start[sequence]; first < end; first += most) {
            const int rows = std::min(most, end - first), position = batch.positions[first];
            const int parts = (position + rows - 1) / kPart + 1;
            blocks.push_back({first, rows, sequence, position, static_cast<int>(block_of_part.size()), parts});
            block_of_part.insert(block_of_part.end(), static_cast<size_t>(parts), static_cast<int>(blocks.size()) - 1);
        }
    }
    const int items = static_cast<int>(blocks.size()) * spec.kv_heads;
    split = spec.threads > 1 && items < 4 * spec.threads && block_of_part.size() > blocks.size();
}

}  // namespace hybrid
