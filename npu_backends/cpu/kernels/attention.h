// Attention of a few rows of one sequence over the paged cache, in tiles of 32 keys at absolute positions 0-31, 32-63, ...
//
//   position   0 ....... 31 | 32 ....... 63 | 64 .. 77            a query at position 77: two whole tiles and one of fourteen keys;
//   softmax    tile 0       | tile 1        | tile 2, masked      the same tiles whether it is decoded, in a chunk, or verified
//
// Online softmax (Milakov and Gimelshein 2018): per tile the running maximum, total and output are rescaled, then the tile is added.
// A query head of a row is called a vector. Several vectors are taken at a time, which share each conversion of a key or value from f16;
// a vector's own sums do not depend on who shares with it. Every function is a template, so that each instruction set has its own copy.
#pragma once
#include "cache.h"
#include "elementwise.h"
#include "kernels.h"

namespace hybrid {

constexpr int kSoftmaxTile = 2 * kKeyTile;  // keys

// Where the keys and values of a tile lie: two runs of 16 positions, each inside one block.
struct TileAddress {
    const uint16_t* keys[2];
    const uint16_t* values[2];
};

template <class W>
inline TileAddress tile_address(const AttentionWork& work, int start, int end) {
    TileAddress address{};
    for (int half = 0; half < 2; half++) {
        const int position = start + half * kKeyTile;
        if (position >= end) break;  // no row of the work sees it, so the table need not have its block
        const int64_t at = work.blocks[position / work.block_size] * work.block_stride +
                           static_cast<int64_t>(position % work.block_size) * work.head_dim;
        address.keys[half] = work.keys + at;
        address.values[half] = work.values + at;
    }
    return address;
}

// Asks for a run of 16 positions, keys or values; the runs of a tile lie apart in memory, so the CPU cannot guess the next.
template <class W>
inline void fetch(const uint16_t* run, int dim) {
    if (run == nullptr) return;
    for (int i = 0; i < kKeyTile * dim; i += 32) __builtin_prefetch(run + i);
}

// One past the last key that a row of the work sees.
inline int keys_end(const AttentionWork& work) {
    const int last = work.position + work.rows;
    return work.end < last ? work.end : last;
}

// The tile to ask for while `tile`, which begins at `start`, is worked on: its counterpart in the work that comes next, line by line as
// the same lines here are read, since a burst would fill the buffers for misses and hold up the loads. Where there is none, `tile` itself.
template <class W>
inline TileAddress ahead_of(const AttentionWork& work, const TileAddress& tile, int start) {
    TileAddress ahead = tile;
    if (work.next != nullptr) ahead = tile_address<W>(*work.next, work.next->begin + start - work.begin, keys_end(*work.next));
    for (int half = 0; half < 2; half++) {
        if (ahead.keys[half] != nullptr) continue;
        ahead.keys[half] = tile.keys[0];
        ahead.values[half] = tile.values[0];
    }
    return ahead;
}

// scores[v][half * 16 + 0..15] = query v times the keys of `Halves` runs from `half` on; inputs ascend.
template <class W, int Vectors, int Halves>
inline void score(const float* queries, int dim, const uint16_t* const* keys, const uint16_t* const* ahead, float* scores) {
    W sums[Vectors][Halves];
    for (int v = 0; v < Vectors; v++)
        for (int h = 0; h < Halves; h++) sums[v][h] = W::all(0.0f);
    for (int i = 0; i < dim; i++) {
        __builtin_prefetch(ahead[i % 2] + i / 2 * (2 * kKeyTile), 0, 2);
        W key[Halves];
        for (int h = 0; h < Halves; h++) key[h] = W::load_half(keys[h] + i * kKeyTile);
        for (int v = 0; v < Vectors; v++) {
            const W q = W::all(queries[v * dim + i]);
            for (int h = 0; h < Halves; h++) sums[v][h] = W::multiply_add(q, key[h], sums[v][h]);
        }
    }
    for (int v = 0; v < Vectors; v++)
        for (int h = 0; h < Halves; h++) sums[v][h].store(scores + v * kSoftmaxTile + h * kKeyTile);
}

// output[v][0 .. 16 * Columns) += weights[v][key] * value of the key, for keys from .. to - 1 of the tile, ascending.
template <class W, int Vectors, int Columns>
inline void add_values(const float* weights, const uint16_t* const* values, const uint16_t* const* ahead, int from, int to, int dim,
                       float* output) {
    W sums[Vectors][Columns];
    for (int v = 0; v < Vectors; v++)
        for (int c = 0; c < Columns; c++) sums[v][c] = W::load(output + v * dim + c * 16);
    for (int half = 0; half < 2; half++) {
        const int first = half * kKeyTile, begin = from > first ? from : first, end = to < first + kKeyTile ? to : first + kKeyTile;
        for (int key = begin; key < end; key++) {
            __builtin_prefetch(ahead[half] + (key - first) * dim, 0, 2);
            W value[Columns];
            for (int c = 0; c < Columns; c++) value[c] = W::load_half(values[half] + (key - first) * dim + c * 16);
            for (int v = 0; v < Vectors; v++) {
                const W weight = W::all(weights[v * kSoftmaxTile + key]);
                for (int c = 0; c < Columns; c++) sums[v][c] = W::multiply_add(weight, value[c], sums[v][c]);
            }
        }
    }
    for (int v = 0; v < Vectors; v++)
        for (int c = 0; c < Columns; c++) sums[v][c].store(output + v * dim + c * 16);
}

// The keys of a tile that a vector sees: from .. to - 1.
struct Seen {
    int from, to;
};

template <class W>
inline Seen seen_of(const AttentionWork& work, int vector, int start) {
    const int position = work.position + vector / work.heads;
    const int from = work.window > 0 ? position + 1 - work.window - start : 0, to = position + 1 - start;
    return {from > 0 ? from : 0, to < kSoftmaxTile ? to : kSoftmaxTile};
}

// Scores of one vector to weights; keys that it does not see weigh exactly nothing.
template <class W, bool Capped>
inline void soften(const AttentionWork& work, float* scores, Seen seen, float* output, float& maximum, float& total) {
    const float kLowest = -__builtin_inff();
    W left = W::load(scores) * W::all(work.scale), right = W::load(scores + kKeyTile) * W::all(work.scale);
    if constexpr (Capped) {
        left = soft_capped<W>(left, W::all(work.softcap));
        right = soft_capped<W>(right, W::all(work.softcap));
    }
    if (seen.from > 0 || seen.to < kSoftmaxTile) {
        left = W::keep(left, seen.from, seen.to, kLowest);
        right = W::keep(right, seen.from - kKeyTile, seen.to - kKeyTile, kLowest);
    }
    const float highest = W::maximum(left, right).largest();
    if (highest > maximum) {
        const W shrink = exponential<W>(W::all(maximum - highest));
        maximum = highest;
        total = total * shrink.first();
        for (int i = 0; i < work.head_dim; i += 16) (W::load(output + i) * shrink).store(output + i);
    }
    left = exponential<W>(left - W::all(maximum));
    right = exponential<W>(right - W::all(maximum));
    left.store(scores);
    right.store(scores + kKeyTile);
    total = total + (left + right).sum();
}

// All columns of `output` += weights times values, for the keys from .. to - 1.
template <class W, int Vectors>
inline void add_row_values(const float* weights, const TileAddress& tile, const TileAddress& ahead, int from, int to, int dim,
                           float* output) {
    constexpr int kColumns = 2 * Vectors <= W::kAccumulators ? 2 : 1;
    const uint16_t* values[2] = {tile.values[0], tile.values[1]};
    const uint16_t* next[2] = {ahead.values[0], ahead.values[1]};
    int column = 0;
    for (; column + 16 * kColumns <= dim; column += 16 * kColumns) {
        add_values<W, Vectors, kColumns>(weights, values, next, from, to, dim, output + column);
        for (const uint16_t*& half : values)
            if (half != nullptr) half += 16 * kColumns;
        for (const uint16_t*& half : next) half += 16 * kColumns;
    }
    if (column < dim) add_values<W, Vectors, 1>(weights, values, next, from, to, dim, output + column);
}

// One tile for `Vectors` vectors from `vector` on, each of which sees some of its keys. Keys are added in ascending order: those that
// only some vectors see, those that all see, and again those that only some see.
template <class W, bool Capped, int Vectors>
void attend_tile(const AttentionWork& work, const TileAddress& tile, const TileAddress& ahead, int start, int vector, const Attended& out) {
    constexpr bool kBoth = 2 * Vectors <= W::kAccumulators;  // two runs of accumulators fit into the registers
    const int dim = work.head_dim;
    const float* queries = work.queries + static_cast<int64_t>(vector) * dim;
    float* output = out.output + static_cast<int64_t>(vector) * dim;
    alignas(64) float weights[Vectors * kSoftmaxTile];
    const Seen first = seen_of<W>(work, vector, start), last = seen_of<W>(work, vector + Vectors - 1, start);
    if (kBoth && first.from < kKeyTile && last.to > kKeyTile) {
        score<W, Vectors, kBoth ? 2 : 1>(queries, dim, tile.keys, ahead.keys, weights);
    } else {
        for (int half = 0; half < 2; half++) {
            float* scores = weights + half * kKeyTile;
            if (first.from < (half + 1) * kKeyTile && last.to > half * kKeyTile) {
                score<W, Vectors, 1>(queries, dim, tile.keys + half, ahead.keys, scores);
            } else {
                for (int v = 0; v < Vectors; v++) W::all(0.0f).store(scores + v * kSoftmaxTile);
            }
        }
    }
    for (int v = 0; v < Vectors; v++) {
        soften<W, Capped>(work, weights + v * kSoftmaxTile, seen_of<W>(work, vector + v, start), output + static_cast<int64_t>(v) * dim,
                          out.maximum[vector + v], out.total[vector + v]);
    }
    if (first.from == last.from && first.to == last.to) {
        return add_row_values<W, Vectors>(weights, tile, ahead, first.from, first.to, dim, output);
    }
    const int begin = last.from, end = first.to > begin ? first.to : begin;
    for (int v = 0; v < Vectors; v++) {
        const Seen seen = seen_of<W>(work, vector + v, start);
        const int to = seen.to < begin ? seen.to : begin;
        add_row_values<W, 1>(weights + v * kSoftmaxTile, tile, ahead, seen.from, to, dim, output + static_cast<int64_t>(v) * dim);
    }
    add_row_values<W, Vectors>(weights, tile, ahead, begin, end, dim, output);
    for (int v = 0; v < Vectors; v++) {
        const Seen seen = seen_of<W>(work, vector + v, start);
        add_row_values<W, 1>(weights + v * kSoftmaxTile, tile, ahead, end, seen.to, dim, output + static_cast<int64_t>(v) * dim);
    }
}

template <class W, bool Capped, int Most>
void attend_vectors(const AttentionWork& work, const TileAddress& tile, const TileAddress& ahead, int start, int vector, int count,
                    const Attended& out) {
    if constexpr (Most > 1) {
        if (count < Most) return attend_vectors<W, Capped, Most - 1>(work, tile, ahead, start, vector, count, out);
    }
    attend_tile<W, Capped, Most>(work, tile, ahead, start, vector, out);
}

template <class W, bool Capped>
void attend(const AttentionWork& work, const Attended& out) {
    constexpr int kMost = W::kAccumulators < 8 ? W::kAccumulators : 8;
    const int vectors = work.rows * work.heads, end = keys_end(work);
    for (int v = 0; v < vectors; v++) {
        out.maximum[v] = -__builtin_inff();
        out.total[v] = 0.0f;
    }
    for (int64_t i = 0; i < static_cast<int64_t>(vectors) * work.head_dim; i += 16) W::all(0.0f).store(out.output + i);
    TileAddress next = tile_address<W>(work, work.begin, end);
    for (int start = work.begin; start < end; start += kSoftmaxTile) {
        // rows low .. high - 1 see some of the tile
        const int low = start > work.position ? start - work.position : 0;
        const int reach = start + kSoftmaxTile - 1 + work.window - work.position;
        const int high = work.window > 0 && reach < work.rows ? reach : work.rows;
        const TileAddress tile = next;
        next = tile_address<W>(work, start + kSoftmaxTile, end);
        const TileAddress ahead = ahead_of<W>(work, tile, start);
        for (int half = 0; half < 2 && !work.fetched; half++) {
            fetch<W>(tile.values[half], work.head_dim);
            fetch<W>(next.keys[half], work.head_dim);
        }
        int vector = low * work.heads, count = (high - low) * work.heads;
        for (int groups = (count + kMost - 1) / kMost; groups > 0; groups--) {  // as equal as can be
            const int size = (count + groups - 1) / groups;
            attend_vectors<W, Capped, kMost>(work, tile, ahead, start, vector, size, out);
            vector += size;
            count -= size;
        }
    }
}

template <class W>
void merge(const Attended& into, const Attended& part, int head_dim) {
    const float peak = *part.maximum > *into.maximum ? *part.maximum : *into.maximum;
    const W keep = exponential<W>(W::all(*into.maximum - peak)), take = exponential<W>(W::all(*part.maximum - peak));
    *into.maximum = peak;
    *into.total = *into.total * keep.first() + *part.total * take.first();
    for (int i = 0; i < head_dim; i += 16) {
        (W::load(into.output + i) * keep + W::load(part.output + i) * take).store(into.output + i);
    }
}

template <class W>
void divide(float* x, int n, float total) {
    for (int i = 0; i < n; i += 16) (W::load(x + i) / W::all(total)).store(x + i);
}

}  // namespace hybrid
