"""An answer to a request with placeholders: their values are filled in on the device, in the text and in the log-probabilities.

Stop strings are looked for in the text that has its values again, as the application meant them. What comes after one is dropped; the
answer's end is waited for all the same, since it tells the usage, which stays that of the text that was sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

import msgspec

from ...router.redact.restore import Part, Restorer
from ...shared_protocol.openai import TokenLogprob
from ...shared_protocol.stop import StopChecker
from ..piece import Piece
from .target import Target, blame


async def filled_in(
    pieces: AsyncGenerator[Piece, None], values: Mapping[str, str], stop: Sequence[str], target: Target
) -> AsyncGenerator[Piece, None]:
    """`pieces` with `values` (form -> value) filled in. The texts joined do not depend on how `pieces` were cut.

    Whatever goes wrong in it is a failure of `target`: another may answer."""
    filler = _Filler(values, stop)
    async with aclosing(pieces) as running:
        async for piece in running:
            with blame(target):
                filled = filler.push(piece)
            if filled != Piece():
                yield filled


class _Filler:
    def __init__(self, values: Mapping[str, str], stop: Sequence[str]) -> None:
        self._text = Restorer(values)
        self._tokens = _Tokens(values)
        self._stop = StopChecker(stop)
        self._bounded = bool(stop)
        self._shown = 0  # characters

    def push(self, piece: Piece) -> Piece:
        last = piece.finish_reason is not None
        parts = self._text.push(piece.text) + (self._text.finish() if last else [])
        shown = self._stop.push("".join(part.shown for part in parts))[0]
        if last and self._stop.stopped is None:
            shown += self._stop.flush()
        self._shown += len(shown)
        self._tokens.push(piece.logprobs, ended=last)
        stopped = self._stop.stopped is not None
        logprobs = self._tokens.take(self._shown if stopped or (self._bounded and not last) else None, cut=stopped)
        finish = "stop" if last and stopped else piece.finish_reason
        return replace(piece, text=shown, logprobs=logprobs, finish_reason=finish)


class _Slot:
    """A token that is not given away yet."""

    def __init__(self, token: TokenLogprob) -> None:
        self.token = token
        self.missing = len(token.token)  # characters of which it is not known yet what is shown for them
        self.text = ""
        self.changed = False


class _Tokens:
    """Log-probabilities, whose tokens joined are the text: all of a value stands at the first token of its placeholder.

    [EM  AIL  _1_  kdtq  zbrm].      jane@example.com   ·   ·   ·   .
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._restorer = Restorer(values)
        self._slots: deque[_Slot] = deque()
        self._given = 0  # characters of tokens that were given away
        self._cut = False

    def push(self, tokens: Sequence[TokenLogprob], *, ended: bool) -> None:
        parts = []
        for token in tokens:
            self._slots.append(_Slot(token))
            parts += self._restorer.push(token.token)
        for part in parts + (self._restorer.finish() if ended else []):
            self._attribute(part)

    def _attribute(self, part: Part) -> None:
        at, replaced = 0, part.shown != part.source
        for slot in self._slots:
            if at == len(part.source):
                return
            taken = min(slot.missing, len(part.source) - at)
            if not taken:
                continue
            slot.missing -= taken
            if replaced:
                slot.text += "" if at else part.shown
                slot.changed = True
            else:
                slot.text += part.source[at : at + taken]
            at += taken

    def take(self, shown: int | None, *, cut: bool) -> tuple[TokenLogprob, ...]:
        """The tokens that are known, within `shown` characters of the text; `cut`: nothing more is shown, the last one may end there."""
        taken = []
        while self._slots and not self._slots[0].missing and not self._cut:
            slot = self._slots[0]
            over = 0 if shown is None else self._given + len(slot.text) - shown
            if over > 0 and not cut:
                break
            self._slots.popleft()
            text = slot.text[: len(slot.text) - over] if over > 0 else slot.text
            self._cut = over > 0
            self._given += len(text)
            if over <= 0 or text:
                taken.append(_renamed(slot.token, text) if slot.changed or over > 0 else slot.token)
        return tuple(taken)


def _renamed(token: TokenLogprob, text: str) -> TokenLogprob:
    """The alternatives to a part of a placeholder are no alternatives to a value."""
    return msgspec.structs.replace(token, token=text, bytes=list(text.encode()), top_logprobs=[])
