"""What a chip's adapter is: six members. The compiler knows chips only through it, and a chip knows the compiler only through this page.

supports, cost      while a graph is cut into segments and tiled      pure: no file, no clock, no state
lower               once per segment: bytes that need nothing else    the same bytes for the same input
load, run           on the device
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray

from .ir.graph import Graph
from .ir.op import Op
from .spec import Spec

SCRATCH = "%scratch"  # in `placements` and `buffers`: bytes to compute in, the same for all segments of a model; no value has the name


@dataclass(frozen=True, slots=True)
class Cost:
    """What an operation, a segment or a transfer takes."""

    cycles: int  # of the chip's clock, from the first byte fetched to the last one written
    bytes: int  # moved between the chip and the memory outside of it
    joules: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cycles + other.cycles, self.bytes + other.bytes, self.joules + other.joules)


NOTHING = Cost(0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a product [m,k] x [k,n] is cut so that its parts fit the memory on the chip, and in which order they are visited.

    `order` names the loops over tiles from the outermost to the innermost: "nmk" keeps a strip of outputs' weights while rows change.
    """

    dataflow: str  # os, ws or is: what stays in the array
    tm: int
    tn: int
    tk: int
    order: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a value stands: so many bytes from the start of an arena."""

    arena: str
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All that was decided ahead of time about a segment. Constants are not placed: they come with the artifact."""

    placements: Mapping[str, Placement]  # by value, and SCRATCH; a view has the place of what it views
    arenas: Mapping[str, int]  # bytes
    tilings: Mapping[str, Tiling]  # by operation; those without a product have none


@dataclass(frozen=True, slots=True)
class Segment:
    """Operations that run on one chip without a break, as a graph of their own."""

    name: str
    chip: str  # the adapter's name
    graph: Graph


@dataclass(frozen=True, slots=True)
class Artifact:
    """A lowered segment. `abi` is the adapter's name and the number of its form: another number is refused, not guessed at."""

    data: bytes
    sha256: str
    abi: str

    @classmethod
    def of(cls, data: bytes, abi: str) -> Artifact:
        return cls(data, hashlib.sha256(data).hexdigest(), abi)


class Adapter(Protocol):
    """One chip. `docs/write_a_backend.md` writes one from the start."""

    name: str
    spec: Spec

    def supports(self, op: Op) -> str | None:
        """None, or the reason why not, as a user should read it in the report."""
        ...

    def cost(self, op: Op, tiling: Tiling | None) -> Cost:
        """Of a supported operation; without a tiling, of one that needs none. It never falls when a size grows."""
        ...

    def lower(self, segment: Segment, plan: Plan) -> Artifact: ...

    def load(self, artifact: Artifact, constants: Mapping[str, NDArray[Any]]) -> Any:
        """A handle for `run`. Constants are shared by all segments that name them, and are not copied. Raises ArtifactRejected for
        bytes that are not this adapter's, or not whole."""
        ...

    def run(self, handle: Any, buffers: Mapping[str, NDArray[Any]]) -> None:
        """Compute the segment's outputs from its inputs, both in `buffers` by name, in place: views of the planned arenas. Nothing is
        allocated that grows with the segment."""
        ...


@runtime_checkable
class Works(Protocol):
    """Offered by adapters whose computations need memory of the host's beside the values: the compiler plans that too, as SCRATCH."""

    def scratch_bytes(self, segment: Segment, tilings: Mapping[str, Tiling]) -> int:
        """That a run of the segment needs at most. Where a plan has no SCRATCH, `load` makes as much."""
        ...


@runtime_checkable
class Tiles(Protocol):
    """Offered by adapters of chips with a memory of their own to work in; the compiler then plans that memory too."""

    def tiling(self, op: Op) -> Tiling | None:
        """The best one for a supported operation; None for one that needs none. Raises DoesNotFit."""
        ...

    def working_bytes(self, op: Op, tiling: Tiling | None = None) -> int:
        """Of the chip's memory that the operation takes while it runs."""
        ...
