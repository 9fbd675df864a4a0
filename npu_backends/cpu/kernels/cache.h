// The paged KV cache in f16: per layer, block and KV head, keys and values of block_size positions.
//
//   keys of one block and head, tiles of 16 positions      values of one block and head
//   input 0  | position 0 .. 15 |  tile 0                  position 0 | input 0 .. head_dim - 1 |
//   input 1  | position 0 .. 15 |                          position 1 | input 0 .. head_dim - 1 |
//   ...                                                    ...
//   input 0  | position 16 .. 31 | tile 1
//
// Keys lie across, so that 16 scores grow side by side without a sum over lanes. A block size that is a multiple of 16 puts every
// tile of absolute positions 16t .. 16t + 15 inside one block, whatever the block size.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>

namespace hybrid {

constexpr int kKeyTile = 16;  // positions whose keys lie together, at multiples of 16

class Cache {
   public:
    Cache(int layers, int num_blocks, int kv_heads, int block_size, int head_dim)
        : kv_heads_(kv_heads),
          head_dim_(head_dim),
          head_stride_(static_cast<int64_t>(block_size) * head_dim),
          layer_stride_(head_stride_ * kv_heads * num_blocks),
          elements_(layer_stride_ * layers) {
        // calloc: pages of blocks that were never used cost no memory
        memory_ = static_cast<uint16_t*>(std::calloc(static_cast<size_t>(elements_) * 2 + 32, sizeof(uint16_t)));
        if (memory_ == nullptr) throw std::bad_alloc();
        keys_ = reinterpret_cast<uint16_t*>((reinterpret_cast<uintptr_t>(memory_) + 63) & ~static_cast<uintptr_t>(63));
        values_ = keys_ + elements_;
    }
    ~Cache() { std::free(memory_); }
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    int64_t bytes() const { return elements_ * 2 * static_cast<int64_t>(sizeof(uint16_t)); }
    int64_t block_stride() const { return head_stride_ * kv_heads_; }
    const uint16_t* keys(int layer, int head) const { return keys_ + layer * layer_stride_ + head * head_stride_; }
    const uint16_t* values(int layer, int head) const { return values_ + layer * layer_stride_ + head * head_stride_; }

    void store_key(int layer, int head, int block, int offset, const uint16_t* key) {
        uint16_t* tile = keys_ + at(layer, head, block) + static_cast<int64_t>(offset / kKeyTile) * kKeyTile * head_dim_;
        for (int i = 0; i < head_dim_; i++) tile[i * kKeyTile + offset % kKeyTile] = key[i];
    }
    uint16_t* value_at(int layer, int head, int block, int offset) {
        return values_ + at(layer, head, block) + static_cast<int64_t>(offset) * head_dim_;
    }

   private:
    int64_t at(int layer, int head, int block) const { return layer * layer_stride_ + block * block_stride() + head * head_stride_; }

    int kv_heads_, head_dim_;
    int64_t head_stride_, layer_stride_, elements_;
    uint16_t* memory_ = nullptr;
    uint16_t* keys_ = nullptr;
    uint16_t* values_ = nullptr;
};

}  // namespace hybrid
