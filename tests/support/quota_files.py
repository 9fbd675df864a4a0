"""A quota's file as tests want it."""

from __future__ import annotations

import itertools
from pathlib import Path

from hybrid.router.quota.store import FileStore

_seconds = itertools.count()


def store_of(path: Path) -> FileStore:
    """Its clock moves by a second at each look, so that nobody waits in a test."""
    return FileStore(path, clock=lambda: float(next(_seconds)), sleep=lambda s: None)
