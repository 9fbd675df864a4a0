"""All matrices of a model as panels, in one piece of memory that is made once and mapped ever after.

    magic, length of the header, JSON header | padding | panels of matrix 0 | padding | panels of matrix 1 | ...

The file is keyed by the model's hash and the layout of panels. It is written beside a model of the store, whose removal takes it along,
and for any other model below ROOT/panels, where the four used last are kept. It appears by one rename, so a file that is there is whole;
one that does not fit is made anew. Where nothing can be written, the panels live in memory and the next start makes them again.
"""

from __future__ import annotations

import logging
import mmap
import os
import shutil
import struct
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.gguf import Tensor
from .pages import forget
from .repack import LAYOUT, packed_bytes, repack

MAGIC = b"HYBRIDPANELS"
ALIGNMENT = 64  # bytes, of every matrix
SMALLEST = 16 << 20  # bytes of panels; fewer are made faster than a file is kept
KEPT = 4  # files outside the store
ABANDONED_S = 3600  # without an end, a file that is being made will not get one
SPARE = 1 << 30  # bytes that a disk must have left after the file

log = logging.getLogger(__name__)
Pack = Callable[[Tensor, NDArray[np.uint8]], object]  # writes a matrix's panels


class _Header(msgspec.Struct, frozen=True):
    file_hash: str
    layout: int
    offsets: dict[str, int]  # from the first panel
    size: int  # of the whole file


@dataclass(frozen=True, slots=True, eq=False)
class Panels:
    """Panels by the name of their matrix, uint8 views of one mapping, file or none."""

    arrays: Mapping[str, NDArray[np.uint8]]
    nbytes: int  # without the padding between matrices
    path: Path | None  # of the file that they are mapped from


def panels_of(matrices: Mapping[str, Tensor], file_hash: str, path: Path | None, threads: int = 1, pack: Pack | None = None) -> Panels:
    """The panels of `matrices`, mapped from `path` when it holds them, else made with `threads` and kept there when possible.

    `pack` replaces `repack`, and does the same. Raises ModelFileError for a weight type without panels.
    """
    sizes = {name: packed_bytes(tensor) for name, tensor in matrices.items()}
    offsets, end = {}, 0
    for name, size in sizes.items():
        offsets[name] = end
        end += -(-size // ALIGNMENT) * ALIGNMENT
    if path is None or end < SMALLEST:
        return _made(matrices, sizes, offsets, *_anonymous(end), None, threads, pack)
    head, start = _head(file_hash, offsets, end)
    with suppress(OSError):
        if (found := _mapped(path, head, start + end)) is not None:
            os.utime(path)
            return Panels(_views(np.frombuffer(found, np.uint8), start, sizes, offsets), sum(sizes.values()), path)
    try:
        return _written(matrices, sizes, offsets, path, head, start, end, threads, pack)
    except OSError as error:
        log.info("the panels are not kept, the next start makes them again: %s", error)
        return _made(matrices, sizes, offsets, *_anonymous(end), None, threads, pack)


def panels_path(model: Path, file_hash: str, root: Path) -> Path:
    """Where the panels of a model file are kept: beside a model of the store at `root`, else below root/panels."""
    if model.parent.parent == root / "models":
        return model.with_name(f"{model.name}.panels")
    return root / "panels" / f"{file_hash[:32]}.panels"


def _head(file_hash: str, offsets: dict[str, int], end: int) -> tuple[bytes, int]:
    """The file's first bytes and their length, which depends on itself through `size`: the room for it is fixed by padding."""
    room = len(msgspec.json.encode(_Header(file_hash, LAYOUT, offsets, 1 << 62))) + len(MAGIC) + 8
    start = -(-room // mmap.PAGESIZE) * mmap.PAGESIZE
    text = msgspec.json.encode(_Header(file_hash, LAYOUT, offsets, start + end))
    return MAGIC + struct.pack("<Q", len(text)) + text, start


def _mapped(path: Path, head: bytes, size: int) -> mmap.mmap | None:
    """The file mapped for reading, or None when it is not exactly the one that is wanted."""
    if not path.is_file():  # a pipe would be waited for
        return None
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size != size or file.read(len(head)) != head:
            return None
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)  # every step reads all weights: fewer pages, fewer addresses to translate
    return memory


def _written(
    matrices: Mapping[str, Tensor],
    sizes: Mapping[str, int],
    offsets: Mapping[str, int],
    path: Path,
    head: bytes,
    start: int,
    end: int,
    threads: int,
    pack: Pack | None,
) -> Panels:
    path.parent.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(path.parent).free) < start + end + SPARE:
        raise OSError(f"{start + end:,} bytes and a spare of {SPARE:,} are needed in {path.parent}, {free:,} are free")
    _sweep(path)
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}")  # of this call alone: threads make the same panels at once, too
    try:
        with temporary.open("x+b") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, start + end)  # a full disk shows here, not as a signal while writing
            else:
                file.truncate(start + end)
            memory = mmap.mmap(file.fileno(), start + end)
            memory[: len(head)] = head
            panels = _made(matrices, sizes, offsets, np.frombuffer(memory, np.uint8), start, path, threads, pack)
            memory.flush()
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _prune(path)
    return panels


def _made(
    matrices: Mapping[str, Tensor],
    sizes: Mapping[str, int],
    offsets: Mapping[str, int],
    memory: NDArray[np.uint8],
    start: int,
    path: Path | None,
    threads: int,
    pack: Pack | None,
) -> Panels:
    arrays = _views(memory, start, sizes, offsets)

    def make(name: str) -> None:
        tensor = matrices[name]
        blocks = Tensor(name, tensor.type_name, tensor.shape, tensor.data)  # asked for once: it may be made at that moment
        (pack or repack)(blocks, arrays[name])
        forget(blocks.data)
        forget(arrays[name])

    with ThreadPoolExecutor(threads) as pool:
        for done in pool.map(make, sorted(matrices, key=lambda name: -sizes[name])):
            assert done is None
    return Panels(arrays, sum(sizes.values()), path)


def _anonymous(size: int) -> tuple[NDArray[np.uint8], int]:
    """Memory of its own, and the index of its first aligned byte."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    return memory, -memory.ctypes.data % ALIGNMENT


def _views(memory: NDArray[np.uint8], start: int, sizes: Mapping[str, int], offsets: Mapping[str, int]) -> dict[str, NDArray[np.uint8]]:
    return {name: memory[start + offsets[name] : start + offsets[name] + size] for name, size in sizes.items()}


def _sweep(path: Path) -> None:
    """Remove what processes that were killed have left of this file."""
    with suppress(OSError):
        for left in path.parent.iterdir():
            if left.name.startswith(f"{path.name}.") and left.stat().st_mtime < time.time() - ABANDONED_S:
                left.unlink()


def _prune(path: Path) -> None:
    """Outside the store nobody else removes what is not used any more."""
    if path.parent.name != "panels":
        return
    with suppress(OSError):
        files: Iterable[Path] = path.parent.glob("*.panels")
        for old in sorted(files, key=lambda file: -file.stat().st_mtime)[KEPT:]:
            old.unlink()
