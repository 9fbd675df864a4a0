"""Reading a file that may be anything: what is longer than it can be is not read into memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO


def read_at_most(path: str | Path, limit: int) -> bytes:
    """All bytes of a file. Raises OSError: as opening does, "File too large" for one of more than `limit` bytes, and "Invalid argument" for
    a name that none can have."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    with open(path, "rb") as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise _too_large(path)
    return found


def lines_of(file: TextIO, limit: int) -> Iterator[str]:
    """The lines of an open text file, with their ends. Raises OSError for one of more than `limit` characters."""
    while line := file.readline(limit + 1):
        if len(line) > limit:
            raise _too_large(file.name)
        yield line


def _too_large(path: str | Path) -> OSError:
    return OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
