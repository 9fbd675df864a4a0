"""The formats, by hand, against vectors of the public reference in Python, and bit for bit against the one in llama.cpp."""

from __future__ import annotations

import base64
import ctypes
import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.quant.formats import FALLBACK, FORMATS, dequantize, fitting_type, quantize
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.llama_cpp import library_path
from numpy.typing import NDArray

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "formats.json").read_text())
BLOCKED = [name for name, chosen in FORMATS.items() if chosen.block > 1]
EXACT = [name for name in BLOCKED if FORMATS[name].exact_pack]
NEAREST = [name for name in BLOCKED if not FORMATS[name].exact_pack]


def tensor(type_name: str, shape: tuple[int, ...], raw: bytes | NDArray[np.uint8]) -> Tensor:
    return Tensor("w", type_name, shape, np.frombuffer(bytes(raw), np.uint8))


def decoded(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(base64.b64decode(text), np.uint8)


@pytest.fixture(scope="module")
def reference() -> ctypes.CDLL:
    library = library_path()
    if library is None:
        pytest.skip("xllamacpp, which brings the reference, is not installed")
    return ctypes.CDLL(str(library))


def reference_unpack(reference: ctypes.CDLL, name: str, raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    values = np.empty((len(raw) // FORMATS[name].block_bytes, FORMATS[name].block), np.float32)
    unpack = getattr(reference, f"dequantize_row_{name.lower().replace('_k', '_K')}")
    unpack(raw.ctypes.data_as(ctypes.c_void_p), values.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(values.size))
    return values


def reference_pack(reference: ctypes.CDLL, name: str, values: NDArray[np.float32]) -> NDArray[np.uint8]:
    packed = np.empty(values.size // FORMATS[name].block * FORMATS[name].block_bytes, np.uint8)
    pack = getattr(reference, f"quantize_row_{name.lower().replace('_k', '_K')}_ref")
    pack(values.ctypes.data_as(ctypes.c_void_p), packed.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(values.size))
    return packed


def test_a_q4_1_block_worked_out_by_hand() -> None:
    # d = 0.5, m = -2; byte i holds element i in its low nibble, element 16 + i in its high nibble
    raw = struct.pack("<ee", 0.5, -2.0) + bytes(i | (15 - i) << 4 for i in range(16))
    assert dequantize(tensor("Q4_1", (1, 32), raw)).tolist() == [[0.5 * i - 2 for i in range(16)] + [0.5 * (15 - i) - 2 for i in range(16)]]


def test_a_q8_0_block_worked_out_by_hand() -> None:
    raw = struct.pack("<e32b", 0.25, *range(-16, 16))
    assert dequantize(tensor("Q8_0", (32,), raw)).tolist() == [0.25 * q for q in range(-16, 16)]


def test_the_fifth_bit_of_a_q5_0_block_worked_out_by_hand() -> None:
    raw = struct.pack("<eI", 1.0, 1 << 17) + bytes([0, 0x30] + [0] * 14)  # element 17: high nibble of byte 1, and bit 17
    expected = [-16.0] * 32
    expected[17] = 3.0
    assert dequantize(tensor("Q5_0", (32,), raw)).tolist() == expected


def test_the_sixth_sub_block_of_a_q4_k_block_worked_out_by_hand() -> None:
    # sub-block 5: scale 0b10_0011 = 35, minimum 0b01_0010 = 18; its codes are the high nibbles of bytes 64 to 95
    scales = bytearray(12)
    scales[1], scales[5], scales[9] = 0b10 << 6, 0b01 << 6, 0b0010_0011
    codes = bytearray(128)
    codes[64 + 7] = 0xB0
    values = dequantize(tensor("Q4_K", (256,), struct.pack("<ee", 0.5, 0.25) + bytes(scales + codes)))
    expected = [0.0] * 256
    expected[160:192] = [-0.25 * 18] * 32
    expected[160 + 7] += 0.5 * 35 * 11
    assert values.tolist() == expected


def test_halves_and_floats_are_taken_as_they_are() -> None:
    assert dequantize(tensor("F16", (2,), struct.pack("<ee", 1.5, -0.0))).tolist() == [1.5, -0.0]
    assert dequantize(tensor("F32", (1, 2), struct.pack("<ff", 1e-30, 3.0))).tolist() == [[np.float32(1e-30), 3.0]]
    assert dequantize(tensor("BF16", (2,), b"\x80\x3f\x49\xc0")).tolist() == [1.0, -3.140625]


def test_an_unknown_type_is_refused_with_what_is_supported() -> None:
    with pytest.raises(ModelFileError, match=r"'w' has the type Q8_K; supported: Q4_0, Q4_1, .*, IQ4_XS, F16, BF16, F32"):
        dequantize(tensor("Q8_K", (256,), bytes(292)))


@pytest.mark.parametrize("name", GOLDEN["unpack"])
def test_blocks_with_extreme_scales_unpack_to_the_reference_values_recorded_here(name: str) -> None:
    raw = decoded(GOLDEN["unpack"][name]["blocks"])
    values = dequantize(tensor(name, (raw.size // FORMATS[name].block_bytes, FORMATS[name].block), raw))
    values[np.isnan(values)] = np.nan
    assert hashlib.sha256(values.astype("<f4").tobytes()).hexdigest() == GOLDEN["unpack"][name]["values_sha256"]


def test_every_format_but_f32_has_a_recorded_vector() -> None:
    assert {*GOLDEN["unpack"], "F32"} == set(FORMATS)


@pytest.mark.parametrize("name", [*EXACT, "F16", "BF16"])
def test_values_pack_to_the_reference_bytes_recorded_here(name: str) -> None:
    values = decoded(GOLDEN["pack"]["values"]).view("<f4").reshape(-1, 32)
    assert quantize(values, name).tobytes() == decoded(GOLDEN["pack"][name]).tobytes()


def samples(columns: int = 32) -> NDArray[np.float32]:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((200, columns)).astype(np.float32) * np.exp(rng.uniform(-20, 8, (200, 1))).astype(np.float32)
    rows[0], rows[1], rows[2], rows[3] = 0, 1, -3, np.arange(columns)
    rows[4] = np.arange(columns) % 2 - 0.5  # halves: ties of rounding
    rows[5] = 1e-7  # below the smallest f16
    rows[6, ::2] = 60_000
    return rows


@pytest.mark.parametrize("name", BLOCKED)
def test_random_blocks_unpack_as_the_reference_unpacks_them(reference: ctypes.CDLL, name: str) -> None:
    raw = np.random.default_rng(5).integers(0, 256, (3_000, FORMATS[name].block_bytes), np.uint8).reshape(-1)
    expected = reference_unpack(reference, name, raw)
    assert dequantize(tensor(name, expected.shape, raw)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", EXACT)
def test_packing_agrees_with_the_reference_byte_for_byte(reference: ctypes.CDLL, name: str) -> None:
    assert quantize(samples(), name).tobytes() == reference_pack(reference, name, samples()).tobytes()


@pytest.mark.parametrize("name", NEAREST)
def test_plain_packing_errs_little_more_than_the_search_of_the_reference(reference: ctypes.CDLL, name: str) -> None:
    values = np.random.default_rng(9).standard_normal((400, 256)).astype(np.float32)

    def error(packed: NDArray[np.uint8]) -> float:
        return float(np.sqrt(np.mean((dequantize(tensor(name, values.shape, packed)) - values) ** 2)))

    ours, theirs = error(quantize(values, name)), error(reference_pack(reference, name, values))
    assert 0 < ours < 1.12 * theirs


@pytest.mark.parametrize("name", NEAREST)
def test_what_was_packed_once_keeps_its_size_and_stays_near(name: str) -> None:
    values = samples(256)
    unpacked = dequantize(tensor(name, values.shape, quantize(values, name)))
    largest = np.abs(values).max(axis=1, keepdims=True)
    step = largest * 2 / (2 ** int(name.removeprefix("IQ").removeprefix("Q")[0]) - 1)
    held = largest[:, 0] > 0.1  # the unit of the scales is a normal f16
    assert (np.abs(unpacked - values) <= step)[held].all()
    assert (np.abs(unpacked) <= 2 * largest).all()
    assert not unpacked[0].any()


def test_half_a_step_between_two_bfloats_goes_to_the_even_one_and_a_nan_stays_one() -> None:
    values = np.array([0x3F808000, 0x3F818000, 0x7F800001, 0xFF800000], np.uint32).view(np.float32)
    assert quantize(values, "BF16").view("<u2").tolist() == [0x3F80, 0x3F82, 0x7FC0, 0xFF80]


@pytest.mark.parametrize("name", BLOCKED)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_values_that_no_scale_can_hold_are_refused(name: str, value: float) -> None:
    values = np.zeros((3, 256), np.float32)
    values[1, 77] = value
    with pytest.raises(ModelFileError, match=name):
        quantize(values, name)


@pytest.mark.parametrize(
    ("name", "at_576", "at_100"),
    [
        ("Q4_0", "Q4_0", "F16"),
        ("Q8_0", "Q8_0", "F16"),
        ("IQ4_NL", "IQ4_NL", "F16"),
        ("Q2_K", "Q4_0", "F16"),
        ("Q3_K", "Q4_0", "F16"),
        ("Q4_K", "Q4_1", "F16"),
        ("Q5_K", "Q5_1", "F16"),
        ("Q6_K", "Q8_0", "F16"),
        ("IQ4_XS", "IQ4_NL", "F16"),
        ("BF16", "BF16", "BF16"),
    ],
)
def test_rows_that_are_no_multiple_of_a_block_are_stored_in_a_type_that_fits(name: str, at_576: str, at_100: str) -> None:
    assert (fitting_type(name, 576), fitting_type(name, 100), fitting_type(name, 512)) == (at_576, at_100, name)


def test_every_type_stores_rows_of_any_width_and_never_in_fewer_bits() -> None:
    for name, chosen in FORMATS.items():
        for columns in (1, 32, 100, 576, 768):
            fitting = FORMATS[fitting_type(name, columns)]
            values = np.ones((3, columns), np.float32)
            assert np.abs(dequantize(tensor(fitting.name, values.shape, quantize(values, fitting.name))) - 1).max() < 0.01
            assert fitting.bits >= chosen.bits
    assert set(FALLBACK) == set(BLOCKED)


def test_bits_per_weight_count_the_scales() -> None:
    assert {name: FORMATS[name].bits for name in ("Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q2_K", "Q6_K", "IQ4_XS", "F16")} == {
        "Q4_0": 4.5, "Q4_1": 5.0, "Q5_0": 5.5, "Q8_0": 8.5, "Q2_K": 2.625, "Q6_K": 6.5625, "IQ4_XS": 4.25, "F16": 16.0,
    }  # fmt: skip


def test_real_weights_unpack_as_the_reference_unpacks_them(reference: ctypes.CDLL, smollm2: Model) -> None:
    for name in ("blk.7.ffn_down.weight", "token_embd.weight"):
        weights = smollm2.tensors[name]
        rows = min(weights.shape[0], 576)
        raw = weights.data[: rows * len(weights.data) // weights.shape[0]]
        expected = reference_unpack(reference, weights.type_name, raw).reshape(rows, weights.shape[1])
        assert dequantize(Tensor(name, weights.type_name, expected.shape, raw)).tobytes() == expected.tobytes()
