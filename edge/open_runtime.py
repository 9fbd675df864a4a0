"""Which runtime computes on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from ..shared_protocol.errors import ConfigError
from ..shared_protocol.model import Model
from ..shared_protocol.runtime import EdgeRuntime

RuntimeName = Literal["native", "llama_cpp", "npu"]
RUNTIMES: tuple[RuntimeName, ...] = get_args(RuntimeName)


def open_runtime(
    model: Model,
    runtime: RuntimeName = "native",
    *,
    threads: int | None = None,
    context: int | None = None,
    target: str | None = None,
    smooth: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> EdgeRuntime:
    """Open `model`. `target`: the chip of "npu", a preset or a TOML file; `smooth`: a text that its weights are smoothed by, or None.
    `progress` hears of stages that take long: what, and how many of how many are done.

    Raises ConfigError for a runtime that is not known or not installed, a target or smoothing of one that has none, and what opening it
    raises.
    """
    if target is not None and runtime != "npu":
        raise ConfigError(f"a target was given, and the runtime {runtime!r} has none", param="target", hint='runtime "npu" has')
    if smooth is not None and runtime != "npu":
        raise ConfigError(
            f"smoothing was asked for, and the runtime {runtime!r} compiles nothing", param="smooth", hint='runtime "npu" does'
        )
    if runtime == "native":
        from .native import NativeRuntime

        return NativeRuntime(model, threads=threads, context=context)
    if runtime == "llama_cpp":
        from .llama_cpp.runtime import LlamaCppRuntime

        return LlamaCppRuntime(model, threads=threads, context=context)
    if runtime == "npu":
        from ..compiler.compile import silent
        from .npu.open import open_npu

        return open_npu(model, threads, context, target=target, smooth=smooth, progress=progress or silent)
    raise ConfigError(f"the runtime {runtime!r} is not known", param="runtime", hint=" or ".join(RUNTIMES))
