"""The GGUF reader on files that lie."""

from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.shared_protocol.errors import ModelFileError, ModelNotFound
from hybrid.shared_protocol.gguf import GgufFile, read_gguf
from hybrid.shared_protocol.model import load_model
from hybrid.tests.support.gguf_writer import header, string, tensor_header, tiny_metadata, value, write_gguf
from hypothesis import given, settings
from hypothesis import strategies as st


def read_bytes(tmp_path: Path, raw: bytes) -> GgufFile:
    path = tmp_path / "file.gguf"
    path.write_bytes(raw)
    return read_gguf(path)


def key(name: str | bytes, type_and_value: bytes) -> bytes:
    return string(name) + type_and_value


def one_tensor(dims: list[int], type_id: int = 0, offset: int = 0, name: str | bytes = "w", num_dims: int | None = None) -> bytes:
    return header(1, 0) + tensor_header(name, dims, type_id, offset, num_dims)


FLOAT = struct.pack("<If", 6, 1.0)
HUGE = 2**64 - 1
# what the file claims -> (bytes, what the error must name)
LIES: dict[str, tuple[bytes, str]] = {
    "no magic": (b"GGML" + bytes(40), "no GGUF file"),
    "too short": (b"GGUF\3\0\0\0", "8 bytes"),
    "empty": (b"", "0 bytes"),
    "version 1": (header(0, 0, version=1), "version 1"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "version"),
    "10^19 keys": (header(0, HUGE), "keys claimed"),
    "10^19 tensors": (header(HUGE, 0), "tensors claimed"),
    "65,536 keys in no bytes": (header(0, 65_536), "key 0"),
    "empty key": (header(0, 1) + key("", FLOAT), "key 0"),
    "long key": (header(0, 1) + key("k" * 257, FLOAT), "key 0"),
    "endless key": (header(0, 1) + struct.pack("<Q", HUGE), "key 0"),
    "key that is no UTF-8": (header(0, 1) + key(b"\xff", FLOAT), "key 0"),
    "key twice": (header(0, 2) + key("k", FLOAT) * 2, "'k'"),
    "unknown value type": (header(0, 1) + key("k", struct.pack("<I", 13)), "'k'"),
    "value cut off": (header(0, 1) + key("k", struct.pack("<I", 12)), "'k'"),
    "endless string": (header(0, 1) + key("k", struct.pack("<IQ", 8, HUGE)), "'k'"),
    "string that is no UTF-8": (header(0, 1) + key("k", struct.pack("<I", 8) + string(b"\xff")), "'k'"),
    "endless array": (header(0, 1) + key("k", struct.pack("<IIQ", 9, 5, HUGE)), "'k'"),
    "array whose bytes wrap": (header(0, 1) + key("k", struct.pack("<IIQ", 9, 12, 2**61)), "'k'"),
    "endless array of strings": (header(0, 1) + key("k", struct.pack("<IIQ", 9, 8, 2**60)), "'k'"),
    "array of endless strings": (header(0, 1) + key("k", struct.pack("<IIQQ", 9, 8, 1, HUGE)), "'k'"),
    "array of strings cut off": (header(0, 1) + key("k", struct.pack("<IIQQ", 9, 8, 2, 8) + bytes(8)), "'k'"),
    "array of arrays": (header(0, 1) + key("k", struct.pack("<IIQ", 9, 9, 1)), "'k'"),
    "array of an unknown type": (header(0, 1) + key("k", struct.pack("<IIQ", 9, 99, 1)), "'k'"),
    "alignment 0": (header(0, 1) + key("general.alignment", struct.pack("<II", 4, 0)), "general.alignment"),
    "alignment 3": (header(0, 1) + key("general.alignment", struct.pack("<II", 4, 3)), "general.alignment"),
    "alignment of 2^31": (header(0, 1) + key("general.alignment", struct.pack("<II", 4, 2**31)), "general.alignment"),
    "alignment as text": (header(0, 1) + key("general.alignment", value("32")), "general.alignment"),
    "no dimensions": (one_tensor([]), "'w'"),
    "a million dimensions": (one_tensor([1], num_dims=1_000_000), "1000000 dimensions"),
    "dimension 0": (one_tensor([0, 4]), "dimension of 0"),
    "product that wraps to 2^32": (one_tensor([2**32 + 1, 2**32]), "'w'"),
    "product that wraps to 0": (one_tensor([2**32, 2**32]), "'w'"),
    "four huge dimensions": (one_tensor([HUGE] * 4), "'w'"),
    "unknown tensor type": (one_tensor([32], type_id=4), "unknown type 4"),
    "row no multiple of the block": (one_tensor([33], type_id=3), "multiples of 32"),
    "offset not aligned": (one_tensor([1], offset=4), "not aligned"),
    "offset past the file": (one_tensor([1], offset=2**63), "'w'"),
    "data cut off": (one_tensor([1]), "after the end"),
    "empty tensor name": (one_tensor([1], name=""), "tensor 0"),
    "tensor name that is no UTF-8": (one_tensor([1], name=b"\xff"), "tensor 0"),
    "tensor cut off": (header(1, 0) + string("w"), "'w'"),
    "tensor twice": (header(2, 0) + tensor_header("w", [1], 0, 0) + tensor_header("w", [1], 0, 32) + bytes(128), "'w' occurs twice"),
    "tensors that overlap": (header(2, 0) + tensor_header("a", [16], 0, 0) + tensor_header("b", [1], 0, 32) + bytes(256), "'b'"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_is_a_typed_error_that_names_what_lied(tmp_path: Path, lie: str) -> None:
    raw, named = LIES[lie]
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=named):
        read_bytes(tmp_path, raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@given(raw=st.binary(max_size=99))
def test_random_bytes_after_the_magic_never_do_more_than_raise(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    with pytest.raises(ModelFileError):
        read_bytes(tmp_path_factory.getbasetemp(), b"GGUF" + raw[:16].ljust(16, b"\xff") + raw[16:])


@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_but_never_worse(
    tiny_llama_path: Path, tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    raw = bytearray(tiny_llama_path.read_bytes()[:12_000])
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(4, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.sampled_from([len(raw), 200, 5_000]))
    with pytest.raises(ModelFileError):  # its tensors are cut off in any case
        read_bytes(tmp_path_factory.getbasetemp(), bytes(raw[:cut]))


def test_every_cut_of_a_small_file_is_refused(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf", {"a": "text", "b": [1, 2]}, {"w": ("F32", (2, 2), bytes(16))}).read_bytes()
    for length in range(len(whole) - 16):  # the last 16 bytes are padding
        with pytest.raises(ModelFileError):
            read_bytes(tmp_path, whole[:length])


def test_values_come_back_as_they_were_written(tmp_path: Path) -> None:
    written = {"flag": True, "count": 7, "ratio": 0.5, "name": "é", "words": ["a", "", "ü"], "numbers": [-1, 2], "none": []}
    matrix = np.arange(6, dtype=np.float32)
    gguf = read_gguf(write_gguf(tmp_path / "v.gguf", written, {"w": ("F32", (2, 3), matrix.tobytes()), "v": ("F32", (1,), bytes(4))}))
    assert {name: item for name, item in gguf.metadata.items() if name not in ("numbers", "none")} == {
        name: item for name, item in written.items() if name not in ("numbers", "none")
    }
    assert np.asarray(gguf.metadata["numbers"]).tolist() == [-1, 2]
    assert len(gguf.metadata["none"]) == 0  # type: ignore[arg-type]
    assert (gguf.tensors["w"].shape, gguf.tensors["w"].type_name) == ((2, 3), "F32")
    assert gguf.tensors["w"].data.view(np.float32).tolist() == matrix.tolist()
    assert list(gguf.tensors) == ["w", "v"]


def test_an_alignment_of_the_file_is_respected(tmp_path: Path) -> None:
    tensors = {"a": ("F32", (1,), b"\1\0\0\0"), "b": ("F32", (1,), b"\2\0\0\0")}
    gguf = read_gguf(write_gguf(tmp_path / "a.gguf", {"general.alignment": 256}, tensors, alignment=256))
    assert gguf.tensors["b"].data.tolist() == [2, 0, 0, 0]


def test_tensors_are_read_only_views_of_the_file(tiny_llama_path: Path) -> None:
    tensor = read_gguf(tiny_llama_path).tensors["token_embd.weight"]
    assert not tensor.data.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        tensor.data[0] = 0


def test_a_missing_file_is_not_found_and_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        read_gguf(tmp_path / "none.gguf")
    with pytest.raises(ModelFileError):
        read_gguf(tmp_path)


def test_a_vocabulary_comes_back_whole(tmp_path: Path) -> None:
    metadata = tiny_metadata()
    gguf = read_gguf(write_gguf(tmp_path / "t.gguf", metadata, {}))
    assert gguf.metadata["tokenizer.ggml.tokens"] == metadata["tokenizer.ggml.tokens"]


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path / "pipe.gguf", Path("/dev/zero"), tmp_path):
        with pytest.raises(ModelFileError, match="is no regular file"):
            read_gguf(path)


@pytest.mark.parametrize("path", ["~no-such-user/x.gguf", "a\0b.gguf", "\ud800.gguf", "/" + "a" * 5000 + ".gguf"])
def test_what_no_file_can_be_called_is_a_typed_error(path: str) -> None:
    with pytest.raises((ModelNotFound, ModelFileError)):
        load_model(path)
