"""Whether new prompts look like those that a threshold was fitted on. If not, what the threshold promised does not hold.

For the score and for each feature: D, the largest distance between the two distribution functions (Kolmogorov and Smirnov). D has
a plain meaning: no threshold on this number parts the two sets differently by more than a share of D. Chance alone keeps D below

    sqrt(ln(2 k / alpha) / 2 * (1 / n + 1 / m))     with probability 1 - alpha, over all k numbers watched

(two-sample form of Dvoretzky, Kiefer and Wolfowitz; constant of Massart 1990, Wei and Dudley 2012). The alarm rings where D lies
above that and above TOLERANCE: a difference must be real, and large enough to matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..complexity.features import turn_of
from ..complexity.reading import Reading
from .figure import Floats

ALPHA = 0.001
TOLERANCE = 0.10
FEATURES = ("characters", "words", "reasoning", "constraints", "code", "maths", "numbers", "foreign")


@dataclass(frozen=True, slots=True)
class Shift:
    """Of one number. It drifted where `distance` > `allowed`."""

    name: str
    distance: float  # 0..1
    allowed: float

    @property
    def drifted(self) -> bool:
        return self.distance > self.allowed


def shifts(
    reference: Mapping[str, Floats], new: Mapping[str, Floats], *, alpha: float = ALPHA, tolerance: float = TOLERANCE
) -> list[Shift]:
    """Every number that both know, the farthest first."""
    names = [name for name in reference if name in new]
    found = []
    for name in names:
        one, other = reference[name], new[name]
        chance = math.sqrt(math.log(2 * len(names) / alpha) / 2 * (1 / len(one) + 1 / len(other)))
        found.append(Shift(name, distance(one, other), max(tolerance, chance)))
    return sorted(found, key=lambda shift: shift.allowed - shift.distance)


def distance(one: Floats, other: Floats) -> float:
    """The largest difference of the two empirical distribution functions, over all values of both."""
    places = np.concatenate([one, other])
    low, high = np.sort(one), np.sort(other)
    below_one = np.searchsorted(low, places, side="right") / len(one)
    below_other = np.searchsorted(high, places, side="right") / len(other)
    return float(np.abs(below_one - below_other).max())


def features_of(prompts: Sequence[str]) -> dict[str, Floats]:
    """What `drift` watches besides the score: FEATURES, each [n]. Numbers only; no prompt can be told from them."""
    turns = [turn_of(Reading(prompt)) for prompt in prompts]
    columns = {
        "characters": [len(prompt) for prompt in prompts],
        "words": [turn.words for turn in turns],
        "reasoning": [turn.demanding + turn.thinking for turn in turns],
        "constraints": [turn.constraints for turn in turns],
        "code": [turn.coding + turn.statements for turn in turns],
        "maths": [turn.maths + turn.formulas for turn in turns],
        "numbers": [turn.numbers for turn in turns],
        "foreign": [turn.foreign for turn in turns],
    }
    return {name: np.array(columns[name], dtype=np.float64) for name in FEATURES}
