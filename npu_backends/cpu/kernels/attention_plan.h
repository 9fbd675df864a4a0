// How the attention of one step is cut into work items; what is computed for a row does not depend on it.
//
//   keys         0 ...... 255 | 256 ..... 511 | 512 .. 600       parts at absolute positions, each with its own softmax,
//   query rows   block 0: rows of sequence 0, up to 48 vectors   merged in ascending order always, whoever computed them
//                block 1: more rows of sequence 0
//                block 2: rows of sequence 1
#pragma once
#include <vector>

#include "api.h"

namespace hybrid {

constexpr int kPart = 256;     // keys
constexpr int kVectors = 48;   // query heads of a block that share one KV head, if one row has no more

inline int block_rows(const HybridModelSpec& spec) {
    const int rows = kVectors / (spec.heads / spec.kv_heads);
    return rows > 1 ? rows : 1;
}

// Consecutive rows of one sequence.
struct QueryBlock {
    int first, rows, sequence;
    int position;    // of the first row
    int first_part;  // index among the parts of all blocks
    int parts;       // that its last row sees, from key 0 on
};

struct AttentionPlan {
    // Sees the batch as it is for every layer: windows only leave parts empty.
    void make(const HybridBatch& batch, const HybridModelSpec& spec);

    std::vector<QueryBlock> blocks;
    std::vector<int> block_of_part;  // [parts of all blocks]
    bool split;                      // the parts of a block are items of their own: few rows, long contexts
};

}  // namespace hybrid
