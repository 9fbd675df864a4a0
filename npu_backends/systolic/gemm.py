"""One product as the tiling sees it: three sizes, bits of an element, and where its inputs and outputs live."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ...shared_protocol.errors import InvalidRequest

Place = Literal["dram", "sram"]


@dataclass(frozen=True, slots=True)
class Gemm:
    """[m,k] times [k,n]. `weight_bits` counts a weight's share of its scales: int4 with a float32 scale for 32 of them has 5.

    Weights are in DRAM, in the order in which their tiles are read. What is in `sram` costs no transfer; its room there is another plan's.
    """

    m: int
    n: int
    k: int
    input_bits: float = 8
    weight_bits: float = 8
    output_bits: float = 32
    inputs_in: Place = "dram"
    outputs_in: Place = "dram"

    sum_bits = 32  # an accumulator

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            if getattr(self, name) < 1:
                raise InvalidRequest(f"a product has {name} = {getattr(self, name)}", param=name, hint="each size is at least 1")
        for name in ("input_bits", "weight_bits", "output_bits"):
            if not 1 <= getattr(self, name) <= 64:
                raise InvalidRequest(f"{name} must be from 1 to 64, found {getattr(self, name)}", param=name)

    @property
    def macs(self) -> int:
        return self.m * self.n * self.k

    def input_bytes(self, tm: int, tk: int) -> int:
        return math.ceil(tm * tk * self.input_bits / 8)

    def weight_bytes(self, tk: int, tn: int) -> int:
        return math.ceil(tk * tn * self.weight_bits / 8)

    def output_bytes(self, tm: int, tn: int) -> int:
        return math.ceil(tm * tn * self.output_bits / 8)

    def sum_bytes(self, tm: int, tn: int) -> int:
        return tm * tn * self.sum_bits // 8
