"""Detectors that are not ours: found by name, loaded when first asked, and never waited for longer than a deadline.

A package offers one by an entry point of the group `hybrid.detectors`, which names a detector or something that makes one when called.
Its code may do anything, so each search runs in a thread of its own: one that is late is left alone, and its answer is thrown away.
At most THREADS of a plug-in are ever alive; while all are busy the plug-in is late at once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from typing import Literal

from .detector import Detector
from .finding import Finding
from .scan import Scan

GROUP = "hybrid.detectors"
OPTIONAL = {"presidio": "hybrid.router.detect.presidio:recogniser"}  # ours, for packages that are not always there
THREADS = 4
LOAD_S = 30.0  # the first search of a plug-in waits so long for its import
MAX_FINDINGS = 10_000

Failure = Literal["missing", "late", "crashed", "invalid", "too long"]
Answer = list[list[Finding]] | Failure  # the findings of each text, or why there are none


class Plugin:
    """One plug-in of this process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._slots = threading.BoundedSemaphore(THREADS)
        self._loading = threading.Lock()
        self._loaded: Detector | Failure | None = None
        self._asked = False

    def patience_s(self, deadline_s: float) -> float:
        """How long the search that comes next may take: the first one also loads the plug-in."""
        first, self._asked = not self._asked, True
        return LOAD_S if first else deadline_s

    def start(self, scans: Sequence[Scan]) -> Future[Answer]:
        """Begin to search `scans`, without waiting."""
        answer: Future[Answer] = Future()
        if self._slots.acquire(blocking=False):
            threading.Thread(target=self._run, args=(scans, answer), name=f"detector {self.name}", daemon=True).start()
        else:
            answer.set_result("late")
        return answer

    def _run(self, scans: Sequence[Scan], answer: Future[Answer]) -> None:
        result: Answer = "crashed"
        try:
            with self._loading:
                if self._loaded is None:
                    self._loaded = load(self.name)
            result = self._loaded if isinstance(self._loaded, str) else searched(self._loaded, scans)
        except BaseException:  # SystemExit too: whatever a plug-in raises must neither end nor pass a search
            result = "crashed"
        finally:
            self._slots.release()
            answer.set_result(result)


@cache
def plugin(name: str) -> Plugin:
    """The plug-in of this name, which may turn out to be missing when it is first asked."""
    return Plugin(name)


def load(name: str) -> Detector | Failure:
    """Import a plug-in. `missing`: no package offers it, or what it needs is not installed."""
    from importlib import import_module
    from importlib.metadata import entry_points

    try:
        points = list(entry_points(group=GROUP, name=name))
        if points:
            offered = points[0].load()
        elif name in OPTIONAL:
            module, _, attribute = OPTIONAL[name].partition(":")
            offered = getattr(import_module(module), attribute)
        else:
            return "missing"
        made = offered if hasattr(offered, "find") and not isinstance(offered, type) else offered()
    except ImportError:
        return "missing"
    kinds = made.kinds
    valid = isinstance(kinds, tuple) and all(isinstance(kind, str) for kind in kinds) and callable(made.find)
    return made if valid else "invalid"


def searched(detector: Detector, scans: Sequence[Scan]) -> Answer:
    """What the detector finds in each text, checked: a position outside of the text would make a redaction wrong."""
    longest = getattr(detector, "max_characters", None)
    found = []
    for scan in scans:
        if longest is not None and len(scan.written) > longest:
            return "too long"
        findings = list(detector.find(scan))
        if len(findings) > MAX_FINDINGS or not all(_right(one, detector.kinds, len(scan.written)) for one in findings):
            return "invalid"
        found.append(findings)
    return found


def _right(one: object, kinds: tuple[str, ...], length: int) -> bool:
    return isinstance(one, Finding) and one.kind in kinds and 0 <= one.start < one.end <= length
