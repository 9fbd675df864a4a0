"""Writing a file that is there whole or not at all, whatever ends the program in between."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from .errors import ConfigError, NotEnoughSpace

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what a disk without room for more answers


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file that a user has named. A new one may be read by whom the umask lets; one that was there keeps its mode, and a link still
    leads to it. What is no file, /dev/stdout for one, is written as it is.

    Raises NotEnoughSpace when the disk is full, ConfigError where it cannot be written otherwise.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            replace_whole(target, data)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise NotEnoughSpace(f"{path}: {error.strerror}", hint="free some, or name a file on another disk") from None
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}", hint="name a file that can be written") from None


def replace_whole(path: Path, data: bytes, *, mode: int | None = None, durable: bool = False) -> None:
    """Write a file of our own beside its place, then give it its name. `mode`: who may read it; None: whoever may read the one that was
    there, or whom the umask lets. `durable`: on the disk when this returns.

    Raises OSError, and leaves the file that was there and no other.
    """
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        # not a file of tempfile: only its owner may read such a one
        with open(beside, "xb", opener=lambda name, flags: os.open(name, flags, 0o666 if mode is None else mode)) as file:
            if mode is None and path.exists():  # before there is anything to read in it
                os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
