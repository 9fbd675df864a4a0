"""What `hybrid compile` found and decided, as plain data: the JSON object, and all that the page is drawn from."""

from __future__ import annotations

import msgspec


class PlacedReport(msgspec.Struct, frozen=True):
    """One buffer: alive in steps [lower, upper), at bytes [offset, offset + size)."""

    id: str
    lower: int
    upper: int
    offset: int
    size: int


class ArenaReport(msgspec.Struct, frozen=True):
    name: str
    size: int  # bytes
    bound: int  # bytes that live at once at most: no plan is smaller
    ratio: float  # size / bound
    planner: str
    optimal: bool  # proved
    capacity: int | None  # bytes; None: as much as there is
    buffers: tuple[PlacedReport, ...]


class SegmentReport(msgspec.Struct, frozen=True):
    name: str
    chip: str
    ops: int
    cycles: int  # of the chip's own clock
    seconds: float
    bytes: int  # moved between the chip and the memory outside of it
    joules: float


class OpReport(msgspec.Struct, frozen=True):
    """Operations that are alike: the same body, shapes, chip and tiling, as those of all layers are."""

    kind: str
    body: tuple[str, ...]  # kinds of what was fused into it, in order; empty for a plain one
    first: str  # the name of the first of them
    count: int
    chip: str
    cycles: int  # of all of them together
    seconds: float
    bytes: int  # moved, of all of them
    bound_bytes: int | None  # the least traffic that a memory of this size allows (Hong and Kung 1981); None without a product
    macs: int
    m: int | None
    n: int | None
    k: int | None
    dataflow: str | None
    tile: tuple[int, int, int] | None  # rows, outputs, inputs
    order: str | None
    utilisation: float | None  # of the array while it works
    hidden_dma: float | None  # the part of the transfers that costs no time, 0 to 1; None where that is not known
    stalls_seconds: float  # that all of them wait for pages of weights, beside `seconds`


class FlowReport(msgspec.Struct, frozen=True):
    """One operation of the graph, in the order in which they run."""

    name: str
    kind: str
    body: tuple[str, ...]
    chip: str
    shape: tuple[int, ...]  # of its first output


class RefusalReport(msgspec.Struct, frozen=True):
    """Operations that a chip does not take, and why."""

    kind: str
    chip: str
    reason: str
    count: int
    first: str


class GraphReport(msgspec.Struct, frozen=True):
    name: str
    rows: int  # tokens of one run
    ops_captured: int
    ops_fused: int
    macs: int
    bytes_weights: int
    cycles: int  # of the chip, its segments one after the other
    seconds: float  # of one run, segments of both chips one after the other, transfers included
    seconds_pipelined: float | None  # with the next run's segments beside this one's; None where one waits for the other
    stalls_seconds: float  # of `seconds`: waiting for pages of weights; 0.0 where all of them are in memory
    joules: float
    tokens_per_s: float
    roofline_tokens_per_s: float  # if memory and the faster of chip and processor were both fully used
    bytes_saved_by_fusion: int
    flow: tuple[FlowReport, ...]  # one layer from the middle, and what stands before and after all of them
    layers: int  # that are like the first
    segments: tuple[SegmentReport, ...]
    ops: tuple[OpReport, ...]
    refused: tuple[RefusalReport, ...]
    arenas: tuple[ArenaReport, ...]


class TargetReport(msgspec.Struct, frozen=True):
    """The chip, as far as the picture needs it."""

    name: str
    source: str
    kind: str  # of the numbers that have no source of their own
    kinds: dict[str, int]  # numbers by who says them: vendor, measured, claimed, assumed
    clock_hz: float
    macs_per_cycle: int
    dram_bytes_per_s: float  # sustained
    sram_bytes: int
    dram_bytes: int


class FidelityReport(msgspec.Struct, frozen=True):
    """How far the compiled model strays from its float32 source over a text: KL(source || compiled) in nats, and the share of tokens after
    which both would say the same word."""

    tokens: int
    kl_mean: float
    kl_p99: float
    top1: float


class SmoothingReport(msgspec.Struct, frozen=True):
    """Sizes were moved from rows to weights before both were rounded."""

    strength: float  # 0 to 1
    tokens: int  # of the text that said which
    text_sha256: str
    own_text: bool  # the user's; else the one that comes with the package


class ArtifactReport(msgspec.Struct, frozen=True):
    path: str
    sha256: str
    abi: str
    bytes: int
    cached: bool  # it was there already


class CompileReport(msgspec.Struct, frozen=True):
    model: str
    file_hash: str
    scheme: str
    context: int  # tokens
    target: TargetReport
    host: TargetReport
    weights_bytes: int
    kv_bytes: int
    fidelity: FidelityReport | None  # None: not measured
    graphs: tuple[GraphReport, ...]
    artifact: ArtifactReport | None
    smoothing: SmoothingReport | None = None  # None: weights were rounded as the file has them
