"""What the benchmarks share: two clocks, engines that take turns, and a record of the machine."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hybrid.npu_backends.cpu.process import cpu_name
from hybrid.shared_protocol.errors import ModelNotFound
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.sources.pull import pull
from hybrid.shared_protocol.store import Store

QUIET = 0.3  # load average under which wall time means something


@dataclass(frozen=True, slots=True)
class Spent:
    """Medians over the rounds, seconds: CPU time of the whole process, all threads, and wall time."""

    cpu: float
    wall: float


class Engine(Protocol):
    def decode(self) -> object: ...

    def back(self) -> None:
        """Undo `decode`; is not timed."""
        ...


def taking_turns(engines: Mapping[str, Engine], rounds: int) -> dict[str, Spent]:
    """Let every engine decode once a round, in turn; the first round is dropped."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for _ in range(rounds + 1):
        for name, engine in engines.items():
            times[name].append(clocked(engine.decode))
            engine.back()
    return {name: Spent(*(statistics.median(clock) for clock in zip(*pairs[1:], strict=True))) for name, pairs in times.items()}


def clocked(call: Callable[[], object]) -> tuple[float, float]:
    """(CPU seconds of the process, wall seconds) of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def machine(threads: int, load_before: float) -> dict[str, object]:
    """What figures depend on. Bars are read on wall ratios when the machine was quiet, else on CPU ratios."""
    return {
        "machine": cpu_name(),
        "cpus": os.cpu_count(),
        "threads": threads,
        "load_before": load_before,
        "bars_read_on": "wall_ratio" if load_before < QUIET else "cpu_ratio",
    }


def open_model(name: str) -> Model:
    """Load `name`; a model of the catalogue that is not in the store yet is pulled."""
    try:
        return load_model(name)
    except ModelNotFound:
        pull(name, Store())
        return load_model(name)
