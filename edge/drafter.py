"""The device's half of shared-noise speculation: drafts with the cloud's own noise, and what its KV cache holds meanwhile.

committed   p p p p t t          known to be the target's: prompt and verified output
held        p p p p t            in the device's KV cache: the newest is fed first, when drafting starts
drafts                  d d d    the last one is never fed

before drafting          committed_len - 1 tokens are held, or committed_len - 2 after a round that was accepted in full
                         (its last draft was never fed, nor the token that the cloud added)
after drafting k         base + k - 1
after n of k accepted    base + min(n, k - 1), and the cloud's token makes committed_len = base + n + 1
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..shared_protocol.errors import ContextOverflow, ProtocolError
from ..shared_protocol.runtime import EdgeRuntime
from ..shared_protocol.sampling import SamplingParams, sample

Mutate = Callable[[int, int], int]  # (position, id) -> the id that is sent and fed instead


class Drafter:
    """Drafts for one answer. `vocab_size` masks the padding rows of the logits; drafting stops after an id in `end_ids`."""

    def __init__(
        self,
        runtime: EdgeRuntime,
        prompt_ids: Sequence[int],
        params: SamplingParams,
        seed: int,
        *,
        vocab_size: int | None = None,
        end_ids: frozenset[int] = frozenset(),
        held: int = 0,
        mutate: Mutate | None = None,
    ) -> None:
        """`held`: how many tokens of `prompt_ids` the runtime is known to hold already (a prefix shared with what it did before)."""
        assert prompt_ids, "a prompt is never empty"
        assert held <= runtime.length
        self.committed = list(prompt_ids)
        self._runtime = runtime
        self._params = params
        self._seed = seed
        self._vocab = vocab_size
        self._end_ids = end_ids
        self._mutate = mutate
        self._drafts: tuple[int, ...] = ()
        self._full = False  # the last round was accepted in full
        self._outgrown = False  # the answer is longer than the device can hold: only plain steps from here on
        runtime.truncate(min(held, len(self.committed) - 1))

    @property
    def room(self) -> int:
        """The most drafts that the device's context allows now."""
        return self._runtime.context - len(self.committed) + 1

    def prefill(self) -> None:
        """Feed all but the newest committed token. Raises ContextOverflow when the device cannot hold them."""
        limit = self._runtime.context
        if len(self.committed) > limit:
            raise ContextOverflow(asked=len(self.committed), limit=limit)
        self._feed_up_to(len(self.committed) - 1)
        self._full = False

    def draft(self, k: int) -> tuple[int, ...]:
        """Draw up to `k` ids with the noise of their positions; fewer after an end token. 0 is a plain step: nothing is drafted."""
        base = len(self.committed)
        assert not self._drafts, "settle the last round first"
        if self._outgrown or base - 1 > self._runtime.context:
            self._outgrown = True
            return ()
        held = self._runtime.length
        assert held == base - 1 or (self._full and held == base - 2), f"{held} tokens held, {base} committed"
        drafts: list[int] = []
        if k == 0:
            self._feed_up_to(base - 1)
        while len(drafts) < k and not (drafts and drafts[-1] in self._end_ids):
            pending = drafts[-1:] or self.committed[held:]
            row = self._runtime.extend(pending, rows=1)[0, : self._vocab]
            drawn = sample(row, self._params, self._seed, base + len(drafts))
            drafts.append(drawn if self._mutate is None else self._mutate(base + len(drafts), drawn))
        assert self._runtime.length == base - 1 + len(drafts)
        self._drafts = tuple(drafts)
        return self._drafts

    def settle(self, n_accepted: int, token: int | None) -> int:
        """Take the verdict on the last draft; return the new committed length. `token` None: the answer ended inside the run."""
        drafts, base = self._drafts, len(self.committed)
        k = len(drafts)
        if not 0 <= n_accepted <= k or (token is None and n_accepted == 0):
            raise ProtocolError(f"the cloud accepted {n_accepted} of {k} drafts{'' if token is not None else ' and added nothing'}")
        if not self._outgrown:
            self._runtime.truncate(base + min(n_accepted, k - 1))
        self.committed += drafts[:n_accepted]
        if token is not None:
            self.committed.append(token)
        self._full = n_accepted == k
        self._drafts = ()
        return len(self.committed)

    def drop(self) -> None:
        """Forget the last draft, which the cloud did not take."""
        self._drafts = ()
        self._full = False
        if not self._outgrown:
            self._runtime.truncate(min(self._runtime.length, len(self.committed) - 1))

    def rewind(self, start: int, ids: Sequence[int]) -> int:
        """The cloud's tokens from `start` on are `ids`, before that they are ours, drafts included: put right what is committed and
        held; return the new committed length."""
        ours = self.committed + list(self._drafts)
        if not 0 < start <= len(ours) or start + len(ids) < len(self.committed):
            raise ProtocolError(f"the cloud corrects from token {start} to {start + len(ids)}, {len(self.committed)} are committed")
        self._drafts = ()
        self.committed = [*ours[:start], *ids]
        self._runtime.truncate(min(self._runtime.length, start, len(self.committed) - 1))
        self._outgrown = len(self.committed) > self._runtime.context
        if not self._outgrown:
            self.prefill()
        return len(self.committed)

    def _feed_up_to(self, length: int) -> None:
        pending = self.committed[self._runtime.length : length]
        if pending:
            self._runtime.extend(pending, rows=0)
