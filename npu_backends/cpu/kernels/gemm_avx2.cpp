// Panels times int8 rows with AVX2, in tiles of up to six rows by sixteen columns (tile_avx2.h).
//
// Few rows read the panel once. More of them share it chunk by chunk: the first tile unpacks 8 groups on its way, the others take them
// from there, sums waiting in memory. Each asks for some lines of the next chunk, so that memory is never asked for much at once.
//
//   | 8 groups: tile 0 unpacks, tile 1, tile 2, .. | next 8 groups: tile 0 unpacks, .. |
//
// Many rows of signed codes: they are folded before tile 0, which makes every tile cheaper (unpack_avx2.h).
//
// Neither tiles nor chunks change the order of operations for a row.
#include <type_traits>

#include "kernels.h"

#if defined(__x86_64__)
#include "cache.h"
#include "target_avx2.h"
// after target_avx2.h, for its target:
#include "row_kernels.h"
#include "tile_avx2.h"
#include "vec_avx2.h"

namespace hybrid {

namespace {

constexpr int kHighest = 6;       // rows of the largest tile
constexpr int kTile = 4;          // rows of the fastest
constexpr int kRowsAtOnce = 64;   // whose sums wait in memory while a chunk is taken through
constexpr int kRowsToFold = 16;   // from which on the tiles of signed codes win back what folding costs
constexpr int kAhead = 12288;     // bytes fetched ahead in the stream of panels: one row is a fifth faster than with 2560

// Five or six rows are one tile rather than four and a rest.
inline int next_height(int rows) { return rows <= kHighest ? rows : kTile; }

// The groups of a panel one after the other.
template <int K>
class Reader {
   public:
    explicit Reader(const uint8_t* panel) : at_(panel), header_(panel) {}

    const uint8_t* at() const { return at_; }

    // Fetch: ask for the group that comes kAhead later
    template <bool Fetch = true>
    InPanel<K> next() {
        if (group_++ % unit_groups(K) == 0) {
            header_ = at_;
            at_ += header_bytes(K);
        }
        const uint8_t* group = at_;
        at_ += group_bytes(K);
        if constexpr (Fetch) {
            for (int line = 0; line < group_bytes(K); line += 64) _mm_prefetch(reinterpret_cast<const char*>(group + kAhead + line), _MM_HINT_T0);
        }
        return {header_, group};
    }

   private:
    const uint8_t *at_, *header_;
    int group_ = 0;
};

// Sums of a tile that go on from chunk to chunk: [rows], `stride` floats apart.
struct Sums {
    float* at;
    int64_t stride;
    Sums from(int row) const { return {at + row * stride, stride}; }
};

// Rows first .. first + Rows - 1 against groups start .. start + count - 1, each from source(g); sums begin at 0 with the first group.
template <int K, int Rows, class Source>
inline void tile(Source source, int start, int count, const Activations& inputs, int first, Sums kept) {
    const int8_t* codes = inputs.row_codes(first) + start * kGroup;
    const GroupScale* scales = inputs.row_scales(first) + start;
    const int groups = inputs.groups();
    __m256 sums[Rows][2];
    for (int r = 0; r < Rows; r++) {
        for (int side = 0; side < 2; side++) {
            sums[r][side] = start == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(kept.at + r * kept.stride + 8 * side);
        }
    }
    for (int g = 0; g < count; g++, codes += kGroup, scales++) {
        if constexpr (is_float(K)) add_float_group<K, Rows>(source(g).group, codes, inputs.columns, scales, groups, sums);
        else add_group<K, Rows>(source(g), codes, inputs.columns, scales, groups, sums);
    }
    for (int r = 0; r < Rows; r++) {
        for (int side = 0; side < 2; side++) _mm256_storeu_ps(kept.at + r * kept.stride + 8 * side, sums[r][side]);
    }
}

// `tile` for a height that is known at run time only.
template <int K, class Source>
inline void tile_of(int height, Source source, int start, int count, const Activations& inputs, int first, Sums kept) {
    switch (height) {
        case 1: return tile<K, 1>(source, start, count, inputs, first, kept);
        case 2: return tile<K, 2>(source, start, count, inputs, first, kept);
        case 3: return tile<K, 3>(source, start, count, inputs, first, kept);
        case 4: return tile<K, 4>(source, start, count, inputs, first, kept);
        case 5: return tile<K, 5>(source, start, count, inputs, first, kept);
        default: return tile<K, 6>(source, start, count, inputs, first, kept);
    }
}

// More rows than a tile has, from groups that are `Form`.
template <int K, class Form>
void share(const uint8_t* panel, const Activations& inputs, int first, int rows, Sums out) {
    constexpr bool kFolded = std::is_same_v<Form, Folded<K>>;
    Form unpacked[kSuper];
    alignas(64) float memory[kRowsAtOnce][kPanel];  // not `out`: rows that lie a power of two apart would share few lines of the cache
    const Sums sums{memory[0], kPanel};
    constexpr int kChunkBytes = header_bytes(K) + kSuper * group_bytes(K);
    const int tiles = (rows - kHighest + kTile - 1) / kTile + 1, lines = (kChunkBytes / 64 + tiles) / tiles;
    Reader<K> reader(panel);
    for (int start = 0; start < inputs.groups(); start += kSuper) {
        const int count = inputs.groups() - start < kSuper ? inputs.groups() - start : kSuper;
        const uint8_t* ahead = reader.at() + kChunkBytes;
        const auto fetch = [&] {
            for (int i = 0; i < lines; i++, ahead += 64) _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T0);
        };
        int r = 0;
        if constexpr (kFolded) {
            for (int g = 0; g < count; g++) unpacked[g].fill(reader.template next<false>());
        } else {
            fetch();
            const auto source = [&](int g) { return Unpacking<K>{reader.template next<false>(), unpacked + g}; };
            tile<K, kTile>(source, start, count, inputs, first, sums);
            r = kTile;
        }
        for (; r < rows; r += next_height(rows - r)) {
            fetch();
            const auto source = [&](int g) -> const Form& { return unpacked[g]; };
            tile_of<K>(next_height(rows - r), source, start, count, inputs, first + r, sums.from(r));
        }
    }
    for (int r = 0; r < rows; r++) __builtin_memcpy(out.at + r * out.stride, memory[r], sizeof memory[r]);
}

template <int K>
void gemm(const uint8_t* panel, const Activations& inputs, int first, int rows, float* out, int out_stride) {
    const Sums sums{out, out_stride};
    for (int r = 0; r < rows;) {
        const int left = rows - r, at_once = left < kRowsAtOnce ? left : kRowsAtOnce, height = next_height(left);
        if constexpr (!is_float(K)) {
            if (left > kHighest) {
                if constexpr (is_signed(K)) {
                    if (at_once >= kRowsToFold) {
                        share<K, Folded<K>>(panel, inputs, first + r, at_once, sums.from(r));
                        r += at_once;
                        continue;
                    }
                }
                share<K, Unpacked<K>>(panel, inputs, first + r, at_once, sums.from(r));
                r += at_once;
                continue;
            }
        }
        Reader<K> reader(panel);
        tile_of<K>(height, [&](int) { return reader.next(); }, 0, inputs.groups(), inputs, first + r, sums.from(r));
        r += height;
    }
}

}  // namespace

constexpr RowKernels kAvx2RowKernels = row_kernels<Avx8>();

#define HYBRID_GEMM(K) one_by_one<K, gemm<K>>,
constexpr Kernels kAvx2Kernels = {
    "avx2",
    "avx2-3",
    {HYBRID_FOR_EVERY_KIND(HYBRID_GEMM)},
    {attend<Pair<Avx8>, false>, attend<Pair<Avx8>, true>},
    kAvx2RowKernels,
};
#undef HYBRID_GEMM

}  // namespace hybrid

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
