"""How long a k-token `extend` takes: measured when first asked for, kept in memory and on disk.

    HYBRID_HOME/cost_curves/HASH.json     {"key": {...}, "ms": [0.0, ms of 1 token, ms of 2, ...]}

The curve is no line and not even monotone, since kernels work in tiles: it is looked up, never fitted. A file that is torn, of another
key or holds no times is as good as none, and is written again.
"""

from __future__ import annotations

import hashlib
import logging
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..npu_backends.cpu.process import cpu_name
from ..shared_protocol.errors import ConfigError
from ..shared_protocol.store import Store
from ..shared_protocol.whole_file import replace_whole

REPEATS = 3  # of each point
FOLDER = "cost_curves"
log = logging.getLogger(__name__)


class CurveKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a curve was measured on; a curve of another key says nothing."""

    file_hash: str  # of the model
    runtime: str
    kernel_id: str
    cpu: str
    threads: int


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    key: CurveKey
    ms: list[float]


def key_of(file_hash: str, runtime: str, kernel_id: str, threads: int) -> CurveKey:
    """The key for this machine's CPU."""
    return CurveKey(file_hash, runtime, kernel_id, cpu_name(), threads)


class CostCurve:
    """One curve, which grows as longer ones are asked for. `folder` None: below HYBRID_HOME."""

    def __init__(self, key: CurveKey, *, clock: Callable[[], float] = time.perf_counter, folder: Path | None = None) -> None:
        self._key = key
        self._clock = clock
        self._folder = folder
        self._ms: list[float] | None = None

    def upto(self, k_max: int, extend: Callable[[int], object], undo: Callable[[], None]) -> NDArray[np.float64]:
        """Milliseconds of 0..k_max tokens, float64 [k_max + 1]. `extend` feeds k tokens with logits for all of them, `undo` forgets
        them; the median of a few is kept. A point that was measured once, in this process or another, is not measured again."""
        if self._ms is None:
            self._ms = self._read()
        known = len(self._ms)
        for k in range(known, k_max + 1):
            times = []
            for _ in range(REPEATS):
                began = self._clock()
                extend(k)
                times.append((self._clock() - began) * 1000.0)
                undo()
            self._ms.append(statistics.median(times))
        if len(self._ms) > known:
            self._write(self._ms)
        return np.array(self._ms[: k_max + 1], dtype=np.float64)

    def _path(self) -> Path | None:
        try:
            folder = Store().root / FOLDER if self._folder is None else self._folder
        except ConfigError:  # no home: measured anew by every process
            return None
        return folder / f"{hashlib.sha256(msgspec.json.encode(self._key)).hexdigest()[:32]}.json"

    def _read(self) -> list[float]:
        path = self._path()
        try:
            stored = msgspec.json.decode(path.read_bytes(), type=_Stored) if path else None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return [0.0]
        if stored is None or stored.key != self._key or stored.ms[:1] != [0.0]:
            return [0.0]
        return stored.ms if all(math.isfinite(ms) and ms >= 0 for ms in stored.ms) else [0.0]

    def _write(self, ms: list[float]) -> None:
        """A folder that cannot be written is no reason to fail."""
        path = self._path()
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_whole(path, msgspec.json.encode(_Stored(self._key, ms)))
        except OSError as error:
            log.info("the cost curve is not kept: %s", error.strerror)
