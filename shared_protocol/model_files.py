"""What a model is on the disk: one GGUF file, or the files of a folder that are read (safetensors, network, tokens, template)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .errors import ModelNotFound

_NAMES = re.compile(
    r"(?:config|generation_config|tokenizer|tokenizer_config)\.json|chat_template\.jinja|[A-Za-z0-9._-]+\.safetensors(?:\.index\.json)?"
)


def path_of(text: str | Path) -> Path:
    """The path that a user has written, which may begin with ~. Raises ModelNotFound for a user who is not there."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ModelNotFound(f"no file {str(text)!r}: there is no such user, or no home") from None


def is_model_file(name: str) -> bool:
    """Whether a file of that name in a model's folder is part of the model. Pickled weights are not, nor is code."""
    return _NAMES.fullmatch(name) is not None


def model_files(path: Path) -> Sequence[Path]:
    """The files of the model at `path`, by name."""
    return sorted(file for file in path.iterdir() if is_model_file(file.name) and file.is_file()) if path.is_dir() else [path]


class FileState(msgspec.Struct, frozen=True):
    """What a model's files looked like. Equal states: the same content, for all we can know without reading it."""

    size: int
    mtime_ns: int
    inode: int  # of a folder: a number that stands for the names, sizes, times and inodes of its files


def state_of(path: Path) -> FileState:
    if not path.is_dir():
        stat = path.stat()
        return FileState(stat.st_size, stat.st_mtime_ns, stat.st_ino)
    states = [(file.name, state_of(file)) for file in model_files(path)]
    whole = hashlib.sha256(msgspec.msgpack.encode(states)).digest()
    newest = max((state.mtime_ns for _, state in states), default=0)
    return FileState(sum(state.size for _, state in states), newest, int.from_bytes(whole[:6], "little"))


def sha256_of(path: Path) -> str:
    """SHA-256, hex: of a file; of a folder over the names and SHA-256s of the model's files, a line each, by name."""
    if path.is_dir():
        lines = "".join(f"{sha256_of(file)}  {file.name}\n" for file in model_files(path))
        return hashlib.sha256(lines.encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
