"""Does a compiled model fit the target's memory? If not, what would; and how its weights are paged in where there is a storage for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ..npu_backends.base import Adapter
from ..shared_protocol.compile_errors import DoesNotFit
from .chips import CPU, cost_on
from .memory.lifetimes import OUTSIDE, STATES, room_of
from .memory.paging import SMALLEST_PAGE, Storage, page_buffers, plan_pages, stream_of
from .memory.verifier import verify
from .program import Compiled, Facts, Program

PAGE = 2 * SMALLEST_PAGE


def fitted(compiled: Compiled, chips: Mapping[str, Adapter]) -> Compiled:
    """The compiled model, with its weights in pages where all of them are more than the memory has left and the facts name a storage.

    Raises DoesNotFit, which says which context would fit, or that none would.
    """
    facts, needed = compiled.facts, _needed(compiled)
    if sum(needed.values()) <= facts.target.dram.bytes:
        return compiled
    if facts.storage is None:
        raise _too_large(facts, needed)
    pool = facts.target.dram.bytes - needed["cache"] - needed["working"]
    return replace(compiled, programs=tuple(_paged(program, facts, pool, chips) for program in compiled.programs))


def _needed(compiled: Compiled) -> dict[str, int]:
    arenas = compiled.arenas
    return {
        "weights": compiled.weights_bytes,
        "cache": arenas.get(STATES, 0),
        "working": arenas.get(OUTSIDE, 0) + arenas.get(room_of(CPU), 0),
    }


def _too_large(facts: Facts, needed: Mapping[str, int]) -> DoesNotFit:
    memory, context = facts.target.dram.bytes, facts.context
    weights, cache, working = needed["weights"], needed["cache"], needed["working"]
    found = f"{weights:,} bytes of weights ({facts.scheme}), {cache:,} of cache for {context} tokens and {working:,} to work in"
    # a shorter context needs no more than this one to work in
    fitting = (memory - weights - working) * context // cache if cache else 0
    if fitting > 0:
        hint = f"a context of {fitting} tokens fits"
    else:
        hint = (
            "no context fits: take a smaller model or fewer bits a weight, a chip with "
            f"{weights + cache + working:,} bytes, or name a storage to page the weights from (--storage)"
        )
    return DoesNotFit(f"{facts.model} needs {found}; {facts.target.name} has {memory:,}", hint=hint)


def _paged(program: Program, facts: Facts, pool: int, chips: Mapping[str, Adapter]) -> Program:
    """Stalls come on top of what a run takes with its weights there."""
    assert facts.storage is not None
    clock = facts.target.clock_hz
    storage = Storage(facts.storage.bytes_per_second / clock, math.ceil(facts.storage.latency_s * clock))
    cycles = {
        op.name: math.ceil(chip.spec.seconds(cost_on(chip, op).cycles) * clock)
        for lowered in program.segments
        for chip in (chips[lowered.segment.chip],)
        for op in lowered.segment.graph.ops
    }
    stream = stream_of([op for lowered in program.segments for op in lowered.segment.graph.ops], cycles, storage, PAGE)
    paging = plan_pages(stream, storage, PAGE, pool - stream.resident)
    verify(*page_buffers(paging), paging.pool_bytes)
    stalled = paging.stalls / clock
    return replace(program, paging=paging, seconds=program.seconds + stalled, pipelined=program.pipelined + stalled)
