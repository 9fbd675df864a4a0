"""One BLAS thread while the reference computes: how a matrix is split over threads must not change a sum."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

Control = tuple[Callable[[], int], Callable[[int], None]]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the OpenBLAS inside NumPy's wheel to one thread; another BLAS is left as it is."""
    control = _openblas()
    if control is None:
        yield
        return
    get, put = control
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)


@cache
def _openblas() -> Control | None:
    for path in sorted(Path(np.__file__).parents[1].glob("numpy.libs/*openblas*")):
        library = ctypes.CDLL(str(path))
        for pattern in ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads"):
            get, put = getattr(library, pattern.format("get"), None), getattr(library, pattern.format("set"), None)
            if get is not None and put is not None:
                return get, put
    return None
