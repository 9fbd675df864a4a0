"""Reader of GGUF files. Every count, length and offset is checked against the file before it is used.

    magic "GGUF" | version u32 | tensors u64 | keys u64
    key:    name (u64 length, UTF-8) | type u32 | value
    tensor: name | n_dims u32 | dims u64 x n_dims, fastest first | type u32 | offset u64 into the data
    padding up to the alignment
    data:   each tensor at its offset, a multiple of the alignment

The file is memory-mapped: tensors are views, nothing is allocated from a count that the file merely claims.
Source of the layout: the GGUF specification of the ggml project, versions 2 and 3 (little-endian).
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from .errors import ModelFileError, ModelNotFound

MAX_NAME = 256  # bytes of a key or a tensor name
MAX_DIMS = 4
MAX_KEYS = 65_536
MAX_TENSORS = 65_536
MAX_ALIGNMENT = 1 << 20

# name -> (elements of a block, bytes of a block)
GGML_TYPES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "F32": (1, 4),
        "F16": (1, 2),
        "Q4_0": (32, 18),
        "Q4_1": (32, 20),
        "Q5_0": (32, 22),
        "Q5_1": (32, 24),
        "Q8_0": (32, 34),
        "Q8_1": (32, 36),
        "Q2_K": (256, 84),
        "Q3_K": (256, 110),
        "Q4_K": (256, 144),
        "Q5_K": (256, 176),
        "Q6_K": (256, 210),
        "Q8_K": (256, 292),
        "IQ4_NL": (32, 18),
        "IQ4_XS": (256, 136),
        "I8": (1, 1),
        "I16": (1, 2),
        "I32": (1, 4),
        "I64": (1, 8),
        "F64": (1, 8),
        "BF16": (1, 2),
    }
)
# fmt: off
_TYPE_NAMES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K",
    14: "Q6_K", 15: "Q8_K", 20: "IQ4_NL", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 30: "BF16",
}
# fmt: on
TYPE_IDS: Mapping[str, int] = MappingProxyType({name: number for number, name in _TYPE_NAMES.items()})

_BOOL, _STRING, _ARRAY = 7, 8, 9
_NUMBERS = {
    number: np.dtype("<" + code)
    for number, code in {0: "u1", 1: "i1", 2: "u2", 3: "i2", 4: "u4", 5: "i4", 6: "f4", 7: "u1", 10: "u8", 11: "i8", 12: "f8"}.items()
}
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """One tensor of a file, still in its stored format. `shape` is row-major, (rows, columns) = (out, in): GGUF's dims reversed."""

    name: str
    type_name: str
    shape: tuple[int, ...]
    data: NDArray[np.uint8]  # [bytes], a read-only view of the memory map


@dataclass(frozen=True, slots=True, eq=False)
class GgufFile:
    """A checked file. Metadata values are bool, int, float, str, list[str], or a read-only NumPy array of numbers."""

    path: Path
    metadata: Mapping[str, object]
    tensors: Mapping[str, Tensor]
    alignment: int


def read_gguf(path: str | Path) -> GgufFile:
    """Map `path` and check its header. Raises ModelNotFound, or ModelFileError naming the key or tensor at fault."""
    path = Path(path)
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for
        raise ModelFileError(f"{path} is no regular file")
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size < 24:
                raise ModelFileError(f"{path.name}: {size} bytes are too few for a GGUF header")
            data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (FileNotFoundError, ValueError):  # ValueError: what no file can be called
        raise ModelNotFound(f"no file {str(path)!r}") from None
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror}") from None
    return _Reader(path, data).read()


class _Reader:
    """A cursor over the mapped file; `what` in its errors is the key or tensor that is being read."""

    def __init__(self, path: Path, data: NDArray[np.uint8]) -> None:
        self.path = path
        self.data = data
        self.view = data.data
        self.at = 0

    def read(self) -> GgufFile:
        self._check(bytes(self.view[:4]) == b"GGUF", "header", "the magic is not GGUF: this is no GGUF file")
        self.at = 4
        version = self._number(4, "header")
        self._check(version in (2, 3), "header", f"version {version} is not supported, 2 and 3 are (convert the file again)")
        num_tensors, num_keys = int(self._number(10, "header")), int(self._number(10, "header"))
        self._check(num_keys <= MAX_KEYS, "header", f"{num_keys} keys claimed, the limit is {MAX_KEYS}")
        self._check(num_tensors <= MAX_TENSORS, "header", f"{num_tensors} tensors claimed, the limit is {MAX_TENSORS}")
        metadata: dict[str, object] = {}
        for index in range(num_keys):
            key = self._name(f"key {index}")
            self._check(key not in metadata, f"key {key!r}", "occurs twice")
            metadata[key] = self._value(int(self._number(4, f"key {key!r}")), f"key {key!r}")
        alignment = metadata.get("general.alignment", 32)
        power_of_two = isinstance(alignment, int) and 1 <= alignment <= MAX_ALIGNMENT and alignment & (alignment - 1) == 0
        self._check(power_of_two, "key 'general.alignment'", f"must be a power of two up to {MAX_ALIGNMENT}, found {alignment!r:.40}")
        assert isinstance(alignment, int)
        return GgufFile(self.path, MappingProxyType(metadata), MappingProxyType(self._tensors(num_tensors, alignment)), alignment)

    def _tensors(self, count: int, alignment: int) -> dict[str, Tensor]:
        headers: dict[str, tuple[str, tuple[int, ...], int, int]] = {}  # name -> type, shape, offset, bytes
        for index in range(count):
            name = self._name(f"tensor {index}")
            what = f"tensor {name!r}"
            self._check(name not in headers, what, "occurs twice")
            headers[name] = self._tensor_header(what, alignment)
        start = (self.at + alignment - 1) // alignment * alignment
        end_of_previous, tensors = 0, {}
        for name, (type_name, shape, offset, nbytes) in sorted(headers.items(), key=lambda item: item[1][2]):
            what = f"tensor {name!r}"
            self._check(
                offset >= end_of_previous, what, f"at offset {offset} overlaps the tensor before it, which ends at {end_of_previous}"
            )
            end_of_previous = offset + nbytes
            missing = start + end_of_previous - len(self.data)
            self._check(missing <= 0, what, f"ends {missing} bytes after the end of the file: truncated? (pull it again)")
            tensors[name] = Tensor(name, type_name, shape, self.data[start + offset : start + end_of_previous])
        return {name: tensors[name] for name in headers}

    def _tensor_header(self, what: str, alignment: int) -> tuple[str, tuple[int, ...], int, int]:
        num_dims = int(self._number(4, what))
        self._check(1 <= num_dims <= MAX_DIMS, what, f"has {num_dims} dimensions, 1 to {MAX_DIMS} are possible")
        dims = [int(self._number(10, what)) for _ in range(num_dims)]
        self._check(min(dims) >= 1, what, f"has a dimension of 0: {dims}")
        type_id = int(self._number(4, what))
        self._check(type_id in _TYPE_NAMES, what, f"has the unknown type {type_id}; known: {', '.join(GGML_TYPES)}")
        type_name = _TYPE_NAMES[type_id]
        block, block_bytes = GGML_TYPES[type_name]
        self._check(dims[0] % block == 0, what, f"has rows of {dims[0]}, {type_name} needs multiples of {block}")
        elements = 1
        for dim in dims:  # Python integers do not wrap
            elements *= dim
        offset = int(self._number(10, what))
        self._check(offset % alignment == 0, what, f"has the offset {offset}, which is not aligned to {alignment}")
        return type_name, tuple(reversed(dims)), offset, elements // block * block_bytes

    def _value(self, type_id: int, what: str) -> object:
        if type_id == _STRING:
            return self._string(what)
        if type_id != _ARRAY:
            return self._number(type_id, what)
        item_type, count = int(self._number(4, what)), int(self._number(10, what))
        self._check(item_type != _ARRAY, what, "is an array of arrays, which no known key is")
        if item_type == _STRING:
            return self._strings(count, what)
        dtype = self._dtype(item_type, what)
        self._need(count * dtype.itemsize, what)
        values = np.frombuffer(self.view, dtype, count, self.at)
        self.at += count * dtype.itemsize
        return values.astype(np.bool_) if item_type == _BOOL else values

    def _strings(self, count: int, what: str) -> list[str]:
        """Read `count` strings: the hot loop of a vocabulary, so without a call per string."""
        self._need(count * 8, what)
        view, at, size, unpack = self.view, self.at, len(self.data), _LENGTH.unpack_from
        strings = []
        try:
            for _ in range(count):
                (length,) = unpack(view, at)
                end = at + 8 + length
                if end > size:
                    raise ModelFileError(f"{self.path.name}: {what} has a string that ends {end - size} bytes after the end of the file")
                strings.append(str(view[at + 8 : end], "utf-8"))
                at = end
        except struct.error:
            raise ModelFileError(f"{self.path.name}: {what} claims {count} strings, the file ends before them") from None
        except UnicodeDecodeError:
            raise ModelFileError(f"{self.path.name}: {what} has a string that is not UTF-8 (number {len(strings)})") from None
        self.at = at
        return strings

    def _name(self, what: str) -> str:
        length = int(self._number(10, what))
        self._check(1 <= length <= MAX_NAME, what, f"has a name of {length} bytes, 1 to {MAX_NAME} are possible")
        self.at -= 8
        return self._string(what)

    def _string(self, what: str) -> str:
        length = int(self._number(10, what))
        self._need(length, what)
        self.at += length
        try:
            return str(self.view[self.at - length : self.at], "utf-8")
        except UnicodeDecodeError:
            raise ModelFileError(f"{self.path.name}: {what} is not UTF-8") from None

    def _number(self, type_id: int, what: str) -> int | float | bool:
        dtype = self._dtype(type_id, what)
        self._need(dtype.itemsize, what)
        value: int | float = np.frombuffer(self.view, dtype, 1, self.at)[0].item()
        self.at += dtype.itemsize
        return bool(value) if type_id == _BOOL else value

    def _dtype(self, type_id: int, what: str) -> np.dtype[np.generic]:
        self._check(type_id in _NUMBERS, what, f"has the unknown value type {type_id}")
        return _NUMBERS[type_id]

    def _need(self, length: int, what: str) -> None:
        missing = self.at + length - len(self.data)
        self._check(missing <= 0, what, f"needs {missing} bytes more than the file has")

    def _check(self, holds: bool, what: str, problem: str) -> None:
        if not holds:
            raise ModelFileError(f"{self.path.name}: {what} {problem}" if what != "header" else f"{self.path.name}: {problem}")
