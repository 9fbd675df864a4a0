"""From a model to a runtime on a chip: compiled if it has not been, opened, and ready."""

from __future__ import annotations

from ...compiler.cache import compiled_for
from ...compiler.chips import chips_of
from ...compiler.compile import Progress, facts_of, silent
from ...npu_backends.preset import load_preset
from ...shared_protocol.model import Model
from ..checks import chosen_context
from .runtime import NpuRuntime

TARGET = "ethos-u85-2048"
SCHEME = "w8a8"


def open_npu(
    model: Model,
    threads: int | None = None,
    context: int | None = None,
    *,
    target: str | None = None,
    scheme: str = SCHEME,
    smooth: str | None = None,
    progress: Progress = silent,
) -> NpuRuntime:
    """`target`: a preset's name or the path of a chip's TOML file; None: TARGET. `threads` is taken for symmetry: the simulated chip
    computes in one. `smooth`: a text to smooth by; None: as the weights are.

    Raises InvalidRequest for a context that the model does not have, ConfigError for a chip that is none, DoesNotFit, CompileError.
    """
    chip = load_preset(target or TARGET)
    held = chosen_context(context, model.card)
    compiled = compiled_for(
        model, facts_of(model, chip, scheme=scheme, context=held, smooth=smooth), smooth=smooth, progress=progress
    ).compiled
    return NpuRuntime(model.card, compiled, chips_of(compiled.facts.target, compiled.facts.host))
