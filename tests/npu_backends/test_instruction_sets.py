"""Instruction sets that round alike compute alike, whatever their registers hold."""

from pathlib import Path

import numpy as np
import pytest
from hybrid.shared_protocol.model import load_model
from hybrid.tests.support.executors import ISAS, native
from hybrid.tests.support.gguf_writer import tiny_metadata, tiny_tensors, write_gguf
from hybrid.tests.support.steps import run

IDS = [(i * 37 + 5) % 320 for i in range(60)]
TABLE = [1, 2, 3, 4]
needs_avx512 = pytest.mark.skipif("avx512" not in ISAS, reason="this CPU or this library has no AVX-512 with VNNI")


@needs_avx512
@pytest.mark.parametrize("weights", ["Q4_1", "Q8_0", "Q5_0", "F16"])
def test_avx512_equals_avx2_to_the_bit_at_every_height_of_a_tile(tmp_path: Path, weights: str) -> None:
    model = load_model(write_gguf(tmp_path / "tiny.gguf", tiny_metadata(), tiny_tensors(weights=weights, embedding=weights)))
    with native(model, "avx2") as executor:
        expected = run(executor, IDS, TABLE)
    with native(model, "avx512") as executor:
        for rows in (*range(1, 18), 60):
            np.testing.assert_array_equal(run(executor, IDS, TABLE, chunk=rows), expected)


@needs_avx512
def test_the_smallest_code_of_q8_0_is_read_as_it_is(tmp_path: Path) -> None:
    tensors = tiny_tensors(weights="Q8_0")
    name, shape, raw = tensors["blk.0.ffn_down.weight"]
    blocks = np.frombuffer(raw, np.uint8).reshape(-1, 34).copy()
    blocks[:, 2:] = 128  # -128 in every place: what packing never writes, and a file may hold
    tensors["blk.0.ffn_down.weight"] = (name, shape, blocks.tobytes())
    model = load_model(write_gguf(tmp_path / "tiny.gguf", tiny_metadata(), tensors))
    found = []
    for isa in ("avx2", "avx512"):
        with native(model, isa) as executor:
            found.append(run(executor, IDS, TABLE))
    np.testing.assert_array_equal(*found)
