"""Which executor serves a model on this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Literal

from ...shared_protocol.errors import ConfigError, HybridError
from ...shared_protocol.model import Model
from ..step import StepExecutor
from .executor import CpuExecutor
from .reference import ReferenceExecutor

Backend = Literal["auto", "native", "reference"]
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

    HYBRID_BACKEND decides for "auto" when it is set. Raises what the chosen executor raises.
    """
    chosen: str = backend
    if chosen == "auto":
        chosen = (os.environ if environment is None else environment).get("HYBRID_BACKEND") or "auto"
    if chosen not in ("auto", "native", "reference"):
        raise ConfigError(f"the backend {chosen!r} is not known", hint="auto, native or reference", param="backend")
    if chosen != "reference":
        try:
            return CpuExecutor(model, num_blocks=num_blocks, block_size=block_size, threads=threads)
        except HybridError as error:
            if chosen == "native":
                raise
            log.warning("the NumPy reference serves, much slower: %s", error)
    return ReferenceExecutor(model, num_blocks=num_blocks, block_size=block_size, threads=threads)
