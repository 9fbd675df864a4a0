"""Reader of safetensors files. Every length and offset is checked against the file before it is used.

    length of the header u64 | header, JSON | data
    header: {"name": {"dtype": "BF16", "shape": [rows, columns], "data_offsets": [begin, end]}, ..., "__metadata__": {...}}

Offsets count from the start of the data, and the tensors fill it without gap or overlap. The file is memory-mapped: tensors are views.
A folder may cut its tensors into several files, which `model.safetensors.index.json` lists; no name in it leads out of the folder.
Source of the layout: the format's README in the safetensors project, whose own reader refuses gaps too.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from .errors import ModelFileError, ModelNotFound
from .gguf import GGML_TYPES, MAX_DIMS, MAX_NAME, MAX_TENSORS, Tensor
from .strict_json import parse_object, read_object

MAX_HEADER = 8 << 20  # bytes; a model of 65,536 tensors needs fewer
TYPES = ("F32", "F16", "BF16")  # named as in GGUF
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_SHARD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}\.safetensors")


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """The tensors of a folder, and the files that hold them."""

    tensors: Mapping[str, Tensor]
    files: tuple[Path, ...]


def read_shards(folder: Path) -> Shards:
    """Map the weights of a folder. Raises ModelNotFound when there are none, ModelFileError naming the file, key or tensor at fault."""
    index = folder / INDEX
    if not index.is_file():
        path = _only_file(folder)
        return Shards(read_safetensors(path), (path,))
    weight_map = read_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not 1 <= len(weight_map) <= MAX_TENSORS:
        raise ModelFileError(f"{INDEX}: the key 'weight_map' must be an object that names the file of every tensor")
    names = sorted({name if isinstance(name, str) else repr(name) for name in weight_map.values()})
    for name in names:
        if not _SHARD.fullmatch(name):
            raise ModelFileError(f"{INDEX}: the key 'weight_map' names {name!r:.80}, which is no .safetensors file of this folder")
    tensors: dict[str, Tensor] = {}
    for name in names:
        for tensor, found in read_safetensors(folder / name).items():
            if weight_map.get(tensor) != name:
                where = weight_map.get(tensor, "no file")
                raise ModelFileError(f"{name}: tensor {tensor!r} lies here, {INDEX} says in {where!s:.80}")
            tensors[tensor] = found
    if missing := weight_map.keys() - tensors.keys():
        raise ModelFileError(f"{weight_map[min(missing)]}: tensor {min(missing)!r} is missing, {INDEX} says that it is here")
    return Shards(MappingProxyType(tensors), tuple(folder / name for name in names))


def read_safetensors(path: Path) -> Mapping[str, Tensor]:
    """Map one file and check its header. Raises ModelNotFound, or ModelFileError naming the tensor at fault."""
    data = _mapped(path)
    (length,) = struct.unpack_from("<Q", data.data)
    if not 2 <= length <= min(MAX_HEADER, len(data) - 8):
        raise ModelFileError(
            f"{path.name}: the header claims {length} bytes, the file has {len(data) - 8} after it and {MAX_HEADER} are possible: "
            "truncated, or no safetensors file"
        )
    header = parse_object(bytes(data[8 : 8 + length]), f"{path.name}: the header")
    header.pop("__metadata__", None)  # text that nothing here depends on
    if not 1 <= len(header) <= MAX_TENSORS:
        raise ModelFileError(f"{path.name}: the header has {len(header)} tensors, 1 to {MAX_TENSORS} are possible")
    content, end_of_previous = data[8 + length :], 0
    entries = {name: _entry(f"{path.name}: tensor {name!r:.{MAX_NAME}}", name, entry) for name, entry in header.items()}
    tensors = {}
    for name, (type_name, shape, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        what = f"{path.name}: tensor {name!r}"
        if begin != end_of_previous:
            fault = "overlaps the tensor before it" if begin < end_of_previous else "leaves a gap after the tensor before it"
            raise ModelFileError(f"{what} begins at {begin} and {fault}, which ends at {end_of_previous}")
        if end > len(content):
            raise ModelFileError(f"{what} ends {end - len(content)} bytes after the end of the file: truncated? (pull it again)")
        end_of_previous = end
        tensors[name] = Tensor(name, type_name, shape, content[begin:end])
    if end_of_previous != len(content):
        raise ModelFileError(f"{path.name}: {len(content) - end_of_previous} bytes after the last tensor belong to none")
    return MappingProxyType({name: tensors[name] for name in header})


def _entry(what: str, name: str, entry: object) -> tuple[str, tuple[int, ...], int, int]:
    """Type, shape, begin and end of one tensor, which agree with one another."""
    if not 1 <= len(name.encode(errors="replace")) <= MAX_NAME:
        raise ModelFileError(f"{what} has a name of {len(name)} characters, 1 to {MAX_NAME} bytes are possible")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"{what} must have the keys dtype, shape and data_offsets, and no others")
    type_name = entry["dtype"]
    if type_name not in TYPES:
        raise ModelFileError(f"{what} has the type {type_name!r:.40}; supported: {', '.join(TYPES)}")
    shape, offsets = _naturals(entry["shape"]), _naturals(entry["data_offsets"])
    if shape is None or not 1 <= len(shape) <= MAX_DIMS or 0 in shape:
        raise ModelFileError(f"{what} has the shape {entry['shape']!r:.80}, expected 1 to {MAX_DIMS} positive numbers")
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise ModelFileError(f"{what} has the data_offsets {entry['data_offsets']!r:.80}, expected a begin and an end")
    nbytes = math.prod(shape) * GGML_TYPES[type_name][1]
    if nbytes != offsets[1] - offsets[0]:
        raise ModelFileError(f"{what} has {offsets[1] - offsets[0]} bytes, {type_name} {shape} needs {nbytes:.6g}")
    return type_name, shape, *offsets


def _naturals(value: object) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(type(number) is int and 0 <= number < 1 << 63 for number in value):
        return tuple(value)
    return None


def _only_file(folder: Path) -> Path:
    """The weights of a folder without an index."""
    if (folder / SINGLE).is_file():
        return folder / SINGLE
    try:
        found = sorted(path for path in folder.iterdir() if _SHARD.fullmatch(path.name))
    except OSError as error:
        raise ModelNotFound(f"no folder {folder}: {error.strerror}") from None
    if not found:
        raise ModelNotFound(f"no .safetensors file in {folder}", hint="weights in pickle (.bin, .pt) are never loaded")
    if len(found) > 1:
        raise ModelFileError(f"{folder}: {len(found)} .safetensors files and no {INDEX} that says what lies where")
    return found[0]


def _mapped(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file. A name that leads to a pipe or a device is refused before it is opened, which could wait for ever."""
    try:
        if not path.exists():
            raise ModelNotFound(f"no file {path}")
        if not path.is_file():
            raise ModelFileError(f"{path} is no file")
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < 10:
                raise ModelFileError(f"{path.name}: {size} bytes are too few for a safetensors header")
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror}") from None
