"""What every runtime of the device is tried on: how it is opened, how near its logits are to themselves, and a plain model of its state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hybrid.edge.llama_cpp.runtime import LlamaCppRuntime
from hybrid.edge.native import NativeRuntime
from hybrid.edge.npu.open import open_npu
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.runtime import EdgeRuntime
from numpy.typing import NDArray


@dataclass(frozen=True)
class Kind:
    """`slack`: how far logits may lie from those of another cut of the same sequence, as a share of their spread; 0 is bit for bit.
    llama.cpp has other kernels, and other sums, for long batches than for short ones: up to 0.21 of the spread was seen on SmolLM2.
    `measured`: its cost curve is measured with a clock; else it is computed. `layers`: of the real model, where all would take long.
    `examples`: random sequences of calls that are tried."""

    name: str
    make: Callable[..., EdgeRuntime]
    slack: float
    measured: bool = True
    layers: int = 30
    examples: int = 300

    def open(self, model: Model, context: int = 64, **options: Any) -> EdgeRuntime:
        return self.make(model, threads=1, context=context, **options)

    def of(self, model: Model) -> Model:
        """SmolLM2 with the first of its layers, and a card that says how large these are in its file."""
        if self.layers == model.architecture.num_layers:
            return model
        gone = {name for name in model.tensors if name.startswith("blk.") and int(name.split(".")[1]) >= self.layers}
        left = {name: tensor for name, tensor in model.tensors.items() if name not in gone}
        card = dataclasses.replace(model.card, file_bytes=sum(tensor.data.nbytes for tensor in left.values()))
        architecture = dataclasses.replace(model.architecture, num_layers=self.layers)
        return dataclasses.replace(model, card=card, architecture=architecture, tensors=left)

    def assert_same(self, found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
        assert found.shape == expected.shape
        assert found.dtype == np.float32
        if self.slack == 0:
            np.testing.assert_array_equal(found, expected)
        elif expected.size:
            assert np.abs(found - expected).max() <= self.slack * expected.std()


NATIVE = Kind("native", NativeRuntime, 0.0)
LLAMA_CPP = Kind("llama_cpp", LlamaCppRuntime, 0.3)
NPU = Kind("npu", open_npu, 0.0, measured=False, layers=2, examples=25)
KINDS = (NATIVE, LLAMA_CPP, NPU)


@dataclass
class Expected:
    """Logits after a prefix, each computed once, from nothing, by a runtime that does nothing else."""

    runtime: EdgeRuntime
    known: dict[tuple[int, ...], NDArray[np.float32]] = field(default_factory=dict)

    def rows(self, ids: Sequence[int], count: int) -> NDArray[np.float32]:
        """The last `count` rows after `ids`."""
        rows = [self._row(tuple(ids[:end])) for end in range(len(ids) - count + 1, len(ids) + 1)]
        return np.array(rows, np.float32).reshape(count, self.runtime.card.vocab_size)

    def _row(self, prefix: tuple[int, ...]) -> NDArray[np.float32]:
        if prefix not in self.known:
            self.runtime.truncate(0)
            self.known[prefix] = self.runtime.extend(prefix)[0]
        return self.known[prefix]


class Ticks:
    """A clock that goes on by one second at every look."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return float(self.looks)
