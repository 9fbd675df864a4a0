// Attention of one query row over the paged cache, in tiles of 16 keys at absolute positions 0-15, 16-31, ...
//
//   position   0 ........ 15 | 16 ....... 31 | 32 .. 37            a query at position 37: two whole tiles and one of six keys;
//   softmax    tile 0        | tile 1        | tile 2, masked      the same tiles whether it is decoded, in a chunk, or verified
//
// Online softmax (Milakov and Gimelshein 2018): per tile the running maximum, total and output are rescaled, then the tile is added.
#pragma once
#include "cache.h"
#include "elementwise.h"
#include "kernels.h"

namespace hybrid {

// out[h][0..15] += coefficients[h][i] * rows[i][0..15] for i ascending: both halves of attention, scores and outputs, are this sum.
template <class F8, int Heads>
inline void add_weighted_rows(const float* coefficients, int coefficient_stride, const uint16_t* rows, int row_stride, int count,
                              float* out, int out_stride) {
    F8 left[Heads], right[Heads];
    for (int h = 0; h < Heads; h++) {
        left[h] = F8::load(out + h * out_stride);
        right[h] = F8::load(out + h * out_stride + 8);
    }
    for (int i = 0; i < count; i++) {
        const F8 row_left = F8::load_half(rows + i * row_stride), row_right = F8::load_half(rows + i * row_stride + 8);
        for (int h = 0; h < Heads; h++) {
            const F8 c = F8::all(coefficients[h * coefficient_stride + i]);
            left[h] = F8::multiply_add(c, row_left, left[h]);
            right[h] = F8::multiply_add(c, row_right, right[h]);
        }
    }
    for (int h = 0; h < Heads; h++) {
        left[h].store(out + h * out_stride);
        right[h].store(out + h * out_stride + 8);
    }
}

template <class F8, int Heads>
void attend_heads(const AttentionRow& row, const float* query, float* output) {
    const float kLowest = -__builtin_inff();
    const int dim = row.head_dim;
    float maximum[Heads], total[Heads];
    alignas(32) float weights[Heads * kKeyTile];
    for (int h = 0; h < Heads; h++) {
        maximum[h] = kLowest;
        total[h] = 0.0f;
    }
    for (int i = 0; i < Heads * dim; i += 8) F8::all(0.0f).store(output + i);

    for (int start = 0; start <= row.position; start += kKeyTile) {
        const int count = row.position + 1 - start < kKeyTile ? row.position + 1 - start : kKeyTile;
        const int64_t tile = row.blocks[start / row.block_size] * row.block_stride + static_cast<int64_t>(start % row.block_size) * dim;

        for (int i = 0; i < Heads * kKeyTile; i += 8) F8::all(0.0f).store(weights + i);
        add_weighted_rows<F8, Heads>(query, dim, row.keys + tile, kKeyTile, dim, weights, kKeyTile);

        for (int h = 0; h < Heads; h++) {
            float* scores = weights + h * kKeyTile;
            F8 left = F8::load(scores) * F8::all(row.scale), right = F8::load(scores + 8) * F8::all(row.scale);
            if (count < kKeyTile) {  // keys after the query, and stale ones, weigh exactly nothing
                left = F8::keep_first(left, count, kLowest);
                right = F8::keep_first(right, count - 8, kLowest);
            }
            const float tile_maximum = F8::maximum(left, right).largest();
            const float peak = tile_maximum > maximum[h] ? tile_maximum : maximum[h];
            left = exponential<F8>(left - F8::all(peak));
            right = exponential<F8>(right - F8::all(peak));
            left.store(scores);
            right.store(scores + 8);
            const float shrink = exponential<F8>(F8::all(maximum[h] - peak)).first();
            maximum[h] = peak;
            total[h] = total[h] * shrink + (left + right).sum();
            for (int i = 0; i < dim; i += 8) (F8::load(output + h * dim + i) * F8::all(shrink)).store(output + h * dim + i);
        }
        for (int i = 0; i < dim; i += 16)
            add_weighted_rows<F8, Heads>(weights, kKeyTile, row.values + tile + i, dim, count, output + i, dim);
    }
    for (int h = 0; h < Heads; h++)
        for (int i = 0; i < dim; i += 8) (F8::load(output + h * dim + i) / F8::all(total[h])).store(output + h * dim + i);
}

// Heads are taken up to four at a time, which share each conversion of a key or value; a head's sums do not depend on the grouping.
template <class F8>
void attend(const AttentionRow& row) {
    for (int head = 0; head < row.heads;) {
        const float* query = row.query + head * row.head_dim;
        float* output = row.output + head * row.head_dim;
        const int left = row.heads - head;
        if (left >= 4) attend_heads<F8, 4>(row, query, output);
        else if (left == 3) attend_heads<F8, 3>(row, query, output);
        else if (left == 2) attend_heads<F8, 2>(row, query, output);
        else attend_heads<F8, 1>(row, query, output);
        head += left < 4 ? left : 4;
    }
}

}  // namespace hybrid
