"""A compiled model as a folder, whole or not at all.

    artifact.json       what it is of and for, the constants' places, the hashes of the two files beside it
    programs.msgpack    graphs, plans, and every segment as its adapter lowered it
    constants.bin       the weights as the chip's kernels read them, each at a multiple of 4,096 bytes, mapped and not read

A folder appears by one rename. Every byte is hashed again when it is opened, and what does not fit is refused, not guessed at.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..npu_backends.ir.value import ARRAYS, DType
from ..shared_protocol.compile_errors import ArtifactRejected
from ..shared_protocol.errors import HybridError
from .program import Compiled, Facts, Program

FORM = 1  # of the folder; another number is refused
ALIGNMENT = 4096
HEAD, PROGRAMS, CONSTANTS = "artifact.json", "programs.msgpack", "constants.bin"
_AT_ONCE = 1 << 24  # bytes hashed at a time


class Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One constant in constants.bin. A code of four bits takes a byte, as the kernels of this machine read it."""

    shape: tuple[int, ...]
    dtype: DType
    offset: int


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    form: int
    facts: Facts
    abis: tuple[str, ...]  # of the segments' adapters
    constants: dict[str, Stored]
    constants_bytes: int
    constants_sha256: str
    programs_sha256: str
    sha256: str = ""  # of this file where this field is empty: the artifact's name


def write(compiled: Compiled, folder: Path) -> str:
    """Write the folder, which is not there yet or is replaced. Returns the artifact's SHA-256. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = folder.with_name(f"{folder.name}.{os.urandom(8).hex()}")
    building.mkdir()
    try:
        programs = msgspec.msgpack.encode(compiled.programs, order="sorted")
        stored, size, digest = _write_constants(compiled, building / CONSTANTS)
        _write_file(building / PROGRAMS, programs)
        abis = tuple(sorted({lowered.artifact.abi for program in compiled.programs for lowered in program.segments}))
        head = Head(FORM, compiled.facts, abis, stored, size, digest, hashlib.sha256(programs).hexdigest())
        name = _own_hash(head)
        _write_file(building / HEAD, msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(head, sha256=name)), indent=1))
        old = folder.with_name(f"{building.name}.old")
        with suppress(FileNotFoundError):
            folder.rename(old)
        try:
            building.rename(folder)
        except OSError:
            if not (folder / HEAD).is_file():  # else another process was faster, with the same content
                raise
        shutil.rmtree(old, ignore_errors=True)
        return name
    finally:
        shutil.rmtree(building, ignore_errors=True)


def read(folder: Path, *, file_hash: str | None = None) -> Compiled:
    """Check and map a folder. Raises ArtifactRejected for one that is torn or changed, of another form, or, with `file_hash`, of another
    model."""
    head = _decode(folder / HEAD, _bytes(folder / HEAD), Head)
    if head.form != FORM:
        raise _rejected(folder, f"its form is {head.form}, and {FORM} is read here")
    if head.sha256 != _own_hash(msgspec.structs.replace(head, sha256="")):
        raise _rejected(folder, f"{HEAD} is not what was compiled: its SHA-256 differs")
    if file_hash is not None and head.facts.file_hash != file_hash:
        raise _rejected(folder, f"it is of the model {head.facts.model} with the hash {head.facts.file_hash[:12]}, not of {file_hash[:12]}")
    content = _bytes(folder / PROGRAMS)
    if hashlib.sha256(content).hexdigest() != head.programs_sha256:
        raise _rejected(folder, f"{PROGRAMS} is not what was compiled: its SHA-256 differs")
    programs = _decode(folder / PROGRAMS, content, tuple[Program, ...])
    return Compiled(head.facts, programs, _read_constants(folder, head))


def hash_of(folder: Path) -> str:
    """The artifact's SHA-256, as its head says it."""
    head: Head = _decode(folder / HEAD, _bytes(folder / HEAD), Head)
    return head.sha256


def _own_hash(head: Head) -> str:
    return hashlib.sha256(msgspec.json.encode(head, order="sorted")).hexdigest()


def _write_constants(compiled: Compiled, path: Path) -> tuple[dict[str, Stored], int, str]:
    types = {value.name: value.dtype for program in compiled.programs for value in program.graph.constants}
    stored: dict[str, Stored] = {}
    digest, end = hashlib.sha256(), 0
    with path.open("xb") as file:
        for name in sorted(types):
            array = np.ascontiguousarray(compiled.constants[name])
            padding = bytes(-end % ALIGNMENT)
            stored[name] = Stored(array.shape, types[name], end + len(padding))
            for part in (padding, array.reshape(-1).view(np.uint8).data):
                file.write(part)
                digest.update(part)
                end += len(part)
        file.flush()
        os.fsync(file.fileno())
    return stored, end, digest.hexdigest()


def _read_constants(folder: Path, head: Head) -> Mapping[str, NDArray[Any]]:
    path = folder / CONSTANTS
    try:
        size = path.stat().st_size
        content = np.memmap(path, np.uint8, mode="r") if size else np.zeros(0, np.uint8)
    except (OSError, ValueError) as error:
        raise _rejected(folder, f"{CONSTANTS} cannot be read: {error}") from None
    digest = hashlib.sha256()
    for at in range(0, size, _AT_ONCE):
        digest.update(content[at : at + _AT_ONCE].data)
    if size != head.constants_bytes or digest.hexdigest() != head.constants_sha256:
        raise _rejected(folder, f"{CONSTANTS} is not what was compiled: {size} bytes for {head.constants_bytes}, or another SHA-256")
    constants = {}
    for name, one in head.constants.items():
        kind = ARRAYS[one.dtype]
        end = one.offset + math.prod(one.shape) * kind.itemsize
        if one.offset % kind.itemsize or min(one.shape, default=1) < 1 or not 0 <= one.offset <= end <= size:
            raise _rejected(folder, f"the constant {name} stands outside {CONSTANTS}")
        constants[name] = np.asarray(content[one.offset : end]).view(kind).reshape(one.shape)
    return constants


def _write_file(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _rejected(path.parent, f"{path.name} cannot be read: {error.strerror}") from None


def _decode(path: Path, content: bytes, kind: Any) -> Any:
    try:
        if path.suffix == ".json":
            return msgspec.json.decode(content, type=kind)
        return msgspec.msgpack.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, HybridError, RecursionError) as error:
        raise _rejected(path.parent, f"{path.name} does not hold together: {error}") from None


def _rejected(folder: Path, why: str) -> ArtifactRejected:
    return ArtifactRejected(f"the artifact {folder} is refused: {why}", hint="compile again")
