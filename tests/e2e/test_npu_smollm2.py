"""All layers of the real model on a simulated chip: how far its text is from that of the weights in the file."""

import numpy as np
from hybrid.compiler.chips import chips_of
from hybrid.compiler.compile import compile_model, facts_of
from hybrid.compiler.program import Shape
from hybrid.compiler.quantise.gate import Limit, divergence
from hybrid.edge.native import NativeRuntime
from hybrid.edge.npu.runtime import NpuRuntime
from hybrid.npu_backends.preset import load_preset
from hybrid.shared_protocol.model import Model

TEXT = (
    "Water boils when its vapour pressure reaches the pressure of the air around it. High in the mountains the air is thinner, so water "
    "boils at a lower temperature there, and it takes longer to cook an egg."
)


def test_what_a_chip_says_is_near_what_the_file_says(smollm2: Model) -> None:
    ids = smollm2.tokenizer.encode(TEXT)
    compiled = compile_model(smollm2, facts_of(smollm2, load_preset("ethos-u85-2048"), context=64, shapes=(Shape(8, 8),)))
    chip = NpuRuntime(smollm2.card, compiled, chips_of(compiled.facts.target, compiled.facts.host))
    native = NativeRuntime(smollm2, context=64)
    expected, found = (runtime.extend(ids, rows=len(ids)) for runtime in (native, chip))
    kl, same = divergence(expected, found), expected.argmax(1) == found.argmax(1)
    assert kl.mean() < Limit().kl_mean and same.mean() >= Limit().top1
    assert np.abs(found - expected).max() > 0  # its inputs are rounded in another way
    chip.close()
    native.close()
