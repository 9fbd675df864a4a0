"""A matrix of every weight format, multiplied natively: against NumPy to the bit, and each row for itself."""

import numpy as np
import pytest
from hybrid.npu_backends.cpu.library import load
from hybrid.npu_backends.cpu.matrix import multiply, pack
from hybrid.npu_backends.cpu.reference import round_to_int8
from hybrid.quant.formats import dequantize
from hybrid.shared_protocol.errors import EngineFailed
from hybrid.shared_protocol.gguf import GGML_TYPES, Tensor
from hybrid.tests.support.blocks import FINITE_HALVES, SCALES_AT, TYPES, random_tensor
from hybrid.tests.support.executors import ISAS, needs_native
from hybrid.tests.support.kernel_twin import once_rounded, twice_rounded
from hybrid.tests.support.matrix_twin import product

ROUNDING = {"scalar": twice_rounded, "avx2": once_rounded, "avx512": once_rounded, "neon": once_rounded}


def inputs(rows: int, columns: int, seed: int = 5) -> np.ndarray:
    """Rows of very different sizes; one group of zeros, one with a single large value."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns)).astype(np.float32) * np.exp(rng.uniform(-6, 6, (rows, 1))).astype(np.float32)
    x[0, :32], x[-1, 32:64], x[-1, 40] = 0, 0, 1e4
    return x


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("hostile", [False, True], ids=["usual scales", "extreme scales"])
def test_a_product_equals_its_twin_in_numpy_to_the_bit(type_name: str, isa: str, hostile: bool) -> None:
    tensor = random_tensor(type_name, 40, 512, seed=2, halves=FINITE_HALVES if hostile else None)
    native, x = load(), inputs(6, 512)
    found = multiply(native, tensor, pack(native, tensor), x, isa)
    expected = np.array([product(tensor, row, ROUNDING[isa]) for row in x])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("type_name", TYPES)
def test_a_row_depends_neither_on_its_neighbours_nor_on_their_number(type_name: str, isa: str) -> None:
    # 9 groups of 32 more than a chunk of 8 where the format allows it; more rows than wait for one chunk
    columns = 768 if type_name.endswith("_K") or type_name == "IQ4_XS" else 544
    tensor = random_tensor(type_name, 48, columns, seed=3)
    native, x = load(), inputs(70, columns)
    panels = pack(native, tensor)
    alone = np.concatenate([multiply(native, tensor, panels, row[None], isa) for row in x])
    for rows in (*range(1, 18), 64, 65, 70):
        np.testing.assert_array_equal(multiply(native, tensor, panels, x[:rows], isa), alone[:rows])
    np.testing.assert_array_equal(multiply(native, tensor, panels, x[::-1].copy(), isa), alone[::-1])


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("type_name", SCALES_AT)
@pytest.mark.parametrize("code", [0x00, 0x7F, 0x80, 0xFF], ids=hex)
def test_the_largest_sums_of_codes_do_not_overflow(type_name: str, isa: str, code: int) -> None:
    elements, block_bytes = GGML_TYPES[type_name]
    blocks = np.full((16 * 256 // elements, block_bytes), code, np.uint8)
    for at in SCALES_AT[type_name]:
        blocks[:, at : at + 2] = np.array([0x3C00], np.uint16).view(np.uint8)  # 1
    tensor = Tensor("t", type_name, (16, 256), blocks.reshape(-1))
    x = np.where(np.arange(256) % 2 == 0, np.float32(1), np.float32(-1)) * np.array([[1], [-1]], np.float32)
    x = np.concatenate([x, np.ones((1, 256), np.float32), -np.ones((1, 256), np.float32)])
    native = load()
    weights = dequantize(tensor).astype(np.float64)
    found = multiply(native, tensor, pack(native, tensor), x, isa)  # 1 and -1 become the codes 127 and -127
    assert (np.abs(found - x @ weights.T) <= 1e-5 * (np.abs(x) @ np.abs(weights).T)).all()


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("type_name", TYPES)
def test_the_product_is_that_of_the_dequantised_weights_and_rounded_inputs(type_name: str, isa: str) -> None:
    tensor, x = random_tensor(type_name, 32, 512, seed=6), inputs(5, 512)
    native = load()
    weights, rounded = dequantize(tensor).astype(np.float64), round_to_int8(x).astype(np.float64)
    found = multiply(native, tensor, pack(native, tensor), x, isa)
    bound = 1e-5 * (np.abs(rounded) @ np.abs(weights).T)
    assert (np.abs(found - rounded @ weights.T) <= bound).all()


@needs_native
def test_an_instruction_set_that_is_not_there_is_refused() -> None:
    tensor, native = random_tensor("Q8_0", 16, 32), load()
    with pytest.raises(EngineFailed, match="no instruction set 'mmx'"):
        multiply(native, tensor, pack(native, tensor), inputs(1, 64)[:, :32].copy(), "mmx")
