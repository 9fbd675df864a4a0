"""What a client learns of drafting with one cloud, answer by answer: the facts by which the router's plan decides.

    plain answer      tokens, and the seconds they took                      -> the cloud's step of one token
    drafted round     k proposed, n kept, seconds until the verdict came     -> acceptance, and what k more positions cost the cloud

All of it is a pure function of what was observed; older answers count less. Nothing is known of the cloud's step before its first
answer, so the first one is never drafted under `auto`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..router.plan import SpeculationFacts

PRIOR_ACCEPTANCE = 0.7  # of related models of one family; the measured range is 0.55 to 0.97
PRIOR_TOKENS = 8.0  # as many tokens does the prior count as
PRIOR_GROWTH = 0.2  # of a step by each further position; SmolLM2 on two kernels of a CPU: 0.06 on ours, 0.94 on llama.cpp's
FORGET = 0.97  # weight of all earlier rounds after one more
PREFILL = 0.2  # steps that a prompt's token takes, at most: of an answer that came whole, only the whole time is known
WEIGHT = 0.2  # of a new time in the running mean


@dataclass(frozen=True, slots=True)
class Round:
    """One drafted round as the device saw it."""

    proposed: int
    accepted: int
    wait_s: float  # from the draft's sending to the verdict


@dataclass(frozen=True, slots=True)
class Learned:
    kept: float = 0.0  # drafted tokens that were kept
    refused: float = 0.0  # rounds that ended at a token that was not
    step_s: float | None = None  # seconds of the cloud's step for one token
    growth: float = PRIOR_GROWTH  # share of step_s that each further position costs

    @property
    def acceptance(self) -> float:
        """Probability that the next drafted token is kept, given that all before it in its round were."""
        return (self.kept + PRIOR_TOKENS * PRIOR_ACCEPTANCE) / (self.kept + self.refused + PRIOR_TOKENS)

    def after_plain(self, tokens: int, seconds: float) -> Learned:
        """An answer of the cloud alone: `tokens` after the first one took `seconds`."""
        if tokens < 1 or not (math.isfinite(seconds) and seconds > 0):
            return self
        return replace(self, step_s=_mean(self.step_s, seconds / tokens))

    def after_whole(self, prompt_tokens: int, tokens: int, seconds: float) -> Learned:
        """An answer of the cloud alone that came in one piece, `seconds` after it was asked for, the way there and back not counted."""
        if tokens < 1 or not (math.isfinite(seconds) and seconds > 0):
            return self
        return replace(self, step_s=_mean(self.step_s, seconds / (tokens + PREFILL * prompt_tokens)))

    def after_rounds(self, rounds: Sequence[Round], rtt_s: float | None) -> Learned:
        """Drafted rounds of one answer. The first one's time is not read: the cloud may still have been computing the prompt."""
        learned = self
        for number, seen in enumerate(rounds):
            learned = learned._counted(seen)
            if number > 0 and rtt_s is not None:
                learned = learned._timed(seen, seen.wait_s - rtt_s)
        return learned

    def facts(self, *, rtt_s: float | None, bandwidth_bytes_s: float | None, draft_s: tuple[float, ...] | None) -> SpeculationFacts:
        """For as many tokens as `draft_s` has times."""
        verify = None
        if self.step_s is not None and draft_s is not None:
            verify = tuple(self.step_s * (1 + self.growth * k) for k in range(len(draft_s)))
        return SpeculationFacts(rtt_s, bandwidth_bytes_s, draft_s, verify, self.acceptance)

    def _counted(self, seen: Round) -> Learned:
        refused = float(seen.accepted < seen.proposed)
        return replace(self, kept=self.kept * FORGET + seen.accepted, refused=self.refused * FORGET + refused)

    def _timed(self, seen: Round, verify_s: float) -> Learned:
        if not (math.isfinite(verify_s) and verify_s > 0):
            return self
        if self.step_s is None or seen.proposed == 0:
            return replace(self, step_s=_mean(self.step_s, verify_s / (1 + self.growth * seen.proposed)))
        found = max(0.0, verify_s / self.step_s - 1) / seen.proposed
        return replace(self, growth=self.growth + WEIGHT * (found - self.growth))


def _mean(old: float | None, new: float) -> float:
    return new if old is None else old + WEIGHT * (new - old)
