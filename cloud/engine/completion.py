"""One choice of an answer: token ids in, text out, ended where its stop strings say."""

from __future__ import annotations

import msgspec

from ...shared_protocol.answer_text import AnswerText
from ...shared_protocol.openai import TokenLogprob
from ...shared_protocol.sampling import SamplingParams
from ...shared_protocol.tokenizer import Tokenizer
from .messages import FinishReason, StepOutput


class Chunk(msgspec.Struct, frozen=True):
    """What one step added to a choice. The chunks of a choice joined are its text; the last one has a finish_reason.

    `token_ids` are all tokens that count as generated: up to the one that completed a stop string, end tokens included.
    `logprobs` come with their text, which may be later than the id: their tokens joined are the text, and so are their bytes.
    """

    index: int
    text: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    finish_reason: FinishReason | None = None
    num_cached: int = 0  # prompt tokens that came from the prefix cache
    stop_reason: str | int | None = None  # the stop string or the stop token that ended it; None for the model's own end
    error: str | None = None  # with finish_reason "error"


class Completion:
    """Assembles one choice. `push` every output of its request, in order, until `finished`."""

    def __init__(self, tokenizer: Tokenizer, params: SamplingParams, index: int = 0) -> None:
        self.index = index
        self.finished = False
        self._eos_ids = tokenizer.eos_ids
        self._text = AnswerText(tokenizer, params.stop)

    def push(self, output: StepOutput) -> Chunk:
        """Take a step's output. A stop string ends the choice though the engine goes on: abort it when the chunk has a finish_reason."""
        assert not self.finished, "a finished choice was continued"
        text, count = "", 0
        for count, token in enumerate(output.new_ids, start=1):
            text += self._read(output, count - 1, token)
            if self._text.stopped is not None:
                break
        finish: FinishReason | None = output.finish_reason if self._text.stopped is None else "stop"
        if finish is not None:
            text += self._text.finish()
        self.finished = finish is not None
        by_token = None if output.stop_token_id in self._eos_ids else output.stop_token_id
        return Chunk(
            index=self.index,
            text=text,
            token_ids=output.new_ids[:count],
            logprobs=self._text.take_logprobs(),
            finish_reason=finish,
            num_cached=output.num_cached,
            stop_reason=by_token if self._text.stopped is None else self._text.stopped,
            error=output.error,
        )

    def _read(self, output: StepOutput, index: int, token: int) -> str:
        """Take one token; return the text that may be shown now. A stop token is no text."""
        ends = token == output.stop_token_id and index == len(output.new_ids) - 1
        entry = output.logprobs[index] if output.logprobs else None
        return self._text.push(token, ends=ends, likelihood=None if entry is None else (entry.logprob, entry.top))
