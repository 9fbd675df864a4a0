"""Many prompts answered at once, with what the whole distribution behind every token says, and the hidden state behind the last.

The engine gives log-probabilities of the likeliest tokens only; entropy needs all logits, so this drives an executor itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from hybrid.npu_backends.cpu.select import open_executor
from hybrid.npu_backends.step import StepBatch
from hybrid.router.confidence.token_signal import TokenSignal, token_signal
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams, sample

BLOCK = 16
CHUNK = 256  # prompt tokens in one step


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    prompt_ids: Sequence[int]
    params: SamplingParams  # max_tokens is set
    seed: int = 0


@dataclass(slots=True)
class Answered:
    job: Job
    token_ids: list[int] = field(default_factory=list)  # the end token included
    signals: list[TokenSignal] = field(default_factory=list)  # one a token
    hidden: np.ndarray | None = None  # float32 [hidden_size], that the last token was drawn from
    ended: bool = False  # by the model, not by max_tokens


class BatchDecoder:
    """`rows` sequences side by side, each with blocks of its own for `context` tokens; a row that is free takes the next job.

    A job's tokens do not depend on its neighbours: that is what the kernels promise of a step.
    """

    def __init__(self, model: Model, *, rows: int, context: int, threads: int | None = None) -> None:
        self.model, self.rows, self.context = model, rows, context
        self._width = -(-context // BLOCK)
        self._executor = open_executor(model.for_context(context), num_blocks=1 + rows * self._width, block_size=BLOCK, threads=threads)
        self._tables = np.arange(1, 1 + rows * self._width, dtype=np.int32).reshape(rows, self._width)

    def run(self, jobs: Sequence[Job]) -> Iterator[Answered]:
        """Answers in the order in which they end."""
        waiting, running = list(reversed(jobs)), dict[int, Answered]()
        while waiting or running:
            while waiting and len(running) < self.rows:
                row = next(row for row in range(self.rows) if row not in running)
                answer = Answered(waiting.pop())
                running[row] = answer
                self._take(answer, *self._prefill(row, answer.job))
            for row, answer in list(running.items()):
                if answer.ended or len(answer.token_ids) == answer.job.params.max_tokens:
                    yield running.pop(row)
            if running:
                for answer, logits, hidden in zip(running.values(), *self._step(running), strict=True):
                    self._take(answer, logits, hidden)

    def last_logits(self, prompt_ids: Sequence[int]) -> np.ndarray:
        """Logits after a prompt, float32 [vocab]. Only while no job runs."""
        return self._prefill(0, Job("", prompt_ids, SamplingParams(max_tokens=1)))[0][: self.model.tokenizer.vocab_size]

    def _take(self, answer: Answered, logits: np.ndarray, hidden: np.ndarray) -> None:
        job, row = answer.job, np.ascontiguousarray(logits[: self.model.tokenizer.vocab_size])
        token = sample(row, job.params, job.seed, len(job.prompt_ids) + len(answer.token_ids))
        answer.token_ids.append(token)
        answer.hidden = hidden
        answer.signals.append(token_signal(row, token))
        answer.ended = token in self.model.tokenizer.eos_ids

    def _prefill(self, row: int, job: Job) -> tuple[np.ndarray, np.ndarray]:
        """Logits and hidden state after the prompt."""
        assert len(job.prompt_ids) + (job.params.max_tokens or 0) <= self.context, f"{job.id} does not fit"
        for start in range(0, len(job.prompt_ids), CHUNK):
            ids = np.array(job.prompt_ids[start : start + CHUNK], np.int32)
            (logits,), (hidden,) = self._run(
                StepBatch(
                    token_ids=ids,
                    positions=np.arange(start, start + len(ids), dtype=np.int32),
                    query_start=np.array([0, len(ids)], np.int32),
                    block_tables=self._tables[row : row + 1],
                    logit_rows=np.array([len(ids) - 1], np.int32),
                )
            )
        return logits, hidden

    def _step(self, running: dict[int, Answered]) -> tuple[np.ndarray, np.ndarray]:
        answers, count = running.values(), len(running)
        return self._run(
            StepBatch(
                token_ids=np.array([answer.token_ids[-1] for answer in answers], np.int32),
                positions=np.array([len(answer.job.prompt_ids) + len(answer.token_ids) - 1 for answer in answers], np.int32),
                query_start=np.arange(count + 1, dtype=np.int32),
                block_tables=np.ascontiguousarray(self._tables[list(running)]),
                logit_rows=np.arange(count, dtype=np.int32),
            )
        )

    def _run(self, batch: StepBatch) -> tuple[np.ndarray, np.ndarray]:
        hidden = np.empty((len(batch.logit_rows), self._executor.hidden_size), np.float32)
        return self._executor.step(batch, hidden), hidden

    def close(self) -> None:
        self._executor.close()
