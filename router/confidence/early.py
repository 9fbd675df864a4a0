"""When an answer is given up in mid-text: because it cannot pass any more, or because right answers hardly ever begin like that.

Some signals can only fall, or fall as far as the tokens that are left allow: what they can still reach at best is known before the end
(`best_possible`). Giving up there costs nothing.

    mean log-probability
    of the tokens so far    ─╲__╱╲_____        a right answer, which may dip early on
                               ╲
                ─ ─ ─ ─ ─ ─ ─ ─ ╳ ─ ─ ─ bound  given up here: the rest is never computed
                     after

The bound is one number for all lengths from `after` on. It is chosen from right answers that get that long: of those to come, at most the
share `loss` is given up, on average over the answers that it could have been chosen from (a conformal quantile of their lowest running
mean).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...shared_protocol.errors import CannotPromise, InvalidRequest
from ..policy.tables import Signal


def best_possible(signal: Signal, *, logprob_sum: float, lowest: float, max_tokens: int | None) -> float | None:
    """What the signal of an unfinished answer is at most, 0..1, were every token to come certain; None where it could still be anything.

    `lowest`: the least likely token's log-probability so far; `max_tokens`: of the whole answer, None when that is not known.
    """
    if signal == "minimum":
        return math.exp(min(lowest, 0.0))
    if signal == "total":
        return math.exp(min(logprob_sum, 0.0))
    if max_tokens is not None and signal in ("mean", "length_corrected"):
        return math.exp(min(logprob_sum, 0.0) / (max_tokens if signal == "mean" else math.sqrt(max_tokens)))
    return None


def is_lost(logprob_sum: float, count: int, *, after: int, below: float) -> bool:
    """`below`: a geometric mean of token probabilities, 0..1; 0 never gives up. NaN does not give up either."""
    return below > 0 and count >= after and logprob_sum < count * math.log(below)


def lowest(logprobs: Sequence[float], after: int) -> float:
    """The lowest running geometric mean from `after` tokens on, 0..1; 1 for an answer that ends before: it is never given up."""
    total, low = 0.0, 0.0
    for count, logprob in enumerate(logprobs, 1):
        total += logprob
        if count >= after:
            low = min(low, total / count)
    return math.exp(low)


def stop_bound(right_answers: Sequence[Sequence[float]], *, after: int, loss: float) -> float:
    """The highest `below` that gives up at most the share `loss` of right answers to come, of those that get `after` tokens long.

    With n of them it is the k-th lowest of their lowest means, k = floor(loss (n + 1)). Raises CannotPromise when k is 0: then even the
    lowest of them is no ground for a promise; InvalidRequest for a loss outside of 0..1.
    """
    if not 0 < loss < 1:
        raise InvalidRequest(f"loss lies between 0 and 1, found {loss}", param="loss")
    long = [logprobs for logprobs in right_answers if len(logprobs) >= after]
    rank = math.floor(loss * (len(long) + 1) + 1e-9)
    if rank == 0:
        raise CannotPromise(
            f"that at most {loss:.1%} of right answers are given up cannot be promised from {len(long)} of {after} tokens or more",
            hint=f"{math.ceil(1 / loss) - 1} right answers are the least",
        )
    return sorted(lowest(logprobs, after) for logprobs in long)[rank - 1]


def tokens_computed(logprobs: Sequence[float], *, after: int, below: float) -> int:
    """How many tokens of an answer are computed before it is given up; all of them when it never is."""
    total = 0.0
    for count, logprob in enumerate(logprobs, 1):
        total += logprob
        if is_lost(total, count, after=after, below=below):
            return count
    return len(logprobs)
