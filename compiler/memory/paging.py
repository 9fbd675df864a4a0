"""Weights that are more than the memory: read from storage in the order of their use, ahead of it, through a fixed pool of pages.

    storage  |p0|p1|p2|p3|  |p4|  |p5| ...     in order, one at a time; a page waits for a place
    pool     |p0|p1|p2|p3| -> |p4|p1|p2|p3|    page k stands in place k mod places, once who stood there has been used up
    chip        |c0|c1|  |c2|c3| ...           a stall where the next page has not come

An operation takes its weights page by page, so no operation is too large for the pool. What several operations read and is no larger
than a page stays in memory; rows that are looked up in a table are read where they stand, and waited for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...npu_backends.ir.op import Op, flat
from ...npu_backends.ir.work import WEIGHTS, work_of
from ...npu_backends.systolic.timeline import Task
from ...shared_protocol.compile_errors import DoesNotFit
from ...shared_protocol.errors import ConfigError
from .buffer import Buffer

SMALLEST_PAGE = 256 << 10  # bytes: below it flash is much slower than it says
LOOKUPS = ("embed", "embed_i8", "embed_g32")
MOST_RUNS = 64  # after which stalls are taken as they are
PLACES = 2  # at least: one is read while the next comes


@dataclass(frozen=True, slots=True)
class Storage:
    """Where weights are when they are not in memory, in cycles of the chip."""

    bytes_per_cycle: float
    latency_cycles: int  # of every page

    def __post_init__(self) -> None:
        if not (0 < self.bytes_per_cycle < float("inf") and self.latency_cycles >= 0):
            raise ConfigError(f"a storage of {self.bytes_per_cycle} bytes a cycle after {self.latency_cycles} cycles is none")

    def cycles(self, size: int) -> int:
        return self.latency_cycles + -int(-size // self.bytes_per_cycle) if size else 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Work that needs one page, or none."""

    op: str
    cycles: int
    page: int | None


@dataclass(frozen=True, slots=True)
class Stream:
    """One run: its chunks in order, and the bytes of each of its pages."""

    chunks: tuple[Chunk, ...]
    pages: tuple[int, ...]
    resident: int  # bytes of weights that stay in memory


@dataclass(frozen=True, slots=True)
class Paging:
    """A stream through a pool. The first run begins with an empty pool, a steady one in the middle of many."""

    stream: Stream
    page_bytes: int
    places: int
    storage: Storage
    first_stalls: tuple[int, ...]  # cycles that each chunk waits
    steady_stalls: tuple[int, ...]

    @property
    def pool_bytes(self) -> int:
        return self.page_bytes * self.places

    @property
    def stalls(self) -> int:
        """Cycles of a run that are waited for pages, in the middle of many."""
        return sum(self.steady_stalls)

    def stalls_by_op(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for chunk, stall in zip(self.stream.chunks, self.steady_stalls, strict=True):
            if stall:
                found[chunk.op] = found.get(chunk.op, 0) + stall
        return found


def stream_of(ops: Sequence[Op], cycles: Mapping[str, int], storage: Storage, page_bytes: int) -> Stream:
    """The pages of a run over `ops`, which take `cycles`, by name, when their weights are there. Raises ConfigError for small pages."""
    if page_bytes < SMALLEST_PAGE:
        raise ConfigError(f"a page of {page_bytes} bytes was asked for", hint=f"at least {SMALLEST_PAGE}")
    readers: dict[str, set[str]] = {}
    sizes: dict[str, int] = {}
    for op in ops:
        for name, size in _weights(op).items():
            readers.setdefault(name, set()).add(op.name)
            sizes[name] = size
    stay = {name for name, by in readers.items() if len(by) > 1 and sizes[name] <= page_bytes}
    chunks: list[Chunk] = []
    pages: list[int] = []
    for op in ops:
        left = sum(size for name, size in _weights(op).items() if name not in stay)
        work = cycles[op.name] + storage.cycles(_looked_up(op))
        total, done = left, 0
        if not left:
            chunks.append(Chunk(op.name, work, None))
        while left:
            if not pages or pages[-1] == page_bytes:
                pages.append(0)
            part = min(left, page_bytes - pages[-1])
            pages[-1] += part
            left -= part
            share = work * (total - left) // total
            chunks.append(Chunk(op.name, share - done, len(pages) - 1))
            done = share
    return Stream(tuple(chunks), tuple(pages), sum(sizes[name] for name in stay))


def plan_pages(stream: Stream, storage: Storage, page_bytes: int, pool_bytes: int) -> Paging:
    """Raises DoesNotFit for a pool of fewer than two pages."""
    places = pool_bytes // page_bytes
    if places < PLACES:
        raise DoesNotFit(
            f"{pool_bytes:,} bytes are left for weights, and two pages of {page_bytes:,} are the least to read them through",
            hint="a shorter context, or a chip with more memory",
        )
    runs = _stalls(stream, storage, places, 2)
    while runs[-1] != runs[-2] and len(runs) < MOST_RUNS:  # a run may still profit from what earlier ones read ahead of it
        runs = _stalls(stream, storage, places, 2 * len(runs))
    return Paging(stream, page_bytes, places, storage, runs[0], runs[-1])


def _stalls(stream: Stream, storage: Storage, places: int, runs: int) -> list[tuple[int, ...]]:
    """Cycles that each chunk of each run waits for its page."""
    count = len(stream.pages)
    last_chunk = {chunk.page: number for number, chunk in enumerate(stream.chunks)}
    loads = [storage.cycles(size) for size in stream.pages]
    came: list[int] = []  # when each page of each run was there
    left: list[int] = []  # when it was used up
    now, found = 0, []
    for run in range(runs):
        waits = []
        for number, chunk in enumerate(stream.chunks):
            wait = 0
            if chunk.page is not None:
                while len(came) <= run * count + chunk.page:
                    page = len(came)
                    free = left[page - places] if page >= places else 0
                    came.append(max(came[-1] if came else 0, free) + loads[page % count])
                wait = max(0, came[run * count + chunk.page] - now)
            now += wait + chunk.cycles
            waits.append(wait)
            if chunk.page is not None and last_chunk[chunk.page] == number:
                left.append(now)
        found.append(tuple(waits))
    return found


def page_tasks(paging: Paging, runs: int) -> list[Task]:
    """The same as tasks for the simulator's timeline: pages on its way in, chunks on its array."""
    tasks: list[Task] = []
    loaded: list[int] = []  # the task of each page
    used_up: list[int] = []  # the task that ends the use of each page
    chunks = paging.stream.chunks
    last_chunk = {chunk.page: number for number, chunk in enumerate(chunks)}
    for run in range(runs):
        for number, chunk in enumerate(chunks):
            after: tuple[int, ...] = ()
            if chunk.page is not None:
                page = run * len(paging.stream.pages) + chunk.page
                if page == len(loaded):
                    waits = (used_up[page - paging.places],) if page >= paging.places else ()
                    cycles = paging.storage.cycles(paging.stream.pages[chunk.page])
                    tasks.append(Task(f"page {page}", "dma_in", cycles, waits))
                    loaded.append(len(tasks) - 1)
                after = (loaded[page],)
            tasks.append(Task(chunk.op, "array", chunk.cycles, after))
            if chunk.page is not None and last_chunk[chunk.page] == number:
                used_up.append(len(tasks) - 1)
    return tasks


def page_buffers(paging: Paging) -> tuple[list[Buffer], dict[str, int]]:
    """The pool as buffers over chunks, with their offsets: what the verifier of memory plans takes. A page lives from when its place is
    free to the end of its use."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, chunk in enumerate(paging.stream.chunks):
        if chunk.page is not None:
            last[chunk.page] = number
            first.setdefault(chunk.page, number)
    buffers, offsets = [], {}
    for page in first:
        free = last[page - paging.places] + 1 if page >= paging.places else 0
        buffers.append(Buffer(f"page {page}", free, last[page] + 1, paging.page_bytes))
        offsets[f"page {page}"] = page % paging.places * paging.page_bytes
    return buffers, offsets


def _weights(op: Op) -> dict[str, int]:
    """Constants that an operation reads whole, and their bytes."""
    inner = flat((op,))
    made = {value.name for one in inner for value in one.outputs}
    return {
        value.name: value.bytes
        for one in inner
        if one.kind not in LOOKUPS
        for value in (one.inputs[WEIGHTS[one.kind]] if one.kind in WEIGHTS else ())
        if value.name not in made
    }


def _looked_up(op: Op) -> int:
    """Bytes of the rows that it reads of a table."""
    return sum(work_of(one).bytes_weights for one in flat((op,)) if one.kind in LOOKUPS)
