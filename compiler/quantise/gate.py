"""How far a quantised graph strays from its source, over texts; 4 bits are accepted only within a limit.

Divergence KL(source || quantised) in nats, of the distributions after every token; top-1: the share of tokens after which both would say
the same word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...npu_backends.ir.graph import Graph
from ...shared_protocol.compile_errors import CompileError, TooInexact
from ..capture.sequence import SequenceRun

Floats = NDArray[np.float32]
Network = tuple[Graph, Mapping[str, NDArray[Any]]]  # a graph with logits for every row, and its constants


@dataclass(frozen=True, slots=True)
class Agreement:
    tokens: int
    kl_mean: float
    kl_p99: float
    top1: float  # 0 to 1


@dataclass(frozen=True, slots=True)
class Limit:
    """Beyond it a text is noticeably another. A small model in good 4-bit weights is published at 0.04 nats and 0.90, a damaged one at
    0.6 and 0.70."""

    kl_mean: float = 0.1
    top1: float = 0.85


def measure(source: Network, quantised: Network, sequences: Sequence[Sequence[int]]) -> Agreement:
    """Over every token of the sequences. Raises CompileError without tokens, and for logits that are not finite."""
    return compare(logits_of(source, sequences), logits_of(quantised, sequences))


def compare(expected: Iterable[Floats], found: Iterable[Floats]) -> Agreement:
    """Of logits in pieces that lie alike. Errors as for measure."""
    divergences, same = [], []
    for wanted, given in zip(expected, found, strict=True):
        divergences.append(divergence(wanted, given))
        same.append(wanted.argmax(axis=1) == given.argmax(axis=1))
    if not divergences:
        raise CompileError("the gate takes at least one token")
    kl = np.concatenate(divergences)
    if not np.isfinite(kl).all():
        raise CompileError("logits that are not finite cannot be compared")
    return Agreement(len(kl), float(kl.mean()), float(np.quantile(kl, 0.99)), float(np.concatenate(same).mean()))


def accept(agreement: Agreement, limit: Limit | None = None) -> None:
    """Raises TooInexact beyond the limit, with both figures."""
    limit = limit or Limit()
    if agreement.kl_mean > limit.kl_mean or agreement.top1 < limit.top1:
        raise TooInexact(
            f"over {agreement.tokens} tokens the quantised model strays {agreement.kl_mean:.4f} nats from its source on average (99 %: "
            f"{agreement.kl_p99:.4f}) and agrees on {agreement.top1:.1%} of the words; "
            f"the limit is {limit.kl_mean:g} nats and {limit.top1:.1%}",
            hint="compile it as w8a8, or from a file whose blocks are carried over",
        )


def divergence(expected: Floats, found: Floats) -> NDArray[np.float64]:
    """KL(expected || found) of every row of logits."""
    p, q = (_log_softmax(logits.astype(np.float64)) for logits in (expected, found))
    result: NDArray[np.float64] = np.maximum((np.exp(p) * (p - q)).sum(axis=1), 0)
    return result


def _log_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    shifted = logits - logits.max(axis=1, keepdims=True)
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


def logits_of(network: Network, sequences: Sequence[Sequence[int]]) -> Iterator[Floats]:
    """After every token, a chunk of a sequence at a time: [tokens, vocabulary]."""
    graph, constants = network
    rows = next(value.shape[0] for value in graph.inputs if value.name == "ids")
    for ids in sequences:
        run = SequenceRun(graph, constants)
        for at in range(0, len(ids), rows):
            chunk = ids[at : at + rows]
            logits: Floats = run.feed(graph, chunk)["logits"]
            if len(logits) < rows:
                raise CompileError(f"{graph.name} has logits for {len(logits)} of its {rows} rows; the gate compares all")
            yield logits[rows - len(chunk) :]
