"""Outcomes of one model's answers in a file: JSON lines, numbers only.

    {"model", "file_hash", "quantisation"}                     the first line, if it has no id: which model they are of
    {"id", "task": "code" or "text", "correct", "logprob": [...], "margin": [...], "entropy": [...]}

The lists have a number per token of the answer, in thousandths of a nat (token_signal.py). A probe is fitted on one more key, `hidden`: the
hidden state from which the last token was drawn, as base64 of little-endian float32. Other keys are not looked at.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from ...shared_protocol.errors import GateMismatch, InvalidRequest
from ...shared_protocol.json_lines import line_as, lines_in
from ...shared_protocol.model_card import ModelCard
from .calibrate import Judged
from .gate import TaskGroup
from .token_signal import TokenSignal

MAX_BYTES = 2**28


class _Head(msgspec.Struct):
    file_hash: str
    quantisation: str
    model: str = ""


class _Row(msgspec.Struct):
    id: str
    task: TaskGroup
    correct: bool
    logprob: tuple[float, ...]
    margin: tuple[float, ...]
    entropy: tuple[float, ...]
    hidden: bytes | None = None  # base64 in the file


@dataclass(frozen=True, slots=True)
class OutcomeFile:
    rows: list[Judged]
    data_hash: str  # SHA-256 hex over the lines of the outcomes
    head: _Head | None = None

    def check_model(self, card: ModelCard) -> None:
        """Raises GateMismatch where the file says that its outcomes are of another model file or quantisation."""
        head = self.head
        if head is not None and (head.file_hash, head.quantisation) != (card.file_hash, card.quantisation):
            raise GateMismatch(
                f"the outcomes are of {head.model or 'a model'} ({head.quantisation}, file {head.file_hash[:12]}...), "
                f"not of {card.name} ({card.quantisation}, file {card.file_hash[:12]}...)",
                hint="collect outcomes of this one",
            )


def read_outcome_file(path: str | Path) -> OutcomeFile:
    """Every outcome, in order. Raises NotFound, or InvalidRequest that names the line at fault."""
    lines = lines_in(path, MAX_BYTES, hint="name a file of JSON lines")
    head = _head(lines[0][1]) if lines else None
    bodies = lines[1:] if head is not None else lines
    if not bodies:
        raise InvalidRequest(f"outcomes {path}: there are none in it")
    rows = [_judged(line, where) for where, line in bodies]
    if len({row.id for row in rows}) < len(rows):
        raise InvalidRequest(f"outcomes {path}: two have the same id", hint="an id is one answer's")
    return OutcomeFile(rows, hashlib.sha256("\n".join(line for _, line in bodies).encode()).hexdigest(), head)


def _head(line: str) -> _Head | None:
    try:
        return msgspec.json.decode(line, type=_Head)
    except (msgspec.DecodeError, RecursionError):
        return None


def _judged(line: str, where: str) -> Judged:
    row = line_as(_Row, line, where, what="outcome", hint="id, task, correct, logprob, margin, entropy")
    if not len(row.logprob) == len(row.margin) == len(row.entropy) > 0:
        raise InvalidRequest(f"{where}: logprob, margin and entropy need a number for every token, and there must be one")
    tokens = zip(row.logprob, row.margin, row.entropy, strict=True)
    if row.hidden is not None and (not row.hidden or len(row.hidden) % 4):
        raise InvalidRequest(f"{where}: hidden must be base64 of float32 numbers, found {len(row.hidden)} bytes")
    state = None if row.hidden is None else np.frombuffer(row.hidden, "<f4")
    return Judged(row.id, row.task, row.correct, [TokenSignal(*(value / 1000 for value in token)) for token in tokens], state)
