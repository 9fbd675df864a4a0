"""What a compilation makes: the same network for several numbers of rows, as segments with a chip, a plan and an artifact each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ..npu_backends.base import NOTHING, Artifact, Cost, Plan, Segment
from ..npu_backends.ir.graph import Graph
from ..npu_backends.spec import Spec
from .memory.layout import Layout
from .memory.paging import Paging
from .partition.problem import Refusal


@dataclass(frozen=True, slots=True)
class Shape:
    """Tokens of one run, and how many of them get logits."""

    rows: int
    logit_rows: int

    @property
    def name(self) -> str:
        return f"rows{self.rows}"


@dataclass(frozen=True, slots=True)
class Lowered:
    """One segment, ready for its adapter."""

    segment: Segment
    plan: Plan
    artifact: Artifact
    cost: Cost  # cycles are of its chip's own clock
    seconds: float


@dataclass(frozen=True, slots=True)
class Program:
    """One run of the network. Segments run one after the other; `graph` is what they were cut from."""

    shape: Shape
    captured: int  # operations before any was fused
    graph: Graph
    layout: Layout
    segments: tuple[Lowered, ...]
    refused: tuple[Refusal, ...]
    seconds: float  # of a run: all segments one after the other, and what is moved between them
    pipelined: float  # seconds that one more run takes, where the segments of several may overlap
    paging: Paging | None = None  # of the weights, where they are more than the memory; its stalls are in both

    def cost_on(self, chip: str) -> Cost:
        return sum((lowered.cost for lowered in self.segments if lowered.segment.chip == chip), NOTHING)


@dataclass(frozen=True, slots=True)
class Flash:
    """Where weights stand that are more than the memory."""

    bytes_per_second: float
    latency_s: float  # of one page


@dataclass(frozen=True, slots=True)
class Smoothing:
    """Sizes were moved from rows to weights before both were rounded, by what a text brings to the rows."""

    strength: float  # 0 to 1
    tokens: int  # of the text, as many as were read
    text_sha256: str
    own_text: bool  # the user's; else the one that comes with the package


@dataclass(frozen=True, slots=True)
class Facts:
    """What a compiled model is of, and for. Two with equal facts are equal."""

    compiler: str
    model: str
    file_hash: str
    scheme: str
    context: int
    shapes: tuple[Shape, ...]
    target: Spec
    host: Spec
    storage: Flash | None = None
    smoothing: Smoothing | None = None  # None: weights were rounded as the file has them


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """Programs by falling number of rows; all of them read the same constants and go on from each other's states."""

    facts: Facts
    programs: tuple[Program, ...]
    constants: Mapping[str, NDArray[Any]]

    @property
    def weights_bytes(self) -> int:
        """As the chip stores them."""
        values = {value.name: value for program in self.programs for value in program.graph.constants}
        return sum(value.bytes for value in values.values())

    @property
    def arenas(self) -> dict[str, int]:
        """Bytes of each arena: one serves all programs."""
        names = sorted({name for program in self.programs for name in program.layout.arenas})
        return {name: max(program.layout.arenas.get(name, 0) for program in self.programs) for name in names}
