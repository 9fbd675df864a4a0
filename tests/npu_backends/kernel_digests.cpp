// Runs every function of one table of kernels on the same numbers and prints a digest of each result. Two instruction sets that round
// alike print the same lines. Compiled with -DKERNELS=kAvx2Kernels or the like, for whatever machine the compiler is for.
#include <cstdio>
#include <cstring>
#include <vector>

#include "../../npu_backends/cpu/kernels/cache.h"
#include "../../npu_backends/cpu/kernels/kernels.h"

using namespace hybrid;

namespace {

uint64_t state = 1;

uint32_t next_bits() {  // Knuth's MMIX generator, its upper half
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
}

// Every operation is exact, so that all machines draw the same: whole numbers below 2^16 times a power of two from 2^-20 to 2^-13.
float next_float() {
    const float whole = static_cast<float>(static_cast<int32_t>(next_bits() >> 15) - 65536);
    return whole * (1.0f / 8192) / static_cast<float>(1 << (next_bits() >> 29));
}

std::vector<float> floats(int count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = next_float();
    return values;
}

template <class T>
void print(const char* name, int first, int second, const std::vector<T>& values) {
    uint64_t digest = 14695981039346656037u;  // FNV-1a
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(values.data());
    for (size_t i = 0; i < values.size() * sizeof(T); i++) digest = (digest ^ bytes[i]) * 1099511628211u;
    std::printf("%s %d %d %016llx\n", name, first, second, static_cast<unsigned long long>(digest));
}

// f16 of any sign and fraction, exponents from subnormal to 2^7
void fill_halves(uint8_t* to, int count) {
    for (int i = 0; i < count; i++) {
        const uint16_t half = static_cast<uint16_t>(next_bits() >> 16) & 0xd7ffu;
        std::memcpy(to + 2 * i, &half, sizeof half);
    }
}

// A panel of random codes and finite scales.
std::vector<uint8_t> panel_of(int kind, int columns) {
    std::vector<uint8_t> panel(static_cast<size_t>(panel_bytes(kind, columns)) + 64);
    for (uint8_t& byte : panel) byte = static_cast<uint8_t>(next_bits() >> 24);
    uint8_t* at = panel.data();
    for (int unit = 0; unit < columns / kGroup; unit += unit_groups(kind)) {
        fill_halves(at, header_bytes(kind) / 2);
        at += header_bytes(kind);
        for (int g = 0; g < unit_groups(kind); g++, at += group_bytes(kind)) {
            if (kind == kF32) {
                const std::vector<float> values = floats(kGroup * kPanel);
                std::memcpy(at, values.data(), values.size() * sizeof(float));
            } else if (is_float(kind)) {
                fill_halves(at, kGroup * kPanel);
            } else if (kLayouts[kind].header == 0) {
                fill_halves(at + code_bytes(kind), kPanel * kLayouts[kind].fields / 2);
            }
        }
    }
    return panel;
}

void multiply(const Kernels& kernels) {
    constexpr int kRows = 19, kColumns = 768;
    const std::vector<float> x = floats(kRows * kColumns);
    std::vector<int8_t> codes(x.size());
    std::vector<GroupScale> scales(x.size() / kGroup);
    kernels.row.quantise(x.data(), kRows * kColumns, codes.data(), scales.data());
    print("codes", kRows, kColumns, codes);
    print("scales", kRows, kColumns, scales);
    for (int kind = 0; kind < kKinds; kind++) {
        const std::vector<uint8_t> panel = panel_of(kind, kColumns);
        for (int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, kRows - 1}) {
            std::vector<float> out(static_cast<size_t>(rows) * kPanel);
            kernels.gemm[kind](panel.data(), 1, Activations{codes.data(), scales.data(), kColumns}, 1, rows, out.data(), kPanel);
            print("gemm", kind, rows, out);
        }
    }
}

void change_rows(const RowKernels& row) {
    constexpr int kCount = 160;
    const std::vector<float> x = floats(kCount), y = floats(kCount);
    std::vector<float> out(kCount);
    row.rms_norm(x.data(), y.data(), kCount, 1e-5f, out.data());
    print("rms_norm", kCount, 0, out);
    const auto changed = [&](const char* name, int which, auto&& change) {
        out = x;
        change(out.data());
        print(name, which, 0, out);
    };
    changed("add", 0, [&](float* to) { row.add(to, y.data(), kCount); });
    changed("rotate_interleaved", 0, [&](float* to) { row.rotate_interleaved(to, y.data(), kCount / 2); });
    changed("rotate_halves", 0, [&](float* to) { row.rotate_halves(to, y.data(), kCount / 2); });
    for (int i = 0; i < 2; i++) changed("gate_multiply", i, [&](float* to) { row.gate_multiply[i](to, y.data(), kCount); });
    changed("soft_cap", 0, [&](float* to) { row.soft_cap(to, kCount, 3.0f); });
    changed("divide", 0, [&](float* to) { row.divide(to, kCount, 3.0f); });
    std::vector<uint16_t> halves(kCount);
    row.to_f16(x.data(), kCount, halves.data());
    print("to_f16", kCount, 0, halves);
}

void attend(const Kernels& kernels) {
    const RowKernels& row = kernels.row;
    constexpr int kBlock = 32, kBlocks = 4, kRows = 3, kPosition = 75;
    const int32_t table[kBlocks] = {2, 0, 3, 1};
    for (int dim : {16, 64, 80}) {
        for (int heads : {1, 2, 3, 5}) {
            std::vector<uint16_t> keys(static_cast<size_t>(kBlocks * kBlock * dim)), values(keys.size());
            row.to_f16(floats(static_cast<int>(keys.size())).data(), static_cast<int>(keys.size()), keys.data());
            row.to_f16(floats(static_cast<int>(keys.size())).data(), static_cast<int>(keys.size()), values.data());
            const int vectors = kRows * heads;
            const std::vector<float> queries = floats(vectors * dim);
            for (int window : {0, 40}) {
                for (int capped = 0; capped < 2; capped++) {
                    std::vector<float> whole(static_cast<size_t>(vectors) * (static_cast<size_t>(dim) + 2)), part(whole.size());
                    const auto places = [&](std::vector<float>& to) {
                        return Attended{to.data(), to.data() + vectors * dim, to.data() + vectors * (dim + 1)};
                    };
                    AttentionWork work{queries.data(), kRows, heads, dim, kPosition, window, 0, 64, keys.data(), values.data(), table, kBlock,
                                       static_cast<int64_t>(kBlock) * dim, 0.125f, 5.0f};
                    kernels.attend[capped](work, places(whole));
                    work.begin = 64;
                    work.end = 96;
                    kernels.attend[capped](work, places(part));
                    print("attend", dim * 10 + heads, window + capped, whole);
                    for (int v = 0; v < vectors; v++) {
                        const auto of = [&](std::vector<float>& to) {
                            const Attended all = places(to);
                            return Attended{all.output + v * dim, all.maximum + v, all.total + v};
                        };
                        row.merge(of(whole), of(part), dim);
                    }
                    print("merge", dim * 10 + heads, window + capped, whole);
                }
            }
        }
    }
}

}  // namespace

int main() {
    multiply(KERNELS);
    change_rows(KERNELS.row);
    attend(KERNELS);
    return 0;
}
