"""From token ids to the text that may be shown: whole characters only, nothing of a stop string, nothing after it."""

from __future__ import annotations

from ..shared_protocol.detokenizer import Detokenizer
from ..shared_protocol.stop import StopChecker
from ..shared_protocol.tokenizer import Tokenizer


class TextAssembler:
    """`push` ids one by one, then `finish`; the pieces joined are the answer. After `stopped` is set nothing more may be pushed."""

    def __init__(self, tokenizer: Tokenizer, stop: tuple[str, ...]) -> None:
        self._detokenizer = Detokenizer(tokenizer)
        self._checker = StopChecker(stop)
        self.stopped: str | None = None

    def push(self, token_id: int) -> str:
        return self._check(self._detokenizer.push(token_id))

    def finish(self) -> str:
        """The rest: half a character that was held back, and what could have become a stop string but did not."""
        if self.stopped is not None:
            return ""
        shown = self._check(self._detokenizer.flush())
        return shown if self.stopped is not None else shown + self._checker.flush()

    def _check(self, text: str) -> str:
        assert self.stopped is None
        shown, self.stopped = self._checker.push(text)
        return shown
