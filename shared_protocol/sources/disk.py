"""A disk that has no more room: told before anything is written where the size is known, and as a typed error where it is not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from ..errors import NotEnoughSpace
from ..whole_file import FULL

GOES_ON = "pull it again: it goes on where it stopped"
_SPARE = 64 << 20  # bytes to leave free


def write_all(write: Callable[[memoryview], int | None], block: bytes) -> None:
    """A raw file may take a part of a block: when the disk is nearly full, it does."""
    rest = memoryview(block)
    while rest:
        rest = rest[write(rest) or 0 :]


def full_disk(error: OSError, folder: Path) -> Exception:
    """The typed error for a disk that takes no more; any other error as it is."""
    if error.errno not in FULL:
        return error
    return NotEnoughSpace(f"the disk of {folder}, or this user's share of it, is full", hint=f"free some space, then {GOES_ON}")


def need_space(folder: Path, size: int) -> None:
    """Raise NotEnoughSpace when `size` more bytes do not fit into `folder`'s disk."""
    free = shutil.disk_usage(folder).free
    if free < size + _SPARE:
        raise NotEnoughSpace(
            f"{size + _SPARE:,} bytes are needed in {folder}, {free:,} are free", hint="free some, or set HYBRID_HOME to another disk"
        )
