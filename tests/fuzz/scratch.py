"""A file or folder that holds one input at a time. Each gets a new inode: what an earlier input has mapped stays what it was."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def scratch() -> Path:
    """A folder of this process."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="hybrid-fuzz-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def write(name: str, data: bytes) -> Path:
    path = scratch() / name
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    return path


def empty_folder(name: str) -> Path:
    folder = scratch() / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
