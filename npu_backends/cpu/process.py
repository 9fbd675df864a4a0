"""What this process may use and has used."""

from __future__ import annotations

import os
import resource
import sys


def peak_bytes() -> int:
    """Most memory this process has held, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def usable_cpus() -> int:
    """CPUs in this process's affinity mask; all of them where the system has no such mask."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
