"""Pages of mapped files in this process's memory."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray


def forget(data: NDArray[np.uint8]) -> None:
    """Give back the pages of a mapped file: they would count as this process's memory, and come back from the file when asked for."""
    whole: object = data
    while isinstance(whole, np.ndarray) and whole.base is not None:
        last, whole = whole, whole.base
    source = whole.obj if isinstance(whole, memoryview) else whole
    if not isinstance(source, mmap.mmap):  # memory of its own would be lost
        return
    at = data.ctypes.data - last.ctypes.data
    first = -(-at // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (at + data.nbytes - first) // mmap.PAGESIZE * mmap.PAGESIZE
    if length > 0:
        source.madvise(mmap.MADV_DONTNEED, first, length)
