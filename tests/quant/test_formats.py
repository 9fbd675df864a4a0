"""The formats, by hand and byte for byte against the public reference in llama.cpp."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest
from hybrid.quant.formats import FORMATS, dequantize, quantize
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.llama_cpp import library_path
from numpy.typing import NDArray


def tensor(type_name: str, shape: tuple[int, ...], raw: bytes | NDArray[np.uint8]) -> Tensor:
    return Tensor("w", type_name, shape, np.frombuffer(bytes(raw), np.uint8))


@pytest.fixture(scope="module")
def reference() -> ctypes.CDLL:
    library = library_path()
    if library is None:
        pytest.skip("xllamacpp, which brings the reference, is not installed")
    return ctypes.CDLL(str(library))


def test_a_q4_1_block_worked_out_by_hand() -> None:
    # d = 0.5, m = -2; byte i holds element i in its low nibble, element 16 + i in its high nibble
    raw = struct.pack("<ee", 0.5, -2.0) + bytes(i | (15 - i) << 4 for i in range(16))
    assert dequantize(tensor("Q4_1", (1, 32), raw)).tolist() == [[0.5 * i - 2 for i in range(16)] + [0.5 * (15 - i) - 2 for i in range(16)]]


def test_a_q8_0_block_worked_out_by_hand() -> None:
    raw = struct.pack("<e32b", 0.25, *range(-16, 16))
    assert dequantize(tensor("Q8_0", (32,), raw)).tolist() == [0.25 * q for q in range(-16, 16)]


def test_halves_and_floats_are_taken_as_they_are() -> None:
    assert dequantize(tensor("F16", (2,), struct.pack("<ee", 1.5, -0.0))).tolist() == [1.5, -0.0]
    assert dequantize(tensor("F32", (1, 2), struct.pack("<ff", 1e-30, 3.0))).tolist() == [[np.float32(1e-30), 3.0]]


def test_an_unknown_type_is_refused_with_what_is_supported() -> None:
    with pytest.raises(ModelFileError, match="'w' has the type Q4_0; supported: Q4_1, Q8_0, F16, F32"):
        dequantize(tensor("Q4_0", (32,), bytes(18)))


def samples() -> NDArray[np.float32]:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((200, 32)).astype(np.float32) * np.exp(rng.uniform(-20, 8, (200, 1))).astype(np.float32)
    rows[0], rows[1], rows[2], rows[3] = 0, 1, -3, np.arange(32)
    rows[4] = np.arange(32) % 2 - 0.5  # halves: ties of rounding
    rows[5] = 1e-7  # below the smallest f16
    return rows


@pytest.mark.parametrize("name", ["Q4_1", "Q8_0"])
def test_packing_and_unpacking_agree_with_the_reference_byte_for_byte(reference: ctypes.CDLL, name: str) -> None:
    values = samples()
    packed = np.empty(len(values) * FORMATS[name].block_bytes, np.uint8)
    unpacked = np.empty_like(values)
    count = ctypes.c_int64(values.size)
    getattr(reference, f"quantize_row_{name.lower()}_ref")(
        values.ctypes.data_as(ctypes.c_void_p), packed.ctypes.data_as(ctypes.c_void_p), count
    )
    getattr(reference, f"dequantize_row_{name.lower()}")(
        packed.ctypes.data_as(ctypes.c_void_p), unpacked.ctypes.data_as(ctypes.c_void_p), count
    )
    assert quantize(values, name).tobytes() == packed.tobytes()
    assert dequantize(tensor(name, values.shape, packed)).tobytes() == unpacked.tobytes()


def test_real_weights_unpack_as_the_reference_unpacks_them(reference: ctypes.CDLL, smollm2: Model) -> None:
    for name in ("blk.7.ffn_down.weight", "token_embd.weight"):
        weights = smollm2.tensors[name]
        rows = min(weights.shape[0], 576)
        raw = weights.data[: rows * len(weights.data) // weights.shape[0]]
        expected = np.empty((rows, weights.shape[1]), np.float32)
        unpack = getattr(reference, f"dequantize_row_{weights.type_name.lower()}")
        unpack(raw.ctypes.data_as(ctypes.c_void_p), expected.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(expected.size))
        assert dequantize(Tensor(name, weights.type_name, expected.shape, raw)).tobytes() == expected.tobytes()
