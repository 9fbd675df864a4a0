"""Buffers of compiled models, as problems for a memory planner: architectures stated here, no weights needed."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.compiler.chips import host_beside
from hybrid.compiler.compile import compile_program
from hybrid.compiler.memory.buffer import Buffer
from hybrid.compiler.memory.lifetimes import OUTSIDE
from hybrid.compiler.program import Facts, Shape
from hybrid.npu_backends.preset import load_preset
from hybrid.shared_protocol.architecture import Architecture, Rotary

TARGET = "ethos-u85-2048"
CONTEXT = 2048
SHAPES = {"prefill": Shape(32, 1), "decode": Shape(1, 1)}


def _rotary(base: float, interleaved: bool) -> Rotary:
    return Rotary(tuple(base ** (-2 * pair / 64) for pair in range(32)), interleaved)


MODELS = {
    "smollm2-135m": Architecture(
        *("llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, 1e-5),
        rotary=_rotary(1e5, interleaved=True),
        tied_embeddings=True,
        attention_scale=64**-0.5,
    ),
    "qwen2.5-0.5b": Architecture(
        *("qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e-6),
        rotary=_rotary(1e6, interleaved=False),
        tied_embeddings=True,
        attention_scale=64**-0.5,
        qkv_bias=True,
    ),
}


def model_problems() -> Iterator[tuple[str, list[Buffer]]]:
    """Of each model's prefill and decode the buffers that the arena outside of the chip holds, views and in-place pairs merged."""
    chip = load_preset(TARGET)
    for name, architecture in MODELS.items():
        facts = Facts("", name, "", "w8a8", CONTEXT, tuple(SHAPES.values()), chip, host_beside(chip))
        for phase, shape in SHAPES.items():
            program = compile_program(architecture, facts, shape)
            yield f"{name} {phase}", list(program.layout.plans[OUTSIDE].buffers)
