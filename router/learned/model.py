"""What has been learned, frozen: two success probabilities, the gain between them, and how well such prompts are known.

    z      = (traits - centre) / scale, cut to -3..3
    wave   = sqrt(2 / 256) cos(z @ directions + phases)      so that wave . wave' is close to exp(-|z - z'|^2 / (2 * traits))
    raw    = mean + tfidf @ terms + wave @ waves             [edge, cloud]: a ridge regression of the scores
    gain   = raw cloud - raw edge
    p      = calibration(raw), one map per model
    rank   = the share of the training prompts that gain less
    unknown = wave @ covariance @ wave                       what is left of a doubt of 1 once the training prompts were seen

Sources: Rahimi and Recht 2007 (random Fourier features of a Gaussian kernel); Rasmussen and Williams 2006, chapter 2 (`unknown` is the
posterior variance of the Bayesian reading of that ridge regression, by the prior's).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ..calibration import Calibration
from .hashed import Counts, Floats, marked_terms_of
from .traits import bounded, traits_of

WAVES = 256
RANKS = 201  # quantiles of the gain that are kept
CUT = 3.0  # standard deviations
_SHARES = np.linspace(0, 1, RANKS)


def rounded(array: Floats) -> Floats:
    """To what the file holds: a router decides the same before and after it is written."""
    return array.astype(np.float32).astype(np.float64)


class About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where it comes from. `edge` and `cloud` are the models' ids; empty: not said."""

    edge: str
    cloud: str
    trained: str  # ISO date, as it was given
    rows: int
    data: str  # 16 hex digits over the outcomes
    noise: float  # standard deviation of what the gain was beside its prediction, held out
    figures: dict[str, float]  # measured on folds held out


@dataclass(frozen=True, eq=False, slots=True)
class Model:
    """All numbers are `rounded`."""

    about: About
    idf: Floats  # [buckets]
    terms: Floats  # [buckets, 2]
    centre: Floats  # [traits]
    scale: Floats  # [traits]
    directions: Floats  # [traits, WAVES]
    phases: Floats  # [WAVES]
    waves: Floats  # [WAVES, 2]
    mean: Floats  # [2]
    covariance: Floats  # [WAVES, WAVES]
    ranks: Floats  # [RANKS], ascending
    edge: Calibration
    cloud: Calibration
    id: str = ""  # 16 hex digits over the file; set when it is written or read

    def rank_of(self, gain: float) -> float:
        return float(np.interp(gain, self.ranks, _SHARES))


@dataclass(frozen=True, slots=True)
class Prediction:
    p_edge: float
    p_cloud: float
    gain: float  # about -1..1: what the cloud's model would do better
    rank: float  # 0..1
    unknown: float  # 0..1: 0 like many a training prompt, 1 like none
    error: float  # standard error of the gain


def predict(model: Model, text: str) -> Prediction:
    """For any text, the empty one too."""
    raw, wave = raw_scores(model, [text])
    edge, cloud = raw[0].tolist()
    unknown = float(min(1.0, max(0.0, wave[0] @ model.covariance @ wave[0])))
    return Prediction(
        p_edge=model.edge(edge),
        p_cloud=model.cloud(cloud),
        gain=cloud - edge,
        rank=model.rank_of(cloud - edge),
        unknown=unknown,
        error=model.about.noise * unknown**0.5,
    )


def raw_scores(model: Model, texts: Sequence[str]) -> tuple[Floats, Floats]:
    """([n, 2] raw scores of edge and cloud, [n, WAVES] waves)."""
    wave = waves_of(standard(np.array([traits_of(text) for text in texts]), model.centre, model.scale), model.directions, model.phases)
    tfidf = Counts.of([bounded(text) for text in texts], len(model.idf), marked_terms_of).times(model.idf)
    words = np.stack([tfidf.of(model.terms[:, side]) for side in range(2)], axis=1)
    return model.mean + words + wave @ model.waves, wave


def standard(traits: Floats, centre: Floats, scale: Floats) -> Floats:
    """[n, traits] to the same, in standard deviations of the training prompts."""
    found: Floats = np.clip((traits - centre) / scale, -CUT, CUT)
    return found


def waves_of(traits: Floats, directions: Floats, phases: Floats) -> Floats:
    """[n, traits], standardised, to [n, WAVES]."""
    found: Floats = np.sqrt(2 / len(phases)) * np.cos(traits @ directions + phases)
    return found
