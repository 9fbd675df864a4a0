"""The chips of a compilation, and what is asked of them beyond the six members that every adapter has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..npu_backends.base import Adapter, Cost, Segment, Tiles, Tiling, Works
from ..npu_backends.cpu.adapter import CpuAdapter
from ..npu_backends.ir.op import Op
from ..npu_backends.preset import load_preset
from ..npu_backends.spec import Provenance, Spec
from ..npu_backends.systolic.adapter import SystolicAdapter

NPU, CPU = "systolic", "cpu"  # the adapters' names
HOST = "host-cpu"  # the preset of the processor beside every chip
HOST_SHARE = 0.5  # of the memory's pace, for the processor: its few misses under way do not fill the bus as a DMA does. Assumed


def host_beside(target: Spec) -> Spec:
    """The processor as it stands beside a chip: before the same memory, which cannot be faster for it than for the chip."""
    host = load_preset(HOST)
    pace = min(dram_bytes_per_second(host), HOST_SHARE * dram_bytes_per_second(target))
    dram = replace(host.dram, bytes=target.dram.bytes, bytes_per_cycle=pace / host.clock_hz)
    said = Provenance("dram", f"the memory of {target.name}, of whose pace a processor is taken to get {HOST_SHARE:.0%}", "assumed")
    return replace(host, dram=dram, provenance=(*host.provenance, said))


def chips_of(target: Spec, host: Spec) -> dict[str, Adapter]:
    """The simulated chip, and the processor that runs what it refuses, by the names that segments have."""
    return {NPU: SystolicAdapter(target), CPU: CpuAdapter(host)}


def tiling_on(chip: Adapter, op: Op) -> Tiling | None:
    """What the compiler chooses for a supported operation. Raises DoesNotFit."""
    return chip.tiling(op) if isinstance(chip, Tiles) else None


def working_bytes(chip: Adapter, op: Op, tiling: Tiling | None) -> int:
    """Bytes of the chip's own memory that the operation works in."""
    return chip.working_bytes(op, tiling) if isinstance(chip, Tiles) else 0


def scratch_bytes(chip: Adapter, segment: Segment, tilings: Mapping[str, Tiling]) -> int:
    """Bytes of the host's memory that a run of the segment computes in, beside its values."""
    return chip.scratch_bytes(segment, tilings) if isinstance(chip, Works) else 0


def cost_on(chip: Adapter, op: Op) -> Cost:
    return chip.cost(op, tiling_on(chip, op))


def hidden_dma(chip: Adapter, op: Op, tiling: Tiling | None) -> float | None:
    """The part of the operation's transfers that costs no time, 0 to 1; None where that is not known."""
    return chip.hidden_dma(op, tiling) if isinstance(chip, SystolicAdapter) else None


def dram_bytes_per_second(spec: Spec) -> float:
    return spec.dram.sustained_bytes_per_cycle * spec.clock_hz
