// The part of a step that mixes positions: q, k and v of every head, the cache, and attention.
#include "step.h"

namespace hybrid {

// Work item: one head of q, k or v for a block of rows. Heads 0 .. heads - 1 are queries, then come keys, then values.
void Step::project_heads(int layer, const LayerPlan& plan) {
    const int dim = s_.head_dim, heads = s_.heads + 2 * s_.kv_heads;
    member_.for_each(row_blocks(batch_.tokens) * heads, [&](int item) {
        const int first = item / heads * kRowBlock, rows = std::min(kRowBlock, batch_.tokens - first), number = item % heads;
        const int part = number < s_.heads ? 0 : number < s_.heads + s_.kv_heads ? 1 : 2;
        const int head = part == 0 ? number : (number - s_.heads) % s_.kv_heads;
        const HybridMatrix* const matrices[] = {&plan.weights.query, &plan.weights.key, &plan.weights.value};
        const HeadSteps* const steps[] = {&plan.query, &plan.key, &plan.value};
        gemm_panels(*matrices[part], head * dim, dim, inputs_, first, rows, scratch_, dim);
        for (int r = 0; r < rows; r++) {
            float* values = scratch_ + r * dim;
            apply(*steps[part], k_.row, head, batch_.positions[first + r], values);
            if (part == 0) store_query(first + r, head, values);
            else if (part == 1) store_key(layer, first + r, head, values);
            else store_value(layer, first + r, head, values);
        }
    });
}

void Step::store_query(int row, int head, const float* values) {
    const int shared = s_.heads / s_.kv_heads;
    std::memcpy(query_at(row, head / shared) + head % shared * s_.head_dim, values, sizeof(float) * s_.head_dim);
}

void Step::store_key(int layer, int row, int kv_head, const float* values) {
    uint16_t* half = reinterpret_cast<uint16_t*>(scratch_ + kRowBlock * s_.head_dim);
    k_.row.to_f16(values, s_.head_dim, half);
    m_.cache.store_key(layer, kv_head, block_of(row), batch_.positions[row] % s_.block_size, half);
}

void Step::store_value(int layer, int row, int kv_head, const float* values) {
    k_.row.to_f16(values, s_.head_dim, m_.cache.value_at(layer, kv_head, block_of(row), batch_.positions[row] % s_.block_size));
}

// Memory for the attention of one block of rows and one KV head: outputs, maxima, totals.
Attended Step::attended_at(float* memory) const {
    float* maximum = memory + static_cast<int64_t>(m_.block_vectors()) * s_.head_dim;
    return {memory, maximum, maximum + m_.block_vectors()};
}

AttentionWork Step::attention_work(int layer, const QueryBlock& block, int kv_head, int part) const {
    AttentionWork work;
    work.queries = query_at(block.first, kv_head);
    work.rows = block.rows;
    work.heads = s_.heads / s_.kv_heads;
    work.head_dim = s_.head_dim;
    work.position = block.position;
    work.window = m_.layers[static_cast<size_t>(layer)].weights.window;
    work.begin = part * kPart;
    work.end = work.begin + kPart;
    work.keys = m_.cache.keys(layer, kv_head);
    work.values = m_.cache.values(layer, kv_head);
    work.blocks = batch_.block_tables + static_cast<int64_t>(block.sequence) * batch_.max_blocks;
    work.block_size = s_.block_size;
    work.block_stride = m_.cache.block_stride();
    work.scale = s_.attention_scale;
    work.softcap = s_.attention_softcap;
    return work;
}

// One part of an item of `attend`. What is attended to next is the next part or item; with more threads than one that may be another's.
void Step::attend_part(int layer, int item, const QueryBlock& block, int kv_head, int part, const Attended& out) {
    AttentionWork work = attention_work(layer, block, kv_head, part), next;
    work.fetched = s_.threads == 1 && (item > 0 || part > first_part_seen(layer, block.position));
    const int items = static_cast<int>(m_.attention_plan.blocks.size()) * s_.kv_heads;
    if (part + 1 < block.parts) {
        next = attention_work(layer, block, kv_head, part + 1);
        work.next = &next;
    } else if (item + 1 < items) {
        const QueryBlock& other = block_of_item(item + 1);
        next = attention_work(layer, other, (item + 1) % s_.kv_heads, first_part_seen(layer, other.position));
        work.next = &next;
    }
    m_.attend(work, out);
}

// Every row takes the first part that it sees as it is and merges the following ones, in ascending order.
void Step::take_part(int layer, const QueryBlock& block, int part, const Attended& from, const Attended& into) {
    const int shared = s_.heads / s_.kv_heads, dim = s_.head_dim;
    for (int row = 0; row < block.rows; row++) {
        const int position = block.position + row, first = first_part_seen(layer, position);
        if (part < first || part > position / kPart) continue;
        for (int vector = row * shared; vector < (row + 1) * shared; vector++) {
            const Attended source = {from.output + static_cast<int64_t>(vector) * dim, from.maximum + vector, from.total + vector};
            const Attended target = {into.output + static_cast<int64_t>(vector) * dim, into.maximum + vector, into.total + vector};
            if (part > first) {
                k_.row.merge(target, source, dim);
                continue;
            }
            std::memcpy(target.output, source.output, sizeof(float) * static_cast<size_t>(dim));
            *target.maximum = *source.maximum;
            *target.total = *source.total;
        }
    }
}

// Divide by the totals, and quantise where the heads of a KV head fill whole groups.
void Step::finish_heads(const QueryBlock& block, int kv_head, const Attended& attended) {
    const int shared = s_.heads / s_.kv_heads, columns = m_.shared_columns();
    const Activations out = m_.narrow.view(m_.head_columns());
    for (int row = 0; row < block.rows; row++) {
        float* output = attended.output + static_cast<int64_t>(row) * columns;
        for (int head = 0; head < shared; head++) k_.row.divide(output + head * s_.head_dim, s_.head_dim, attended.total[row * shared + head]);
        const int64_t at = static_cast<int64_t>(block.first + row) * m_.head_columns() + kv_head * columns;
        if (m_.whole_groups()) k_.row.quantise(output, columns, out.codes + at, out.scales + at / kGroup);
        else std::memcpy(m_.attention.get() + at, output, sizeof(float) * static_cast<size_t>(columns));
    }
}

// Work item: a block of rows and one KV head, with the query heads that share it; where a few rows have long contexts, one part of their
// keys first. Later blocks of a prompt have more keys, so they are begun first.
void Step::attend(int layer) {
    const AttentionPlan& plan = m_.attention_plan;
    const int blocks = static_cast<int>(plan.blocks.size());
    if (plan.split) {
        member_.for_each(static_cast<int>(plan.block_of_part.size()) * s_.kv_heads, [&](int item) {
            const int part = item / s_.kv_heads;
            const QueryBlock& block = plan.blocks[static_cast<size_t>(plan.block_of_part[static_cast<size_t>(part)])];
            if (part - block.first_part < first_part_seen(layer, block.position)) return;
            m_.attend(attention_work(layer, block, item % s_.kv_heads, part - block.first_part), attended_at(m_.part_memory(item)));
        });
    }
    member_.for_each(blocks * s_.kv_heads, [&](int item) {
        const QueryBlock& block = block_of_item(item);
        const int kv_head = item % s_.kv_heads;
        const Attended whole = attended_at(scratch_), own = attended_at(scratch_ + m_.attended_floats());
        for (int part = first_part_seen(layer, block.position); part < block.parts; part++) {
            const Attended from = plan.split ? attended_at(m_.part_memory((block.first_part + part) * s_.kv_heads + kv_head)) : own;
            if (!plan.split) attend_part(layer, item, block, kv_head, part, own);
            take_part(layer, block, part, from, whole);
        }
        finish_heads(block, kv_head, whole);
    });
    if (m_.whole_groups()) return;
    const Activations out = m_.narrow.view(m_.head_columns());
    member_.for_each(batch_.tokens, [&](int row) {
        const float* values = m_.attention.get() + static_cast<int64_t>(row) * m_.head_columns();
        k_.row.quantise(values, m_.head_columns(), out.row_codes(row), out.row_scales(row));
    });
}

}  // namespace hybrid
