"""Executors on a chosen instruction set."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hybrid.npu_backends.cpu.executor import CpuExecutor
from hybrid.npu_backends.cpu.library import NativeUnavailable, describe, load
from hybrid.shared_protocol.model import Model


def available_isas() -> list[str]:
    """The instruction sets that the installed library and this CPU share; none without a library."""
    found = []
    for isa in ("scalar", "avx2", "avx512", "neon"):
        try:
            load({**os.environ, "HYBRID_ISA": isa})
        except NativeUnavailable:
            continue
        found.append(isa)
    return found


ISAS = available_isas()
needs_native = pytest.mark.skipif(not describe().found, reason=describe().reason)


@contextmanager
def native(model: Model, isa: str = "", **options: int) -> Iterator[CpuExecutor]:
    """A CpuExecutor that uses `isa`, closed at the end."""
    with pytest.MonkeyPatch.context() as patch:
        if isa:
            patch.setenv("HYBRID_ISA", isa)
        executor = CpuExecutor(model, **{"num_blocks": 64, "threads": 1, **options})
    try:
        yield executor
    finally:
        executor.close()


def few_words(model: Model, vocab_size: int) -> Model:
    """The model with the first words of its vocabulary only, where a test cannot wait for the head."""
    whole = model.tensors["token_embd.weight"]
    assert model.architecture.tied_embeddings
    part = whole.data.reshape(whole.shape[0], -1)[:vocab_size].reshape(-1)
    embedding = dataclasses.replace(whole, shape=(vocab_size, whole.shape[1]), data=part)
    tensors = {**model.tensors, "token_embd.weight": embedding}
    return dataclasses.replace(model, tensors=tensors, architecture=dataclasses.replace(model.architecture, vocab_size=vocab_size))


def first_layer(model: Model) -> Model:
    """The model with its first layer only, between the embedding and the head."""
    return dataclasses.replace(model, architecture=dataclasses.replace(model.architecture, num_layers=1))
