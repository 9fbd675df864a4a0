// GGUF blocks into panels: what quant/repack.py does, for whole models. First a block is taken apart into codes of a byte and its scales,
// then these are laid into the planes, four inputs at a time.
#include <algorithm>
#include <cstring>

#include "matrix.h"
#include "panels.h"

namespace hybrid {

namespace {

struct Block {
    uint8_t codes[kSuper * kGroup];
    uint8_t fields[kSuper][4];  // of each group
    uint8_t header[4];
};

constexpr uint8_t kZeros[256] = {};  // a block of a row that is not there
constexpr uint32_t kOfEveryByte = 0x01010101u;

inline uint32_t four(const uint8_t* bytes) {
    uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

// n bytes to n low nibbles, then n high ones
template <int N>
inline void split_nibbles(const uint8_t* bytes, uint8_t* codes) {
    for (int i = 0; i < N; i++) {
        codes[i] = bytes[i] & 15;
        codes[N + i] = bytes[i] >> 4;
    }
}

// 2-bit codes: of 32 bytes, bits 2j and 2j + 1 of byte l are weight 32 j + l
inline void add_twos(const uint8_t* bytes, int shift, uint8_t* codes) {
    for (int i = 0; i < kSuper * kGroup; i++) {
        codes[i] = static_cast<uint8_t>(codes[i] | (bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3) << shift);
    }
}

// 1-bit codes: bit j of byte l is weight 32 j + l
inline void add_ones(const uint8_t* bytes, int shift, uint8_t* codes) {
    for (int i = 0; i < kSuper * kGroup; i++) codes[i] = static_cast<uint8_t>(codes[i] | (bytes[i % 32] >> (i / 32) & 1) << shift);
}

// six bits of scale and minimum for each of eight groups from 12 bytes
inline void split_scales(const uint8_t* bytes, uint8_t (*fields)[4]) {
    for (int i = 0; i < 4; i++) {
        fields[i][0] = bytes[i] & 63;
        fields[i][1] = bytes[4 + i] & 63;
        fields[4 + i][0] = static_cast<uint8_t>((bytes[8 + i] & 15) | bytes[i] >> 6 << 4);
        fields[4 + i][1] = static_cast<uint8_t>(bytes[8 + i] >> 4 | bytes[4 + i] >> 6 << 4);
    }
}

// The layouts of the blocks are drawn in quant/blocks_32.py, blocks_k.py and blocks_iq4.py.
template <int K>
void read_block(const uint8_t* from, Block& to) {
    if constexpr (kLayouts[K].header == 0) {
        constexpr int kScales = kLayouts[K].fields;
        std::memcpy(to.fields[0], from, kScales);
        if constexpr (K == kQ8_0) {
            std::memcpy(to.codes, from + kScales, kGroup);
        } else if constexpr (K == kQ5_0 || K == kQ5_1) {
            split_nibbles<16>(from + kScales + 4, to.codes);
            for (int i = 0; i < kGroup; i++) to.codes[i] = static_cast<uint8_t>(to.codes[i] | (from[kScales + i / 8] >> (i % 8) & 1) << 4);
        } else {
            split_nibbles<16>(from + kScales, to.codes);
        }
    } else if constexpr (K == kQ4_K || K == kQ5_K) {
        std::memcpy(to.header, from, 4);
        split_scales(from + 4, to.fields);
        for (int i = 0; i < 4; i++) split_nibbles<32>(from + (K == kQ4_K ? 16 : 48) + 32 * i, to.codes + 64 * i);
        if constexpr (K == kQ5_K) add_ones(from + 16, 4, to.codes);
    } else if constexpr (K == kQ6_K) {
        for (int i = 0; i < 2; i++) split_nibbles<64>(from + 64 * i, to.codes + 128 * i);
        add_twos(from + 128, 4, to.codes);
        for (int i = 0; i < kSuper; i++) std::memcpy(to.fields[i], from + 192 + 2 * i, 2);
        std::memcpy(to.header, from + 208, 2);
    } else if constexpr (K == kQ3_K) {
        std::memset(to.codes, 0, sizeof to.codes);
        add_twos(from + 32, 0, to.codes);
        add_ones(from, 2, to.codes);
        for (int i = 0; i < 16; i++) {
            const int low = from[96 + i % 8] >> (i / 8 * 4) & 15, high = from[104 + i % 4] >> (i / 4 * 2) & 3;
            to.fields[i / 2][i % 2] = static_cast<uint8_t>((low | high << 4) - 32);
        }
        std::memcpy(to.header, from + 108, 2);
    } else if constexpr (K == kQ2_K) {
        std::memset(to.codes, 0, sizeof to.codes);
        add_twos(from + 16, 0, to.codes);
        for (int i = 0; i < kSuper; i++) std::memcpy(to.fields[i], from + 2 * i, 2);
        std::memcpy(to.header, from + 80, 4);
    } else {  // IQ4_XS
        std::memcpy(to.header, from, 2);
        for (int i = 0; i < kSuper; i++) {
            split_nibbles<16>(from + 8 + 16 * i, to.codes + kGroup * i);
            const int low = from[4 + i / 2] >> (i % 2 * 4) & 15, high = from[2 + i / 4] >> (i % 4 * 2) & 3;
            to.fields[i][0] = static_cast<uint8_t>((low | high << 4) - 32);
        }
    }
}

// The 32 codes of one row of a group, into the planes of the group.
template <int K>
void write_codes(const uint8_t* codes, uint8_t* group, int row) {
    constexpr int kPlanes = code_bytes(K);
    uint8_t* to = group + 4 * row;
    int shift = 0;
    const auto bits_of = [&](int word, uint32_t mask) { return four(codes + 4 * word) >> shift & mask * kOfEveryByte; };
    const auto put = [&](uint32_t word) {
        std::memcpy(to, &word, sizeof word);
        to += 64;
    };
    if constexpr (kPlanes == kBytes) {
        for (int word = 0; word < kWords; word++) put(four(codes + 4 * word));
    }
    if constexpr ((kPlanes & kNibbles) != 0) {
        for (int word = 0; word < 4; word++) put(bits_of(word, 15) | bits_of(word + 4, 15) << 4);
        shift = 4;
    }
    if constexpr ((kPlanes & kTwos) != 0) {
        for (int word = 0; word < kWords; word += 4) {
            put(bits_of(word, 3) | bits_of(word + 1, 3) << 2 | bits_of(word + 2, 3) << 4 | bits_of(word + 3, 3) << 6);
        }
        shift += 2;
    }
    if constexpr ((kPlanes & kOnes) != 0) {
        uint32_t byte = 0;
        for (int word = 0; word < kWords; word++) byte |= bits_of(word, 1) << word;
        put(byte);
    }
}

template <int K>
void write_block(const Block& block, uint8_t* unit, int row) {
    constexpr int kRun = K == kQ4_K || K == kQ5_K ? 1 : kLayouts[K].fields == 1 ? 1 : 2;  // bytes that a row has side by side
    for (int i = 0; i < kLayouts[K].header; i++) std::memcpy(unit + 2 * kPanel * i + 2 * row, block.header + 2 * i, 2);
    uint8_t* group = unit + header_bytes(K);
    for (int g = 0; g < unit_groups(K); g++, group += group_bytes(K)) {
        write_codes<K>(block.codes + g * kGroup, group, row);
        uint8_t* fields = group + code_bytes(K);
        for (int i = 0; i < kLayouts[K].fields; i += kRun) std::memcpy(fields + kPanel * i + kRun * row, block.fields[g] + i, kRun);
    }
}

// Rows first .. first + 15 of the matrix, as far as there are any; the others are zero blocks.
template <int K>
void pack_panel(const uint8_t* blocks, int64_t block_bytes, int rows, int columns, int first, uint8_t* panel) {
    const int units = columns / kGroup / unit_groups(K), present = std::min(kPanel, rows - first);
    const int64_t row_bytes = is_float(K) ? columns * block_bytes : units * block_bytes;
    const uint8_t* from = blocks + first * row_bytes;
    if constexpr (is_float(K)) {
        constexpr int kSize = code_bytes(K) / (kGroup * kPanel);
        if (present < kPanel) std::memset(panel, 0, static_cast<size_t>(panel_bytes(K, columns)));
        for (int row = 0; row < present; row++) {
            for (int i = 0; i < columns; i++) std::memcpy(panel + (i * kPanel + row) * kSize, from + row * row_bytes + i * kSize, kSize);
        }
    } else {
        Block block;
        for (int u = 0; u < units; u++, from += block_bytes, panel += unit_bytes(K)) {
            for (int row = 0; row < kPanel; row++) {
                read_block<K>(row < present ? from + row * row_bytes : kZeros, block);
                write_block<K>(block, panel, row);
            }
        }
    }
}

using PackPanel = void (*)(const uint8_t*, int64_t, int, int, int, uint8_t*);

#define HYBRID_PACK(K) pack_panel<K>,
constexpr PackPanel kPackPanel[kKinds] = {HYBRID_FOR_EVERY_KIND(HYBRID_PACK)};
#undef HYBRID_PACK

}  // namespace

void pack(int kind, const uint8_t* blocks, int64_t block_bytes, int rows, int columns, uint8_t* panels) {
    for (int first = 0; first < rows; first += kPanel) {
        kPackPanel[kind](blocks, block_bytes, rows, columns, first, panels + first / kPanel * panel_bytes(kind, columns));
    }
}

}  // namespace hybrid
