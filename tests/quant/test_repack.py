"""Repacking for the CPU kernels loses nothing, whatever the block holds."""

from pathlib import Path

import numpy as np
import pytest
from hybrid.npu_backends.cpu.library import load
from hybrid.npu_backends.cpu.matrix import load_row, pack
from hybrid.quant.formats import FORMATS, dequantize
from hybrid.quant.repack import PANEL_FORMATS, bits_held, packed_bytes, repack, unpack
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.gguf import GGML_TYPES, Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.blocks import EXTREME_HALVES, TYPES, random_tensor
from hybrid.tests.support.executors import needs_native
from hypothesis import given, settings
from hypothesis import strategies as st


def test_every_format_has_panels() -> None:
    assert set(PANEL_FORMATS) == set(FORMATS) == set(TYPES)
    assert sorted(form.kind for form in PANEL_FORMATS.values()) == list(range(len(FORMATS)))


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize(("rows", "columns"), [(16, 256), (5, 512), (33, 256)])
def test_unpacking_the_panels_gives_the_dequantised_block_to_the_bit(type_name: str, rows: int, columns: int) -> None:
    tensor = random_tensor(type_name, rows, columns, halves=EXTREME_HALVES)
    panels = repack(tensor)
    assert panels.nbytes == packed_bytes(tensor)
    np.testing.assert_array_equal(unpack(panels, type_name, tensor.shape).view(np.uint32), dequantize(tensor).view(np.uint32))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_bytes_survive(data: st.DataObject) -> None:
    type_name = data.draw(st.sampled_from(TYPES))
    elements, block_bytes = GGML_TYPES[type_name]
    columns = max(elements, 32)
    size = columns // elements * block_bytes
    rows = data.draw(st.integers(1, 3))
    tensor = Tensor(
        "t", type_name, (rows, columns), np.frombuffer(data.draw(st.binary(min_size=rows * size, max_size=rows * size)), np.uint8)
    )
    np.testing.assert_array_equal(unpack(repack(tensor), type_name, tensor.shape), dequantize(tensor))  # NaN equals NaN here


@needs_native
@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize(("rows", "columns"), [(32, 512), (19, 256)])
def test_the_native_library_packs_the_same_and_reads_rows_back_to_the_bit(type_name: str, rows: int, columns: int) -> None:
    native, tensor = load(), random_tensor(type_name, rows, columns, seed=1, halves=EXTREME_HALVES)
    panels = pack(native, tensor)
    np.testing.assert_array_equal(panels, repack(tensor))
    expected = dequantize(tensor)
    for row in range(rows):
        found = load_row(native, tensor, panels, row)
        np.testing.assert_array_equal(found, expected[row])
        number = ~np.isnan(found)
        assert (np.signbit(found) == np.signbit(expected[row]))[number].all()  # of zeros too


def test_panels_take_the_bits_per_weight_that_the_manual_names() -> None:
    lines = (Path(__file__).parents[2] / "docs/weights.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in lines if line.startswith(("| Q", "| IQ"))]
    named = {name: (float(stored), float(held)) for name, stored, held in rows} | {"F16": (16, 16), "BF16": (16, 16), "F32": (32, 32)}
    assert set(named) == set(TYPES)
    for type_name, bits in named.items():
        assert bits == (FORMATS[type_name].bits, PANEL_FORMATS[type_name].bits)
        assert packed_bytes(random_tensor(type_name, 64, 512)) * 8 == bits[1] * 64 * 512


def test_what_is_wider_in_memory_than_in_the_file_is_told_with_its_bits() -> None:
    narrow, wide = random_tensor("Q8_0", 16, 256), random_tensor("Q4_K", 16, 256)
    assert bits_held([narrow]) == "8.500 bits per weight in panels, 8.500 in the file"
    assert bits_held([narrow, wide]) == "6.562 bits per weight in panels, 6.500 in the file; scales take whole bytes in Q4_K 4.625 for 4.5"
    assert bits_held([random_tensor("Q8_0", 8, 32)]) == "17.000 bits per weight in panels, 8.500 in the file"  # rows filled up to 16


def test_a_code_lies_where_the_picture_says() -> None:
    # row 17 of 32: panel 1, lane 1. Its group 1 of 2, input 6: word 1, byte 2 of the low nibbles.
    blocks = np.zeros((32, 2, 20), np.uint8)
    blocks[17, 1, 4 + 6] = 0x0B
    panels = repack(Tensor("t", "Q4_1", (32, 64), blocks.reshape(-1)))
    assert np.flatnonzero(panels).tolist() == [(1 * 2 + 1) * 320 + 1 * 64 + 1 * 4 + 2]
    # the second scale, m, of the same block: after 256 bytes of codes and 16 d
    blocks = np.zeros((32, 2, 20), np.uint8)
    blocks[17, 1, 2] = 1
    panels = repack(Tensor("t", "Q4_1", (32, 64), blocks.reshape(-1)))
    assert np.flatnonzero(panels).tolist() == [(1 * 2 + 1) * 320 + 256 + 32 + 2 * 1]


def test_a_fifth_bit_lies_in_the_plane_of_ones() -> None:
    # Q5_0: d, 4 bytes of fifth bits, nibbles. Row 2, input 21 = word 5, lane 2 * 4 + 1: bit 5 of that byte, after 256 bytes of nibbles
    blocks = np.zeros((16, 1, 22), np.uint8)
    blocks[2, 0, 2 + 21 // 8] = 1 << 21 % 8
    panels = repack(Tensor("t", "Q5_0", (16, 32), blocks.reshape(-1)))
    assert np.flatnonzero(panels).tolist() == [256 + 2 * 4 + 1] and panels[256 + 9] == 1 << 5


def test_the_upper_bits_of_q6_k_lie_in_the_plane_of_twos_and_its_header_comes_first() -> None:
    # row 3, input 199 = group 6, input 7 of it: word 1, lane 3 * 4 + 3. GGUF: second half of qh, byte 7, its third pair of bits
    blocks = np.zeros((16, 1, 210), np.uint8)
    blocks[3, 0, 128 + 32 + 7] = 2 << 4
    panels = repack(Tensor("t", "Q6_K", (16, 256), blocks.reshape(-1)))
    assert np.flatnonzero(panels).tolist() == [32 + 6 * 416 + 256 + 3 * 4 + 3] and panels[32 + 6 * 416 + 256 + 15] == 2 << 2


def test_every_matrix_of_a_real_model_survives(smollm2: Model) -> None:
    for name in ("blk.0.attn_k.weight", "blk.29.ffn_down.weight"):
        tensor = smollm2.tensors[name]
        np.testing.assert_array_equal(unpack(repack(tensor), tensor.type_name, tensor.shape), dequantize(tensor))


def test_what_has_no_panels_is_refused_by_name() -> None:
    with pytest.raises(ModelFileError, match="'t' has the type F64; the native kernels read Q4_1, Q8_0"):
        repack(Tensor("t", "F64", (16, 32), np.zeros(16 * 32 * 8, np.uint8)))
    with pytest.raises(
        ModelFileError, match=r"'t' has the shape \[16, 40\]; the native kernels need rows of a multiple of 32 weights for F16"
    ):
        repack(Tensor("t", "F16", (16, 40), np.zeros(16 * 40 * 2, np.uint8)))
