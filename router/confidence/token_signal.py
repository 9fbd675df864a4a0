"""What the distribution behind one token says about how sure the model was."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TokenSignal:
    """All in nats, of the raw distribution: before temperature and filters."""

    logprob: float  # of the token that was drawn, 0 or less
    margin: float  # log-probability of the most likely token minus that of the next one, 0 or more
    entropy: float  # 0 .. log(vocabulary)


def token_signal(logits: NDArray[np.float32], token_id: int) -> TokenSignal:
    """`logits`: float32 [vocab], as `sample` accepts them: at least one is finite, none is NaN or +inf. A token at -inf gets -inf."""
    first = int(logits.argmax())
    best = float(logits[first])
    others = logits[:first], logits[first + 1 :]  # two passes cost far less than a partition
    shifted = np.maximum(logits - np.float32(best), np.float32(-1e4))  # 0 * -inf must be 0 in the entropy
    weights = np.exp(shifted)
    total = float(weights.sum(dtype=np.float64))
    return TokenSignal(
        logprob=float(logits[token_id]) - best - math.log(total),
        margin=best - max(float(part.max(initial=-np.inf)) for part in others),
        entropy=max(0.0, math.log(total) - float(np.dot(weights, shifted)) / total),
    )
