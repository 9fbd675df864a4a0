"""The safetensors reader on files that lie, and on those that do not."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.quant.formats import dequantize
from hybrid.shared_protocol.errors import ModelFileError, ModelNotFound
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.safetensors import INDEX, read_safetensors, read_shards
from hybrid.tests.support.safetensors_writer import entry, file_of, packed, write_safetensors, write_shards
from hypothesis import given
from hypothesis import strategies as st

HUGE = 2**64 - 1
FOUR = bytes(4)
# what the file claims -> (bytes, what the error must name)
LIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "0 bytes"),
    "too short": (struct.pack("<Q", 2), "8 bytes"),
    "header of 2^64 bytes": (struct.pack("<Q", HUGE) + b"{}", f"claims {HUGE}"),
    "header longer than the file": (struct.pack("<Q", 3) + b"{}", "claims 3"),
    "header of no bytes": (file_of(b"", b"12"), "claims 0"),
    "header that is no JSON": (file_of(b"{]"), "no JSON"),
    "header that is no object": (file_of([1]), "must be a JSON object, found list"),
    "header that is no UTF-8": (file_of(b'{"\xff": 1}'), "UTF-8"),
    "header of nested lists": (file_of(b"[" * 100_000), "no JSON"),
    "number of 5,000 digits": (file_of(b'{"w": ' + b"9" * 5_000 + b"}"), "no JSON"),
    "no tensors": (file_of({}), "0 tensors"),
    "65,537 tensors": (file_of({str(number): 0 for number in range(65_537)}), "65537 tensors"),
    "tensor twice": (file_of(b'{"w": 1, "w": 2}'), "'w' occurs twice"),
    "key of a tensor twice": (file_of(b'{"w": {"dtype": "F32", "dtype": "F16", "shape": [1], "data_offsets": [0, 4]}}', FOUR), "'dtype'"),
    "tensor that is no object": (file_of({"w": 5}), "'w'"),
    "no dtype": (file_of({"w": {"shape": [1], "data_offsets": [0, 4]}}, FOUR), "'w'.*dtype"),
    "a key too many": (file_of({"w": {**entry(), "scale": 1}}, FOUR), "'w'.*no others"),
    "empty name": (file_of({"": entry()}, FOUR), "''"),
    "long name": (file_of({"k" * 257: entry()}, FOUR), "257 characters"),
    "half a surrogate as name": (file_of(b'{"\\ud800": {}}'), "must have the keys"),
    "dtype I64": (file_of({"w": entry("I64", (1,), 0, 8)}, bytes(8)), "'w' has the type 'I64'; supported: F32, F16, BF16"),
    "dtype F8_E4M3": (file_of({"w": entry("F8_E4M3", (4,))}, FOUR), "'F8_E4M3'"),
    "dtype that is a list": (file_of({"w": entry(["F32"])}, FOUR), "'w'"),
    "no dimensions": (file_of({"w": entry(shape=[])}, FOUR), "'w' has the shape"),
    "five dimensions": (file_of({"w": entry(shape=[1] * 5)}, FOUR), "'w' has the shape"),
    "dimension 0": (file_of({"w": entry(shape=[0, 4], end=0)}), "'w' has the shape"),
    "negative dimension": (file_of({"w": entry(shape=[-1, -1])}, FOUR), "'w' has the shape"),
    "dimension that is true": (file_of({"w": entry(shape=[True])}, FOUR), "'w' has the shape"),
    "dimension 1.0": (file_of({"w": entry(shape=[1.0])}, FOUR), "'w' has the shape"),
    "dimension of 100 digits": (file_of({"w": entry(shape=[10**100])}, FOUR), "'w' has the shape"),
    "product that wraps to 1": (file_of({"w": entry(shape=[2**32 + 1, 2**32])}, FOUR), "'w' has 4 bytes"),
    "four huge dimensions": (file_of({"w": entry(shape=[2**62] * 4)}, FOUR), "'w' has 4 bytes"),
    "offsets that run backwards": (file_of({"w": entry(begin=4, end=0)}, FOUR), "'w' has the data_offsets"),
    "negative offset": (file_of({"w": entry(begin=-4, end=0)}, FOUR), "'w' has the data_offsets"),
    "offset that is text": (file_of({"w": entry(begin="0")}, FOUR), "'w' has the data_offsets"),
    "three offsets": (file_of({"w": {**entry(), "data_offsets": [0, 4, 8]}}, FOUR), "'w' has the data_offsets"),
    "offsets that disagree with the shape": (file_of({"w": entry(shape=[2])}, FOUR), r"'w' has 4 bytes, F32 \(2,\) needs 8"),
    "data cut off": (file_of({"w": entry()}, b"123"), "'w' ends 1 bytes after the end"),
    "offset far past the file": (file_of({"w": entry(begin=2**62, end=2**62 + 4)}, FOUR), "'w' begins at"),
    "gap before the first": (file_of({"w": entry(begin=4, end=8)}, bytes(8)), "'w' begins at 4 and leaves a gap"),
    "gap": (file_of({"a": entry(), "b": entry(begin=8, end=12)}, bytes(12)), "'b' begins at 8 and leaves a gap"),
    "overlap": (file_of({"a": entry(shape=[2], end=8), "b": entry(begin=4, end=8)}, bytes(8)), "'b' begins at 4 and overlaps"),
    "two tensors in one place": (file_of({"a": entry(), "b": entry()}, FOUR), "overlaps"),
    "bytes after the last tensor": (file_of({"w": entry()}, bytes(5)), "1 bytes after the last tensor"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_file_that_lies_is_a_typed_error_that_names_what_lied(tmp_path: Path, lie: str) -> None:
    raw, named = LIES[lie]
    path = tmp_path / "m.safetensors"
    path.write_bytes(raw)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=named):
        read_safetensors(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000 + 20 * len(raw)


def test_a_header_longer_than_any_model_needs_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 1 << 30))
        file.truncate(1 << 31)  # sparse
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="claims 1073741824"):
        read_safetensors(path)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@given(raw=st.binary(max_size=99))
def test_random_bytes_never_do_more_than_raise(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "random.safetensors"
    path.write_bytes(struct.pack("<Q", max(2, len(raw) - 7)) + b"{" + raw)
    with pytest.raises(ModelFileError):
        read_safetensors(path)


@given(data=st.data())
def test_a_damaged_header_is_read_or_refused_but_never_worse(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    whole = write_safetensors(path, {"a": packed(np.ones((2, 3), np.float32)), "b": packed(np.ones(4, np.float32), "F16")}).read_bytes()
    raw = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 33))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(raw))
    try:
        tensors = read_safetensors(path)
    except ModelFileError:
        return
    assert sum(tensor.data.nbytes for tensor in tensors.values()) == 32


def values_of(tensors: Mapping[str, Tensor]) -> dict[str, list[Any]]:
    return {name: dequantize(tensor).tolist() for name, tensor in tensors.items()}


def test_tensors_come_back_in_each_type_as_views_of_the_file(tmp_path: Path) -> None:
    matrix = np.array([[1.5, -2.0], [0.25, 1024.0], [0.0, -0.0]], np.float32)
    specs = {name: packed(matrix, name) for name in ("F32", "BF16", "F16")}
    tensors = read_safetensors(write_safetensors(tmp_path / "m.safetensors", specs, {"format": "pt"}))
    assert [(tensor.name, tensor.type_name, tensor.shape) for tensor in tensors.values()] == [(name, name, (3, 2)) for name in specs]
    assert values_of(tensors) == dict.fromkeys(specs, matrix.tolist())
    assert not tensors["BF16"].data.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        tensors["F32"].data[0] = 0


def test_a_header_that_leaves_the_data_unaligned_is_read_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    text = json.dumps({"w": entry()}).encode()
    path.write_bytes(file_of(text + b" " * (1 - len(text) % 2), struct.pack("<f", 2.5)))
    assert values_of(read_safetensors(path)) == {"w": [2.5]}


def test_a_model_in_several_files_is_one(tmp_path: Path) -> None:
    specs = {f"w{number}": packed(np.full((1, 2), number, np.float32)) for number in range(5)}
    write_shards(tmp_path, specs, 2)
    write_safetensors(tmp_path / "consolidated.safetensors", {"other": packed(np.ones(1, np.float32))})  # not in the index
    shards = read_shards(tmp_path)
    assert values_of(shards.tensors) == {f"w{number}": [[number, number]] for number in (0, 2, 4, 1, 3)}
    assert [path.name for path in shards.files] == ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def test_one_file_needs_no_index_whatever_its_name(tmp_path: Path) -> None:
    spec = {"w": packed(np.ones(1, np.float32))}
    write_safetensors(tmp_path / "weights.safetensors", spec)
    assert list(read_shards(tmp_path).tensors) == ["w"]
    write_safetensors(tmp_path / "more.safetensors", spec)
    with pytest.raises(ModelFileError, match=r"2 \.safetensors files"):
        read_shards(tmp_path)
    write_safetensors(tmp_path / "model.safetensors", spec)
    assert [path.name for path in read_shards(tmp_path).files] == ["model.safetensors"]


@pytest.mark.parametrize(
    "name", ["../out.safetensors", "/etc/passwd", "sub/m.safetensors", "..", "m.bin", ".safetensors", "", "m\0.safetensors", 5, None, ["m"]]
)
def test_an_index_cannot_lead_out_of_its_folder(tmp_path: Path, name: object) -> None:
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    for path in (tmp_path / "out.safetensors", folder / "sub" / "m.safetensors"):
        write_safetensors(path, {"w": packed(np.ones(1, np.float32))})
    (folder / INDEX).write_text(json.dumps({"weight_map": {"w": name}}))
    with pytest.raises(ModelFileError, match="weight_map"):
        read_shards(folder)


@pytest.mark.parametrize(
    ("index", "named"),
    [
        ({}, "weight_map"),
        ({"weight_map": {}}, "weight_map"),
        ({"weight_map": ["w"]}, "weight_map"),
        ({"weight_map": {"w": "a.safetensors", "v": "a.safetensors"}}, "'v' is missing"),
        ({"weight_map": {"v": "a.safetensors"}}, "'w' lies here.*no file"),
        ({"weight_map": {"w": "b.safetensors"}}, "'x' lies here|'w' is missing"),
    ],
)
def test_an_index_that_disagrees_with_its_files_is_refused(tmp_path: Path, index: object, named: str) -> None:
    write_safetensors(tmp_path / "a.safetensors", {"w": packed(np.ones(1, np.float32))})
    write_safetensors(tmp_path / "b.safetensors", {"x": packed(np.ones(1, np.float32))})
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(ModelFileError, match=named):
        read_shards(tmp_path)


def test_a_file_named_by_the_index_must_be_there(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": {"w": "gone.safetensors"}}))
    with pytest.raises(ModelNotFound, match="gone"):
        read_shards(tmp_path)


def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError, match="is no file"):
        read_safetensors(tmp_path / "model.safetensors")
    os.mkfifo(tmp_path / INDEX)
    with pytest.raises(ModelFileError, match="no file"):
        read_shards(tmp_path)


def test_weights_in_pickle_are_not_looked_at(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelNotFound, match=r"no \.safetensors file"):
        read_shards(tmp_path)
    with pytest.raises(ModelNotFound):
        read_shards(tmp_path / "nowhere")
