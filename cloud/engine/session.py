"""One device's speculative session, as the engine keeps it: which windows are verified, repeated, stale or refused.

committed   p p p p | a a b      prompt | accepted and emitted
                 base_len
window               a a b x y   may start below the committed end: what overlaps is compared, the rest (x y) is verified
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ...shared_protocol.frames import WINDOW
from ...shared_protocol.verify import PrefixHash, prefix_hash
from .messages import Draft, Refused, Stale, Verdict


@dataclass(frozen=True, slots=True)
class Verify:
    """`ids` follow the committed tokens (none: a plain step). Answer with `settle`."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pending:
    """The very window that is being verified came again; the answer that is on its way serves both."""


@dataclass(frozen=True, slots=True)
class _Round:
    draft: Draft
    answer: Verdict | Stale


class RemoteSession:
    """Pure: no clock, no engine. `offer` a window; if it says Verify, run the target and `settle`."""

    def __init__(self, prompt_ids: Sequence[int]) -> None:
        assert prompt_ids
        self.committed = list(prompt_ids)
        self.last_round = 0
        self._kept: deque[_Round] = deque(maxlen=WINDOW)
        self._pending: tuple[Draft, int] | None = None  # the window being verified, and how many of its ids were committed already
        self._hash = PrefixHash()  # of a prefix of `committed`, moved along as windows do

    def offer(self, draft: Draft) -> Verify | Pending | Verdict | Stale | Refused:
        """Say what to do with a window. A refused one is not taken: the same round may come again, put right."""
        if self._pending is not None:
            if draft == self._pending[0]:
                return Pending()
            if draft.round != self._pending[0].round:
                return _refused(draft, "round_order", f"round {self._pending[0].round} is still being verified")
            return _refused(draft, "round_conflict", f"round {draft.round} is being verified with other contents")
        for kept in self._kept:
            if kept.draft.round == draft.round:
                if kept.draft == draft:
                    return kept.answer
                return _refused(draft, "round_conflict", f"round {draft.round} was answered for other contents")
        if draft.round != self.last_round + 1:
            return _refused(draft, "round_order", f"round {draft.round} came where {self.last_round + 1} was due")
        if draft.base_len > len(self.committed) or draft.prefix_hash != self._hash_of_prefix(draft.base_len):
            return self._explain_prefix(draft)
        known = self.committed[draft.base_len : draft.base_len + len(draft.ids)]
        for index, (drafted, committed) in enumerate(zip(draft.ids, known, strict=False)):
            if drafted != committed:
                return self._stale(draft, draft.base_len + index)
        if draft.base_len + len(draft.ids) < len(self.committed):
            return self._stale(draft, draft.base_len + len(draft.ids))  # right so far, but tokens behind
        self._pending = (draft, len(known))
        return Verify(draft.ids[len(known) :])

    def settle(self, n_accepted: int, token: int | None) -> Verdict:
        """Commit the first `n_accepted` of the ids that Verify gave, and `token` after them (None: a finish inside the accepted run)."""
        assert self._pending is not None
        draft, known = self._pending
        self._pending = None
        ids = draft.ids[known:]
        assert 0 <= n_accepted <= len(ids) and (token is not None or n_accepted > 0)
        self.committed += ids[:n_accepted]
        if token is not None:
            self.committed.append(token)
        verdict = Verdict(round=draft.round, n_accepted=known + n_accepted, token=token, committed_len=len(self.committed))
        self._keep(draft, verdict)
        return verdict

    def _stale(self, draft: Draft, start: int) -> Stale:
        stale = Stale(round=draft.round, start=start, ids=tuple(self.committed[start:]), committed_len=len(self.committed))
        self._keep(draft, stale)
        return stale

    def _keep(self, draft: Draft, answer: Verdict | Stale) -> None:
        self.last_round = draft.round
        self._kept.append(_Round(draft, answer))

    def _hash_of_prefix(self, length: int) -> bytes:
        if length < self._hash.length:
            return prefix_hash(self.committed[:length])
        self._hash.extend(self.committed[self._hash.length : length])
        return self._hash.digest()

    def _explain_prefix(self, draft: Draft) -> Stale | Refused:
        """A device that took all of an earlier window for accepted can be told where it went wrong; any other prefix is unknown here."""
        for kept in self._kept:
            length = draft.base_len - kept.draft.base_len
            if 0 < length <= len(kept.draft.ids) and kept.draft.base_len <= len(self.committed):
                assumed = [*self.committed[: kept.draft.base_len], *kept.draft.ids[:length]]
                if prefix_hash(assumed) == draft.prefix_hash:
                    pairs = enumerate(zip(assumed, self.committed, strict=False))
                    return self._stale(draft, next((i for i, (theirs, ours) in pairs if theirs != ours), len(self.committed)))
        if draft.base_len > len(self.committed):
            return _refused(draft, "base_len", f"base_len {draft.base_len} is beyond the {len(self.committed)} committed tokens")
        return _refused(draft, "prefix_hash", f"the hash of the first {draft.base_len} tokens is not that of this session")


def _refused(draft: Draft, code: str, message: str) -> Refused:
    return Refused(round=draft.round, code=code, message=message)
