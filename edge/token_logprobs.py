"""Log-probabilities of the device's tokens in OpenAI's shape: the tokens joined are the text that is shown."""

from __future__ import annotations

from collections import deque

from ..shared_protocol.detokenizer import Detokenizer
from ..shared_protocol.openai import TokenLogprob, TopLogprob
from ..shared_protocol.tokenizer import Tokenizer
from .session import EdgeChunk


class TokenLogprobs:
    """Gives each token away once its text is shown; what a stop string hides is cut or dropped.

    text    T h e _ E N D       shown so far: "The "
            └─┬─┘└─┬┘└─┬┘       "The" has been given; when "END" ends the answer, " E" is given as " ", "ND" is dropped
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer)
        self._waiting: deque[tuple[str, EdgeChunk]] = deque()
        self._room = 0  # characters shown that no token given away accounts for

    def push(self, chunk: EdgeChunk) -> tuple[TokenLogprob, ...]:
        last = chunk.finish_reason is not None
        text = "" if chunk.ends else self._detokenizer.push(chunk.token_id)
        self._waiting.append((text + self._detokenizer.flush() if last else text, chunk))
        self._room += len(chunk.text)
        given = []
        while self._waiting and (last or len(self._waiting[0][0]) <= self._room):
            text, token = self._waiting.popleft()
            if len(text) <= self._room:
                self._room -= len(text)
                given.append(self._entry(token, text, b"" if token.ends else self._tokenizer.token_bytes(token.token_id)))
            elif self._room:
                text, self._room = text[: self._room], 0
                given.append(self._entry(token, text, text.encode()))
            else:
                break  # all that follows is hidden
        return tuple(given)

    def _entry(self, chunk: EdgeChunk, text: str, raw: bytes) -> TokenLogprob:
        names = self._tokenizer
        top = [TopLogprob(names.token_text(i), logprob, list(names.token_bytes(i))) for i, logprob in chunk.top]
        return TokenLogprob(token=text, logprob=chunk.logprob, bytes=list(raw), top_logprobs=top)
