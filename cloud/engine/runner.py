"""Turns a plan into the arrays of one executor call, and the logits of that call into draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...npu_backends.step import StepBatch, StepExecutor
from ...shared_protocol.errors import HybridError
from ...shared_protocol.sampling import SampleRow, sample_rows, top_logprobs
from .messages import TokenLogprobs
from .scheduler import Limits, Share

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a share gave: the target's draw at each of its rows, and their logits [rows, vocab]. `error`: nothing could be drawn."""

    tokens: tuple[int, ...]
    logits: Logits
    error: str | None = None


class Runner:
    """Arrays are allocated once; a step fills their beginnings.

    `vocab_size` masks the padding of the logits above the real vocabulary.
    """

    def __init__(self, executor: StepExecutor, limits: Limits, vocab_size: int) -> None:
        tokens, sequences = limits.max_num_batched_tokens, min(limits.max_num_seqs, limits.max_num_batched_tokens)
        self._executor = executor
        self._mask = vocab_size if vocab_size < executor.vocab_size else None
        self._token_ids = np.zeros(tokens, np.int32)
        self._positions = np.zeros(tokens, np.int32)
        self._counting = np.arange(executor.num_blocks * executor.block_size + 1, dtype=np.int32)
        self._query_start = np.zeros(sequences + 1, np.int32)
        self._tables = np.zeros(sequences * executor.num_blocks, np.int32)
        self._rows = np.zeros(tokens, np.int32)

    def run(self, shares: Sequence[Share]) -> list[Drawn]:
        """Compute all shares in one call and draw at their rows, in their order. Raises what the executor raises."""
        width = max(len(share.request.block_ids) for share in shares)
        tables = self._tables[: len(shares) * width].reshape(len(shares), width)
        tables.fill(0)
        tokens = rows = 0
        for index, share in enumerate(shares):
            end = tokens + share.count
            self._copy_ids(share, self._token_ids[tokens:end])
            self._positions[tokens:end] = self._counting[share.start : share.start + share.count]
            self._query_start[index + 1] = end
            blocks = np.frombuffer(share.request.block_ids, np.int32)
            tables[index, : len(blocks)] = blocks
            self._rows[rows : rows + share.num_rows] = self._counting[end - share.num_rows : end]
            tokens, rows = end, rows + share.num_rows
        logits = self._executor.step(
            StepBatch(
                token_ids=self._token_ids[:tokens],
                positions=self._positions[:tokens],
                query_start=self._query_start[: len(shares) + 1],
                block_tables=tables,
                logit_rows=self._rows[:rows],
            )
        )
        return self._draw(shares, logits)

    def logprobs(self, drawn: Drawn, tokens: Sequence[int], count: int) -> tuple[TokenLogprobs, ...]:
        """Raw log-probabilities at the first rows of a share: of `tokens`, one a row, and of the `count` most likely."""
        found = (top_logprobs(row[: self._mask], token, count) for row, token in zip(drawn.logits, tokens, strict=False))
        return tuple(TokenLogprobs(token, *row) for token, row in zip(tokens, found, strict=True))

    def _copy_ids(self, share: Share, target: NDArray[np.int32]) -> None:
        request = share.request
        if share.count == 1:
            target[0] = request.token_ids[share.start]
            return
        known = share.count - share.num_drafts
        target[:known] = request.token_ids[share.start : share.start + known]
        if share.num_drafts:
            target[known:] = request.draft_ids[: share.num_drafts]

    def _draw(self, shares: Sequence[Share], logits: Logits) -> list[Drawn]:
        """Rows are drawn together; if one cannot be, each request is drawn alone, so that only the one at fault fails."""
        rows = [row for share in shares for row in self._sample_rows(share)]
        try:
            draws: list[int] | None = sample_rows(logits, rows)
        except HybridError:
            draws = None
        drawn, first = [], 0
        for share in shares:
            last = first + share.num_rows
            if draws is not None:
                drawn.append(Drawn(tuple(draws[first:last]), logits[first:last]))
            else:
                drawn.append(self._draw_alone(share, logits[first:last]))
            first = last
        return drawn

    def _draw_alone(self, share: Share, logits: Logits) -> Drawn:
        try:
            return Drawn(tuple(sample_rows(logits, self._sample_rows(share))), logits)
        except HybridError as error:
            return Drawn((), logits, str(error))

    def _sample_rows(self, share: Share) -> list[SampleRow]:
        """The row of position p draws the token of position p + 1."""
        request, end = share.request, share.start + share.count
        return [SampleRow(request.params, request.seed, p + 1, self._mask) for p in range(end - share.num_rows, end)]
