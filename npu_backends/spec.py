"""A chip as data: its array, its memories, its clock, its energy, and who says so.

Everything that a cost depends on is here and nothing else is: the planner, the simulator and the report read the same numbers. A number
that no chip could have is refused where the spec is made, with the dotted key that a preset file has for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..shared_protocol.errors import ConfigError

Dataflow = Literal["os", "ws", "is"]  # which operand stays in the array: outputs, weights, inputs
Kind = Literal["vendor", "measured", "claimed", "assumed"]  # the maker's, someone's stopwatch, someone's word, ours
DATAFLOWS: tuple[Dataflow, ...] = get_args(Dataflow)
KINDS: tuple[Kind, ...] = get_args(Kind)
# of the weights, in what the array multiplies; f16 and f32: it also multiplies floats, as attention does
WEIGHT_FORMATS = ("int8_channel", "int8_group32", "int4_group32", "f16", "f32")
DEEPEST_GROUP = 32  # inputs that share one scale, in the widest of the formats by group

LIMITS: dict[str, tuple[float, float]] = {
    # What a number may be, both ends included. The ends are an order of magnitude beyond any chip that is sold.
    "array.rows": (1, 4096),
    "array.cols": (1, 4096),
    "clock_hz": (1e6, 1e10),
    "vector_lanes": (0, 65_536),
    "alignment": (1, 4096),
    "launch_cycles": (0, 1_000_000_000),
    "bytes": (1024, 2**44),
    "bytes_per_cycle": (2**-10, 65_536),
    "latency_cycles": (0, 1_000_000),
    "burst_bytes": (1, 65_536),
    "outstanding": (1, 65_536),
    "energy.pj_per_mac": (1e-6, 1e6),
    "energy.pj_per_sram_byte": (1e-6, 1e6),
    "energy.pj_per_dram_byte": (1e-6, 1e6),
}
WHOLE = {"array.rows", "array.cols", "vector_lanes", "alignment", "launch_cycles", "bytes", "latency_cycles", "burst_bytes", "outstanding"}

MEMORY = ("bytes", "bytes_per_cycle", "latency_cycles", "burst_bytes", "outstanding")
NUMBERS = (  # of a chip, each of which somebody says
    *("clock_hz", "vector_lanes", "alignment", "launch_cycles", "array.rows", "array.cols"),
    *(f"{memory}.{key}" for memory in ("sram", "dram") for key in MEMORY),
    *(f"energy.pj_per_{what}" for what in ("mac", "sram_byte", "dram_byte")),
)


@dataclass(frozen=True, slots=True)
class Array:
    """`rows` x `cols` elements, each one multiply-accumulate a cycle; `dataflows` are those the wiring allows, the usual one first."""

    rows: int
    cols: int
    dataflows: tuple[Dataflow, ...] = DATAFLOWS

    def __post_init__(self) -> None:
        check_number("array.rows", self.rows)
        check_number("array.cols", self.cols)
        if not self.dataflows or len(set(self.dataflows)) < len(self.dataflows) or not set(self.dataflows) <= set(DATAFLOWS):
            found = _shown(self.dataflows)
            raise ConfigError(
                f"array.dataflows must name some of {', '.join(DATAFLOWS)}, each once, found {found}", param="array.dataflows"
            )

    @property
    def macs_per_cycle(self) -> int:
        return self.rows * self.cols


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory as the chip's DMA sees it. `name` is the table of the preset file: sram or dram; cycles are the array's."""

    name: str
    bytes: int
    bytes_per_cycle: float  # the port
    latency_cycles: int  # from a request to its first byte
    burst_bytes: int  # one request
    outstanding: int  # requests under way at once

    def __post_init__(self) -> None:
        for key in MEMORY:
            check_number(f"{self.name}.{key}", getattr(self, key), limits=key)

    @property
    def sustained_bytes_per_cycle(self) -> float:
        """What a long transfer gets: the port, or what the requests under way can carry while each waits for its latency."""
        if self.latency_cycles == 0:
            return self.bytes_per_cycle
        return min(self.bytes_per_cycle, self.outstanding * self.burst_bytes / self.latency_cycles)


@dataclass(frozen=True, slots=True)
class Energy:
    """Picojoules; leakage and the clock tree are not counted."""

    pj_per_mac: float
    pj_per_sram_byte: float
    pj_per_dram_byte: float

    def __post_init__(self) -> None:
        for key in ("pj_per_mac", "pj_per_sram_byte", "pj_per_dram_byte"):
            check_number(f"energy.{key}", getattr(self, key))


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who says so. `key` is a number's dotted key, or a table's for all in it that have none of their own."""

    key: str
    source: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Spec:
    """One chip. `source` and `kind` hold for every number without an entry in `provenance`."""

    name: str
    array: Array
    clock_hz: float
    sram: Memory
    dram: Memory
    vector_lanes: int  # elementwise float operations a cycle, beside the array; 0: it has no float arithmetic
    weight_formats: tuple[str, ...]  # those of WEIGHT_FORMATS that the chip reads, the preferred one first
    alignment: int  # bytes, of every buffer; a power of two
    energy: Energy
    launch_cycles: int  # to hand one segment to the chip and hear that it is done
    source: str
    kind: Kind
    provenance: tuple[Provenance, ...] = ()

    def __post_init__(self) -> None:
        for key in ("clock_hz", "vector_lanes", "alignment", "launch_cycles"):
            check_number(key, getattr(self, key))
        if self.alignment & (self.alignment - 1):
            raise ConfigError(f"alignment must be a power of two, found {self.alignment}", param="alignment")
        if not self.weight_formats or not set(self.weight_formats) <= set(WEIGHT_FORMATS):
            found = _shown(self.weight_formats)
            raise ConfigError(f"weight_formats must name some of {', '.join(WEIGHT_FORMATS)}, found {found}", param="weight_formats")
        for entry in (Provenance("source", self.source, self.kind), *self.provenance):
            if not entry.source.strip():
                raise ConfigError(f"{entry.key} has an empty source", param=entry.key, hint="say where the number is from")
            if entry.kind not in KINDS:
                raise ConfigError(f"{entry.key}: kind must be one of {', '.join(KINDS)}, found {_shown(entry.kind)}", param=entry.key)
        if self.sram.bytes < self.smallest_tile_bytes:
            needed = f"one tile of a {self.array.rows} x {self.array.cols} array needs {self.smallest_tile_bytes}"
            raise ConfigError(
                f"sram.bytes is {self.sram.bytes}, {needed}",
                param="sram.bytes",
                hint="give the chip more SRAM or a smaller array",
            )

    @property
    def smallest_tile_bytes(self) -> int:
        """Outputs in 32 bits for every element of the array, and int8 operands one weight group deep, twice: one read, one being filled."""
        rows, cols = self.array.rows, self.array.cols
        return 4 * rows * cols + 2 * DEEPEST_GROUP * (rows + cols)

    @property
    def peak_macs_per_second(self) -> float:
        return self.array.macs_per_cycle * self.clock_hz

    def seconds(self, cycles: float) -> float:
        return cycles / self.clock_hz

    def said_by(self, key: str) -> Provenance:
        """Who says the number of a dotted key: its own entry, its table's, or the chip's."""
        entries = {entry.key: entry for entry in self.provenance}
        return entries.get(key) or entries.get(key.partition(".")[0]) or Provenance(key, self.source, self.kind)


def check_number(key: str, value: object, *, limits: str | None = None) -> None:
    """Raise ConfigError unless `value` is within LIMITS (under `limits` where the key is not the one that stands there)."""
    low, high = LIMITS[limits or key]
    whole = (limits or key) in WHOLE
    right = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not right or not low <= value <= high:  # type: ignore[operator]  # what is no number and what is infinite is in no range
        wanted = "a whole number" if whole else "a number"
        raise ConfigError(f"{key} must be {wanted} from {low:g} to {high:g}, found {_shown(value)}", param=key)


def _shown(value: object) -> str:
    try:
        text = repr(list(value)) if isinstance(value, tuple) else repr(value)
    except ValueError:  # more digits than Python writes
        text = "one of thousands of digits"
    return text if len(text) <= 60 else text[:60] + "…"
