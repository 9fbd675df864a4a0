"""Weights through a pool of pages: the plan, the simulator's timeline and a simulation of events that knows neither say the same."""

from __future__ import annotations

import heapq
import random
from collections import Counter

import pytest
from hybrid.compiler.memory.paging import (
    SMALLEST_PAGE,
    Chunk,
    Paging,
    Storage,
    Stream,
    page_buffers,
    page_tasks,
    plan_pages,
    stream_of,
)
from hybrid.compiler.memory.verifier import verify
from hybrid.npu_backends.ir.op import Op, fused
from hybrid.npu_backends.ir.value import Value
from hybrid.npu_backends.systolic.timeline import schedule
from hybrid.shared_protocol.compile_errors import DoesNotFit
from hybrid.shared_protocol.errors import ConfigError

PAGE = SMALLEST_PAGE


def events(paging: Paging, runs: int) -> list[int]:
    """Cycles that every chunk waits. Two workers and a list of what they await; time moves from event to event."""
    stream, places = paging.stream, paging.places
    pages = [size for _ in range(runs) for size in stream.pages]
    chunks = [
        (number, None if chunk.page is None else run * len(stream.pages) + chunk.page, chunk.cycles)
        for run in range(runs)
        for number, chunk in enumerate(stream.chunks)
    ]
    to_use = Counter(page for _, page, _ in chunks)
    there, gone, next_page, next_chunk = set(), 0, 0, 0
    reading, working, idle_since = False, False, 0
    waits, queue, now = [], [(0, "begin", -1)], 0
    while queue:
        now, what, which = heapq.heappop(queue)
        if what == "read":
            there.add(which)
            reading = False
        elif what == "worked":
            working, idle_since = False, now
            page = chunks[which][1]
            if page is not None:
                to_use[page] -= 1
                gone += to_use[page] == 0
        if not reading and next_page < len(pages) and next_page - gone < places:
            took = paging.storage.latency_cycles + -(-pages[next_page] // int(paging.storage.bytes_per_cycle))
            heapq.heappush(queue, (now + took, "read", next_page))
            reading, next_page = True, next_page + 1
        if not working and next_chunk < len(chunks) and (chunks[next_chunk][1] is None or chunks[next_chunk][1] in there):
            waits.append(now - idle_since)
            heapq.heappush(queue, (now + chunks[next_chunk][2], "worked", next_chunk))
            working, next_chunk = True, next_chunk + 1
    return waits


def random_stream(source: random.Random) -> Stream:
    chunks, pages = [], []
    for number in range(source.randint(1, 20)):
        for _ in range(source.randint(0, 3)):
            if not pages or source.random() < 0.7:
                pages.append(source.choice((PAGE, PAGE, PAGE // 3)))
            chunks.append(Chunk(f"op{number}", source.randint(1, 40_000), len(pages) - 1))
        if source.random() < 0.3:
            chunks.append(Chunk(f"op{number}", source.randint(1, 10_000), None))
    return Stream(tuple(chunks or [Chunk("op", 5, None)]), tuple(pages), 0)


def test_plan_timeline_and_events_agree_on_every_stall() -> None:
    for seed in range(60):
        source = random.Random(seed)
        storage = Storage(float(source.choice((4, 16, 64))), source.choice((0, 100, 5000)))
        paging = plan_pages(random_stream(source), storage, PAGE, PAGE * source.randint(2, 6))
        count = len(paging.stream.chunks)
        for runs in (1, 5):
            waits = events(paging, runs)
            assert tuple(waits[:count]) == paging.first_stalls
            timeline = schedule(page_tasks(paging, runs))
            work = [
                (start, start + task.cycles) for start, task in zip(timeline.starts, timeline.tasks, strict=True) if task.engine == "array"
            ]
            ends = [0, *(end for _, end in work)]
            assert [start - end for (start, _), end in zip(work, ends, strict=False)] == waits
        waits = events(paging, 66)
        assert tuple(waits[-count:]) == paging.steady_stalls
        verify(*page_buffers(paging), paging.pool_bytes)


def test_stalls_worked_out_by_hand() -> None:
    """Pages of 100 cycles each, two places, 60 cycles of work a page. The first run waits 100 and then 40 a page; so does every later one,
    for storage is what all wait for."""
    stream = Stream(tuple(Chunk(f"op{n}", 60, n) for n in range(4)), (PAGE,) * 4, 0)
    paging = plan_pages(stream, Storage(PAGE / 100, 0), PAGE, 2 * PAGE)
    assert paging.first_stalls == (100, 40, 40, 40)
    assert paging.steady_stalls == (40, 40, 40, 40)
    assert (paging.stalls, paging.stalls_by_op()) == (160, {f"op{n}": 40 for n in range(4)})


def test_nothing_stalls_once_reading_is_as_fast_as_computing() -> None:
    stream = Stream(tuple(Chunk(f"op{n}", 100, n) for n in range(6)), (PAGE,) * 6, 0)
    paging = plan_pages(stream, Storage(PAGE / 100, 0), PAGE, 2 * PAGE)
    assert (sum(paging.first_stalls), paging.stalls) == (100, 0)
    slower = plan_pages(stream, Storage(PAGE / 100, 1), PAGE, 8 * PAGE)
    assert slower.stalls == 6


def test_weights_are_cut_into_pages_in_the_order_of_use_and_work_is_spread_over_them() -> None:
    x, y, z = (Value(name, (1, 512), "f32") for name in "xyz")
    ids, table, shared = Value("ids", (1,), "i32"), Value("table", (2000, 512), "f32"), Value("gain", (512,), "f32")
    first, second = (Value(name, (512, 512), "f32") for name in ("first", "second"))  # a MiB each
    ops = (
        Op("embed", (table, ids), (x,)),
        fused((Op("rms_norm", (x, shared), (y,), (("eps", 1e-5),)), Op("linear", (y, first), (z,))), (z,)),
        Op("linear", (z, second), (Value("w", (1, 512), "f32"),)),
        Op("rms_norm", (Value("w", (1, 512), "f32"), shared), (Value("v", (1, 512), "f32"),), (("eps", 1e-5),)),
    )
    storage = Storage(2.0, 100)
    stream = stream_of(ops, {"x": 10, "z": 1000, "w": 500, "v": 7}, storage, 768 << 10)
    assert stream.pages == (768 << 10, 768 << 10, 512 << 10)
    assert stream.resident == 2048
    assert stream.chunks == (
        Chunk("x", 10 + 100 + 1024, None),  # one row of the table, waited for
        Chunk("z", 750, 0),
        Chunk("z", 250, 1),
        Chunk("w", 250, 1),
        Chunk("w", 250, 2),
        Chunk("v", 7, None),
    )


def test_pages_and_pools_that_are_too_small_and_storage_that_is_none_are_refused() -> None:
    stream = Stream((Chunk("op", 1, 0),), (PAGE,), 0)
    with pytest.raises(DoesNotFit, match="two pages"):
        plan_pages(stream, Storage(1.0, 0), PAGE, 2 * PAGE - 1)
    with pytest.raises(ConfigError, match="page of 1000 bytes"):
        stream_of((), {}, Storage(1.0, 0), 1000)
    for speed, latency in ((0.0, 1), (-1.0, 1), (float("inf"), 1), (1.0, -1)):
        with pytest.raises(ConfigError):
            Storage(speed, latency)
