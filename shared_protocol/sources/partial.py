"""Pulls that have not ended yet, on the disk.

    ROOT/partial/NAME+KEY/       one pull; KEY stands for where it comes from and what must come out
      new/                       what becomes the model's folder, by one rename
      *.part, ...                what is on its way (download.py, joined.py)

It stays when the way broke, so that the next pull of the same thing goes on; it goes when the pull ends, when it failed for good, when
the same name is pulled from elsewhere or removed, and after two weeks.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from ..errors import AuthenticationError, ChecksumMismatch, CloudUnreachable, NotEnoughSpace

STALE_AFTER_S = 14 * 24 * 3600
# A later pull may go on with what is left: of wrong bytes nothing is, but of the parts before them.
_PASSING = (CloudUnreachable, AuthenticationError, ChecksumMismatch, NotEnoughSpace, KeyboardInterrupt)


@contextmanager
def unfinished(root: Path, name: str, identity: str) -> Iterator[Path]:
    """The folder of the pull of `identity` under `name`, with what an earlier one left there. The caller holds the lock of `name`."""
    folder = root / "partial" / f"{name}+{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    remove_unfinished(root, name, but=folder)
    shutil.rmtree(folder / "new", ignore_errors=True)
    (folder / "new").mkdir(parents=True)
    keep = False
    try:
        yield folder
    except _PASSING:
        shutil.rmtree(folder / "new", ignore_errors=True)
        keep = any(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not is_note(path))
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def note_of(part: Path) -> Path:
    """Where it is written what the bytes in `part` are."""
    return part.with_name(f"{part.name}.json")


def is_note(path: Path) -> bool:
    return path.name.endswith(".part.json")


def remove_unfinished(root: Path, name: str, but: Path | None = None) -> bool:
    """Remove what pulls of `name` have left; says whether there was anything. The caller holds the lock of `name`."""
    folders = [folder for folder in _folders(root) if _name_of(folder) == name and folder != but]
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    return bool(folders)


def remove_stale(root: Path, lock_at_once: Callable[[str], AbstractContextManager[bool]], now: float) -> None:
    """Remove what nobody has gone on with for two weeks. `lock_at_once` yields whether it got the lock of a name; `now` is in seconds."""
    for folder in _folders(root):
        if _newest(folder) < now - STALE_AFTER_S:
            with lock_at_once(_name_of(folder)) as held:
                if held:
                    shutil.rmtree(folder, ignore_errors=True)


def _folders(root: Path) -> list[Path]:
    folder = root / "partial"
    return [entry for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []


def _name_of(folder: Path) -> str:
    return folder.name.partition("+")[0]


def _newest(folder: Path) -> float:
    try:
        return max(path.lstat().st_mtime for path in [folder, *folder.rglob("*")])
    except FileNotFoundError:  # somebody works in it
        return float("inf")
