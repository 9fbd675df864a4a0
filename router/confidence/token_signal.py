"""What the distribution behind one token says about how sure the model was."""

from __future__ import annotations

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
    best = float(logits.max())
    shifted = logits - np.float32(best)
    weights = np.exp(shifted)
    total = float(weights.sum(dtype=np.float64))
    log_total = float(np.log(total))
    shifted[weights == 0] = 0.0  # 0 * -inf is 0 in an entropy
    # At vocabularies of 150,000 a partition costs a twentieth of a sort.
    second = float(np.partition(logits, -2)[-2]) if logits.size > 1 else -np.inf
    return TokenSignal(
        logprob=float(logits[token_id]) - best - log_total,
        margin=best - second,
        entropy=max(0.0, log_total - float(np.dot(weights, shifted)) / total),
    )
