"""What this process may use and has used."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path


def peak_bytes() -> int:
    """Most memory this process has held, bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def usable_cpus() -> int:
    """CPUs in this process's affinity mask; all of them where the system has no such mask."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_name() -> str:
    """What this machine's CPU calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return f"{facts.get('model name', platform.machine())} (family {facts.get('cpu family', '?')}, model {facts.get('model', '?')})"
