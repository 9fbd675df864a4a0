"""Which runtime computes on the device."""

from __future__ import annotations

from typing import Literal, get_args

from ..shared_protocol.errors import ConfigError
from ..shared_protocol.model import Model
from ..shared_protocol.runtime import EdgeRuntime

RuntimeName = Literal["native", "llama_cpp"]
RUNTIMES: tuple[RuntimeName, ...] = get_args(RuntimeName)


def open_runtime(model: Model, runtime: RuntimeName = "native", *, threads: int | None = None, context: int | None = None) -> EdgeRuntime:
    """Open `model`. Raises ConfigError for a runtime that is not known or not installed, and what opening it raises."""
    if runtime == "native":
        from .native import NativeRuntime

        return NativeRuntime(model, threads=threads, context=context)
    if runtime == "llama_cpp":
        from .llama_cpp.runtime import LlamaCppRuntime

        return LlamaCppRuntime(model, threads=threads, context=context)
    raise ConfigError(f"the runtime {runtime!r} is not known", param="runtime", hint=" or ".join(RUNTIMES))
