"""The text of one answer while its tokens arrive: whole characters, nothing of a stop string, nothing after it; and, when they are
asked for, the log-probabilities of its tokens, which joined are exactly that text."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from .detokenizer import Detokenizer
from .openai import TokenLogprob, TopLogprob
from .stop import StopChecker
from .tokenizer import Tokenizer

Likelihood = tuple[float, Sequence[tuple[int, float]]]  # of a token, as `sampling.top_logprobs` gives it


@dataclass(slots=True)
class _Token:
    """A token whose log-probability is not given away yet. `start` counts characters of the whole text, hidden ones included.

    text   T h e _ E N D         shown: 4
           └─┬─┘└─┬┘└─┬┘         "The" is given, " E" is cut to " " at the end, "ND" is dropped
    """

    start: int
    text: str
    raw: bytes
    likelihood: Likelihood


class AnswerText:
    """`push` the tokens one by one until `stopped`, then `finish`; the pieces joined are the text, however the tokens were pushed."""

    def __init__(self, tokenizer: Tokenizer, stop: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer)
        self._checker = StopChecker(stop)
        self._length = 0  # characters that the tokens made, hidden ones included
        self._shown = 0  # characters given away
        self._tokens: deque[_Token] = deque()
        self._finished = False

    @property
    def stopped(self) -> str | None:
        """The stop string that ended the text."""
        return self._checker.stopped

    def push(self, token_id: int, *, ends: bool = False, likelihood: Likelihood | None = None) -> str:
        """Take one token; return the text that may be shown now. One that `ends` the answer is no text."""
        assert not self._finished and self.stopped is None, "a text that has ended was continued"
        text, raw = ("", b"") if ends else (self._detokenizer.push(token_id), self._tokenizer.token_bytes(token_id))
        if likelihood is not None:
            self._tokens.append(_Token(self._length, text, raw, likelihood))
        self._length += len(text)
        return self._show(self._checker.push(text)[0])

    def finish(self) -> str:
        """End the text: return what was held back and is text after all, unless a stop string has ended it."""
        self._finished = True
        if self.stopped is not None:
            return ""
        broken = self._detokenizer.flush()
        if broken and self._tokens:
            self._tokens[-1].text += broken
        return self._show(self._checker.push(broken)[0] + self._checker.flush())

    def take_logprobs(self) -> tuple[TokenLogprob, ...]:
        """Tokens whose text is shown wholly, and after the end the one that is cut; those that are hidden then are dropped."""
        ended, taken = self._finished or self.stopped is not None, []
        while self._tokens:
            token = self._tokens[0]
            hidden = token.start + (len(token.text) or bool(token.raw)) - self._shown  # a part of a character goes with it
            if hidden > 0 and not ended:
                break
            self._tokens.popleft()
            if hidden <= 0:
                taken.append(self._logprob(token.text, token.raw, token.likelihood))
            elif hidden < len(token.text):
                text = token.text[:-hidden]
                taken.append(self._logprob(text, text.encode(), token.likelihood))
        return tuple(taken)

    def _show(self, text: str) -> str:
        self._shown += len(text)
        return text

    def _logprob(self, text: str, raw: bytes, likelihood: Likelihood) -> TokenLogprob:
        names, (logprob, top) = self._tokenizer, likelihood
        return TokenLogprob(text, logprob, list(raw), [TopLogprob(names.token_text(i), p, list(names.token_bytes(i))) for i, p in top])
