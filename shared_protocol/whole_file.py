"""Writing a file that is there whole or not at all, whatever ends the program in between."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from .errors import ConfigError


def write_whole(path: str | Path, data: bytes) -> None:
    """Write beside the file, then take its name. A new file may be read by whom the umask lets; one that was there keeps its mode, and a
    link still leads to it. What is no file, /dev/stdout for one, is written as it is.

    Raises ConfigError where it cannot be written.
    """
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        try:
            with beside.open("xb") as file:  # not a file of tempfile: only its owner may read such a one
                file.write(data)
            if target.exists():
                beside.chmod(target.stat().st_mode & 0o777)
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}", hint="name a file that can be written") from None
