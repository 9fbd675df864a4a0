"""Joules of work: multiply-accumulates and bytes moved, at what the chip's preset says of each. No leakage, no clock, no idle time."""

from __future__ import annotations

from ..spec import Energy


def joules(energy: Energy, *, macs: int, sram_bytes: int, dram_bytes: int) -> float:
    picojoules = macs * energy.pj_per_mac + sram_bytes * energy.pj_per_sram_byte + dram_bytes * energy.pj_per_dram_byte
    return picojoules * 1e-12
