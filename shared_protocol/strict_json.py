"""Small untrusted files: a limit on the bytes, no JSON key twice, and errors that name the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .errors import ModelFileError, ModelNotFound

MAX_BYTES = 8 << 20


def read_object(path: Path) -> dict[str, Any]:
    """The object in a file. Raises ModelNotFound, or ModelFileError naming the file, and the key where there is one."""
    return parse_object(read_bytes(path), path.name)


def parse_object(raw: bytes, what: str) -> dict[str, Any]:
    """The object that `raw` holds. Raises ModelFileError, naming a key that occurs twice: readers would differ on which one counts."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise ModelFileError(f"{what}: the key {name!r:.80} occurs twice")
            found[name] = value
        return found

    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
    except UnicodeDecodeError:
        raise ModelFileError(f"{what} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{what} is no JSON: {error!s:.80}") from None
    if not isinstance(value, dict):
        raise ModelFileError(f"{what} must be a JSON object, found {type(value).__name__}")
    return value


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """At most `limit` bytes. Raises ModelNotFound, or ModelFileError for a longer file, and for what is no file."""
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise ModelFileError(f"{path} is no file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise ModelFileError(f"{path.name} has {size:,} bytes, the limit is {limit:,}")
            return file.read(size)
    except FileNotFoundError:
        raise ModelNotFound(f"no file {path}") from None
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror}") from None
