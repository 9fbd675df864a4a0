"""A compiled model is compared with its source in any context, down to one token."""

from __future__ import annotations

import pytest
from hybrid.compiler.compile import compile_model, facts_of
from hybrid.compiler.fidelity import LENGTH, PIECES, fidelity
from hybrid.compiler.program import Shape
from hybrid.npu_backends.preset import load_preset
from hybrid.shared_protocol.model import Model


@pytest.mark.parametrize(("context", "tokens"), [(1, 1), (8, 8), (17, 16), (512, LENGTH)])
def test_as_many_tokens_as_fit_the_context_are_compared(tiny_llama: Model, context: int, tokens: int) -> None:
    compiled = compile_model(tiny_llama, facts_of(tiny_llama, load_preset("systolic-32"), context=context, shapes=[Shape(1, 1)]))
    found = fidelity(tiny_llama, compiled.facts, compiled.constants)
    assert found.tokens == PIECES * tokens
    assert found.kl_mean < 0.1
