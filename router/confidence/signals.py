"""How sure the device's model was of an answer, from the distributions behind its own tokens.

Every signal lies in 0..1 and higher is surer, whatever it is made of; none is a probability of being right before it is calibrated.
The probability of a whole text punishes length, and its mean hides one bad token among many good ones; a low quantile beside the mean
does neither (Gupta et al., arXiv 2404.10136). Which of them tells right from wrong is a question of the model: docs/confidence.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..policy.tables import ConfidencePolicy, Signal

if TYPE_CHECKING:  # it needs NumPy, which deciding does not
    from .token_signal import TokenSignal


def confidence(tokens: Sequence[TokenSignal], policy: ConfidencePolicy) -> float | None:
    """The signal that the policy names, 0..1; None when there is nothing to judge by: no token, a number that cannot be, or a signal
    that is not made of tokens."""
    if policy.signal not in SIGNALS or not tokens or any(_wrong(token) for token in tokens):
        return None
    return SIGNALS[policy.signal](tokens, policy)


def blend(tokens: Sequence[TokenSignal], policy: ConfidencePolicy) -> float:
    """exp((1 - w) * mean + w * quantile) of the log-probabilities, w = quantile_weight: an answer twice as long is not half as trusted."""
    logprobs = _logprobs(tokens)
    weight = policy.quantile_weight
    return _exp((1 - weight) * _mean(logprobs) + weight * quantile(logprobs, policy.quantile))


def length_corrected(tokens: Sequence[TokenSignal], _: ConfidencePolicy) -> float:
    """Between the total, which a long answer can only lose by, and the mean, which does not care: the sum over the root of the length."""
    return _exp(math.fsum(_logprobs(tokens)) / math.sqrt(len(tokens)))


# The margin m of a token becomes (p1 - p2) / (p1 + p2) = tanh(m / 2), and an entropy H becomes exp(-H), one over the number of
# tokens that the model wavered between.
SIGNALS: Mapping[Signal, Callable[[Sequence[TokenSignal], ConfidencePolicy], float]] = {
    "blend": blend,
    "mean": lambda tokens, _: _exp(_mean(_logprobs(tokens))),
    "quantile": lambda tokens, policy: _exp(quantile(_logprobs(tokens), policy.quantile)),
    "minimum": lambda tokens, _: _exp(min(_logprobs(tokens))),
    "total": lambda tokens, _: _exp(math.fsum(_logprobs(tokens))),
    "length_corrected": length_corrected,
    "margin": lambda tokens, _: _mean(_margins(tokens)),
    "margin_quantile": lambda tokens, policy: quantile(_margins(tokens), policy.quantile),
    "entropy": lambda tokens, _: _exp(-_mean([token.entropy for token in tokens])),
    "entropy_quantile": lambda tokens, policy: _exp(quantile([-token.entropy for token in tokens], policy.quantile)),
}


def quantile(values: Sequence[float], q: float) -> float:
    """Linear between the two nearest ranks, as NumPy's default. `values`: at least one."""
    ascending = sorted(values)
    place = q * (len(ascending) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ascending) - 1)
    if ascending[below] == ascending[above]:
        return ascending[below]
    return ascending[below] + (place - below) * (ascending[above] - ascending[below])


_FLOOR = -50.0  # a token of probability 0 must not make the arithmetic infinite


def _logprobs(tokens: Sequence[TokenSignal]) -> list[float]:
    return [max(token.logprob, _FLOOR) for token in tokens]


def _margins(tokens: Sequence[TokenSignal]) -> list[float]:
    return [math.tanh(token.margin / 2) for token in tokens]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _exp(value: float) -> float:
    return math.exp(min(value, 0.0))


def _wrong(token: TokenSignal) -> bool:
    """NaN fails every comparison."""
    return not (token.logprob <= 1e-4 and token.margin >= 0 and 0 <= token.entropy < math.inf)
