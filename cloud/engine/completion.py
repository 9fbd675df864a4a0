"""One choice of an answer: token ids in, text out, ended where its stop strings say."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import msgspec

from ...shared_protocol.detokenizer import Detokenizer
from ...shared_protocol.openai import TokenLogprob, TopLogprob
from ...shared_protocol.sampling import SamplingParams
from ...shared_protocol.stop import StopChecker
from ...shared_protocol.tokenizer import Tokenizer
from .messages import FinishReason, StepOutput, TokenLogprobs


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


@dataclass(slots=True)
class _Token:
    """A token whose log-probability is not given away yet. `start` counts characters of the whole text, hidden ones included.

    text   T h e _ E N D         shown: 4
           └─┬─┘└─┬┘└─┬┘         "The" is given, " E" is cut to " " at the end, "ND" is dropped
    """

    start: int
    text: str
    raw: bytes
    source: TokenLogprobs


class Completion:
    """Assembles one choice. `push` every output of its request, in order, until `finished`."""

    def __init__(self, tokenizer: Tokenizer, params: SamplingParams, index: int = 0) -> None:
        self.index = index
        self.finished = False
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer)
        self._checker = StopChecker(params.stop)
        self._length = 0  # characters that the tokens made, hidden ones included
        self._shown = 0  # characters given away
        self._tokens: deque[_Token] = deque()

    def push(self, output: StepOutput) -> Chunk:
        """Take a step's output. A stop string ends the choice though the engine goes on: abort it when the chunk has a finish_reason."""
        assert not self.finished, "a finished choice was continued"
        text, count = "", 0
        for count, token in enumerate(output.new_ids, start=1):
            text += self._read(output, count - 1, token)
            if self._checker.stopped is not None:
                break
        finish: FinishReason | None = output.finish_reason if self._checker.stopped is None else "stop"
        if finish is not None:
            text += self._end()
        self._shown += len(text)
        self.finished = finish is not None
        by_token = None if output.stop_token_id in self._tokenizer.eos_ids else output.stop_token_id
        return Chunk(
            index=self.index,
            text=text,
            token_ids=output.new_ids[:count],
            logprobs=self._take_logprobs(),
            finish_reason=finish,
            num_cached=output.num_cached,
            stop_reason=by_token if self._checker.stopped is None else self._checker.stopped,
            error=output.error,
        )

    def _read(self, output: StepOutput, index: int, token: int) -> str:
        """Take one token; return the text that may be shown now. A stop token is no text."""
        ends = token == output.stop_token_id and index == len(output.new_ids) - 1
        text, raw = ("", b"") if ends else (self._detokenizer.push(token), self._tokenizer.token_bytes(token))
        if output.logprobs:
            self._tokens.append(_Token(self._length, text, raw, output.logprobs[index]))
        self._length += len(text)
        return self._checker.push(text)[0]

    def _end(self) -> str:
        """What was held back is text after all, unless the choice ended by a stop string."""
        if self._checker.stopped is not None:
            return ""
        broken = self._detokenizer.flush()
        if broken and self._tokens:
            self._tokens[-1].text += broken
        return self._checker.push(broken)[0] + self._checker.flush()

    def _take_logprobs(self) -> tuple[TokenLogprob, ...]:
        """Tokens whose text is shown wholly, and at the end the one that is cut; those that are hidden then are dropped."""
        taken = []
        while self._tokens:
            token = self._tokens[0]
            hidden = token.start + (len(token.text) or bool(token.raw)) - self._shown  # a part of a character goes with it
            if hidden > 0 and not self.finished:
                break
            self._tokens.popleft()
            if hidden <= 0:
                taken.append(self._logprob(token.source, token.text, token.raw))
            elif hidden < len(token.text):
                text = token.text[:-hidden]
                taken.append(self._logprob(token.source, text, text.encode()))
        return tuple(taken)

    def _logprob(self, source: TokenLogprobs, text: str, raw: bytes) -> TokenLogprob:
        tokenizer = self._tokenizer
        top = [TopLogprob(tokenizer.token_text(token), logprob, list(tokenizer.token_bytes(token))) for token, logprob in source.top]
        return TokenLogprob(text, source.logprob, list(raw), top)
