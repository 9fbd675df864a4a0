"""Repacking for the CPU kernels loses nothing, whatever the block holds."""

import numpy as np
import pytest
from hybrid.quant.formats import dequantize
from hybrid.quant.repack import packed_bytes, repack, unpack
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.gguf import GGML_TYPES, Tensor
from hybrid.shared_protocol.model import Model

EXTREME_HALVES = [0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x3C00, 0x8001]  # zeros to infinities


def random_tensor(type_name: str, rows: int, columns: int, seed: int = 0) -> Tensor:
    """Random bytes are valid blocks; scales are drawn from the extreme ones."""
    rng = np.random.default_rng(seed)
    elements, block_bytes = GGML_TYPES[type_name]
    blocks = rng.integers(0, 256, (rows * columns // elements, block_bytes), np.uint8)
    scales = 2 if type_name == "Q4_1" else 1
    blocks[:, : 2 * scales] = rng.choice(np.array(EXTREME_HALVES, np.uint16), (len(blocks), scales)).view(np.uint8)
    return Tensor("t", type_name, (rows, columns), blocks.reshape(-1))


@pytest.mark.parametrize("type_name", ["Q4_1", "Q8_0"])
@pytest.mark.parametrize(("rows", "columns"), [(16, 32), (48, 96), (5, 64), (33, 32)])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # infinity * 0
def test_unpacking_the_panels_gives_the_dequantised_block_to_the_bit(type_name: str, rows: int, columns: int) -> None:
    tensor = random_tensor(type_name, rows, columns)
    panels = repack(tensor)
    assert panels.nbytes == packed_bytes(tensor)
    np.testing.assert_array_equal(unpack(panels, type_name, tensor.shape).view(np.uint32), dequantize(tensor).view(np.uint32))


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


def test_every_matrix_of_a_real_model_survives(smollm2: Model) -> None:
    for name in ("blk.0.attn_k.weight", "blk.29.ffn_down.weight"):
        tensor = smollm2.tensors[name]
        np.testing.assert_array_equal(unpack(repack(tensor), tensor.type_name, tensor.shape), dequantize(tensor))


def test_a_type_without_panels_is_refused_by_name() -> None:
    with pytest.raises(ModelFileError, match="'t' has the type F16"):
        repack(Tensor("t", "F16", (16, 32), np.zeros(16 * 32 * 2, np.uint8)))
