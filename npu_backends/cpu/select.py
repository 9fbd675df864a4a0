"""Which executor serves a model on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import cache
from typing import Literal, cast

from ...shared_protocol.errors import ConfigError, ModelFileError
from ...shared_protocol.model import Model
from ..step import StepExecutor
from .executor import CpuExecutor
from .library import load
from .reference import ReferenceExecutor, reference_kernel_id

Backend = Literal["auto", "native", "reference"]
MAX_THREADS = 1024
log = logging.getLogger(__name__)


def open_executor(
    model: Model,
    *,
    num_blocks: int,
    block_size: int = 16,
    threads: int | None = None,
    backend: Backend = "auto",
    environment: Mapping[str, str] | None = None,
) -> StepExecutor:
    """Open `model` on the native kernels, or on the NumPy reference where "auto" cannot have them; which one says its `kernel_id`.

    HYBRID_BACKEND decides for "auto" when it is set. Raises what the chosen executor raises; too little memory is no reason to fall back.
    """
    if threads is not None and not (isinstance(threads, int) and 1 <= threads <= MAX_THREADS):
        raise ConfigError(f"threads must be from 1 to {MAX_THREADS}, found {threads}", param="threads")
    chosen = chosen_backend(backend, environment)
    if chosen != "reference":
        try:
            return CpuExecutor(model, num_blocks=num_blocks, block_size=block_size, threads=threads)
        except (ConfigError, ModelFileError) as error:
            if chosen == "native":
                raise
            _warn_once(str(error))
    return ReferenceExecutor(model, num_blocks=num_blocks, block_size=block_size, threads=threads)


def chosen_backend(backend: Backend = "auto", environment: Mapping[str, str] | None = None) -> Backend:
    """`backend`, or what HYBRID_BACKEND says for "auto". Raises ConfigError for a name that is none."""
    chosen: str = backend
    if chosen == "auto":
        chosen = (os.environ if environment is None else environment).get("HYBRID_BACKEND") or "auto"
    if chosen not in ("auto", "native", "reference"):
        raise ConfigError(f"the backend {chosen!r} is not known", hint="auto, native or reference", param="backend")
    return cast(Backend, chosen)


def serving_kernel_id(environment: Mapping[str, str] | None = None) -> str:
    """The kernel id that a model opened here with "auto" would have. Raises ConfigError as `open_executor` does."""
    chosen = chosen_backend("auto", environment)
    if chosen != "reference":
        try:
            return load(environment).kernel_id
        except ConfigError:
            if chosen == "native":
                raise
    return reference_kernel_id()


@cache
def _warn_once(reason: str) -> None:
    """A process opens many executors, and the reason stays the same."""
    log.warning("the NumPy reference serves, much slower: %s", reason)
