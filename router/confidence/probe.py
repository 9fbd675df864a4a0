"""A probe: what the model's last hidden state says of its answer, beside how sure it was of the tokens.

    log-odds of being right = bias + certainty * log(length_corrected) + weights . state

`state` is the hidden state from which the answer's last token was drawn: it has read the question and all the rest of the answer. A probe
stands in the gate that was calibrated for it, and so knows one model file in one quantisation. fit_probe.py makes it.

Sources: Alain and Bengio, arXiv 1610.01644 (linear probes); Kadavath et al., arXiv 2207.05221, and Azaria and Mitchell, arXiv 2304.13734
(that hidden states tell right answers from wrong ones).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from ..calibration import sigmoid

if TYPE_CHECKING:  # deciding needs no NumPy
    import numpy as np
    from numpy.typing import NDArray

    from .token_signal import TokenSignal

Count = Annotated[int, Meta(ge=0)]


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    weights: bytes  # little-endian float32, one per number of the hidden state
    certainty: float
    bias: float
    ridge: Annotated[float, Meta(gt=0)]  # how strongly the weights were held to zero; chosen by folds
    n: Count  # answers that it was fitted on; the gate was calibrated on others
    correct: Count

    def __post_init__(self) -> None:
        if not self.weights or len(self.weights) % 4:
            raise ValueError("the weights of a probe are float32 numbers, at least one")
        if not all(map(math.isfinite, (*struct.unpack(f"<{self.size}f", self.weights), self.certainty, self.bias))):
            raise ValueError("the numbers of a probe are finite: one of these would leave every answer without confidence")

    @property
    def size(self) -> int:
        """Numbers of a hidden state that it can read."""
        return len(self.weights) // 4

    def __call__(self, state: NDArray[np.float32] | None, tokens: Sequence[TokenSignal]) -> float | None:
        """0..1, higher is surer. `state`: float32 [size]. None where there is nothing to judge by: no state, no token, or a number that
        cannot be."""
        import numpy as np

        sure = certainty(tokens)
        if state is None or sure is None or len(state) != self.size:
            return None
        with np.errstate(all="ignore"):  # what is not finite is told below
            read = float(np.frombuffer(self.weights, "<f4").astype(np.float64) @ state.astype(np.float64))
        odds = self.bias + self.certainty * sure + read
        return sigmoid(odds) if math.isfinite(odds) else None


def certainty(tokens: Sequence[TokenSignal]) -> float | None:
    """log(length_corrected) as signals.py has it; None without a token, or where one was impossible."""
    if not tokens:
        return None
    value = math.fsum(token.logprob for token in tokens) / math.sqrt(len(tokens))
    return value if math.isfinite(value) else None
