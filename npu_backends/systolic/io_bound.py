"""The least that must cross between DRAM and SRAM for a product, whatever the tiling.

Every operand in DRAM crosses at least once. Beyond that, with S bytes of SRAM, no schedule does a product in less than
2 m n k / sqrt(S) - 2 S (Hong and Kung 1981; the constants by Smith and van de Geijn, 2017); sizes of elements enter as the square root of
their product. The often quoted 2 m n k / sqrt(S) + m n holds only where k is well above sqrt(S): a product that keeps one operand whole and
needs each output once does with less, so it isn't used here.
"""

from __future__ import annotations

import math

from .gemm import Gemm


def io_bound_bytes(gemm: Gemm, sram_bytes: int) -> int:
    crossing = gemm.weight_bytes(gemm.k, gemm.n)
    crossing += gemm.input_bytes(gemm.m, gemm.k) if gemm.inputs_in == "dram" else 0
    crossing += gemm.output_bytes(gemm.m, gemm.n) if gemm.outputs_in == "dram" else 0
    if "sram" in (gemm.inputs_in, gemm.outputs_in):
        return crossing  # the other bound is for operands that all live in DRAM
    element = gemm.input_bits * gemm.weight_bits * min(gemm.output_bits, gemm.sum_bits) / 512
    reloading = 2 * gemm.m * gemm.n * gemm.k * math.sqrt(element / sram_bytes) - 2 * sram_bytes
    return max(crossing, math.floor(reloading))
