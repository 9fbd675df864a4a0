"""Learning a router from outcomes: one ridge regression per model, calibrated on rows that it has not seen.

Nothing is searched for: the two ridges and the width of the waves are constants, the same for every set of outcomes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...npu_backends.cpu.blas import one_blas_thread
from ...shared_protocol.errors import InvalidRequest
from ..calibration import fit_logistic
from ..evaluate.folds import fold_of
from ..evaluate.outcomes import Outcome
from ..evaluate.reliability import Reliability
from .hashed import Counts, Floats, marked_terms_of, solve_ridge
from .model import RANKS, WAVES, About, Model, rounded, standard, waves_of
from .traits import TRAITS, bounded, traits_of

BUCKETS = 8192
RIDGE_TERMS = 30.0
RIDGE_WAVES = 30.0
LEAST_SCALE = 1e-3  # of a trait that never varies: a prompt where it does is unlike all others
FOLDS = 5  # for calibration
LEAST_GROUPS = 50


@dataclass(frozen=True, eq=False, slots=True)
class _Fit:
    idf: Floats
    terms: Floats
    centre: Floats
    scale: Floats
    waves: Floats
    mean: Floats
    covariance: Floats


@one_blas_thread()
def train(rows: Sequence[Outcome], *, edge: str = "", cloud: str = "", trained: str = "") -> Model:
    """Learn. `edge`, `cloud` and `trained` (a date) are only written down. The same rows in the same order give the same model.

    Raises InvalidRequest for rows of one prompt only. Whether there are enough to be of use is `check_enough`.
    """
    counts = Counts.of([bounded(row.prompt) for row in rows], BUCKETS, marked_terms_of)
    traits = np.array([traits_of(row.prompt) for row in rows])
    scores = np.array([[row.weak, row.strong] for row in rows])
    directions, phases = _directions(len(TRAITS))
    held_out = np.empty_like(scores)
    groups = [row.group for row in rows]
    folds = min(FOLDS, max(2, len(set(groups))))
    fold = fold_of(groups, folds)
    for number in range(folds):
        out = fold == number
        fit = _fit(counts.only(~out), traits[~out], scores[~out], directions, phases)
        held_out[out] = _apply(fit, counts.only(out), traits[out], directions, phases)
    fit = _fit(counts, traits, scores, directions, phases)
    gain = held_out[:, 1] - held_out[:, 0]
    noise = float(np.sqrt(np.mean((scores[:, 1] - scores[:, 0] - gain) ** 2)))
    maps = [fit_logistic(held_out[:, side].tolist(), scores[:, side].tolist()) for side in range(2)]
    figures = {
        name: _ece(np.array([to_chance(score) for score in raw.tolist()]), reached)
        for name, to_chance, raw, reached in zip(("ece_edge", "ece_cloud"), maps, held_out.T, scores.T, strict=True)
    }
    return Model(
        about=About(edge=edge, cloud=cloud, trained=trained, rows=len(rows), data=data_hash(rows), noise=noise, figures=figures),
        idf=rounded(fit.idf),
        terms=rounded(fit.terms),
        centre=fit.centre,
        scale=fit.scale,
        directions=directions,
        phases=phases,
        waves=rounded(fit.waves),
        mean=rounded(fit.mean),
        covariance=rounded(fit.covariance),
        ranks=rounded(np.quantile(gain, np.linspace(0, 1, RANKS))),
        edge=maps[0],
        cloud=maps[1],
    )


def check_enough(rows: Sequence[Outcome]) -> None:
    """Raises InvalidRequest where there is nothing to learn."""
    groups = len({row.group for row in rows})
    if groups < LEAST_GROUPS:
        raise InvalidRequest(f"{groups} different prompts are too few to learn from", hint=f"give outcomes of {LEAST_GROUPS} at least")
    for side in ("weak", "strong"):
        if len({getattr(row, side) for row in rows}) == 1:
            raise InvalidRequest(f"the {side} model has the same score on every row", param=side, hint="give outcomes of both kinds")


def data_hash(rows: Sequence[Outcome]) -> str:
    """16 hex digits, the same in any order of the rows."""
    lines = sorted(f"{row.group} {row.weak!r} {row.strong!r}" for row in rows)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _ece(chances: Floats, reached: Floats) -> float:
    return float(Reliability(chances, reached).ece(np.ones((1, len(reached))))[0])


def _directions(traits: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(0)
    directions = random.standard_normal((traits, WAVES)) / np.sqrt(traits)
    return rounded(directions), rounded(random.uniform(0, 2 * np.pi, WAVES))


def _fit(counts: Counts, traits: Floats, scores: Floats, directions: Floats, phases: Floats) -> _Fit:
    """Both blocks of columns at once: the waves are solved for exactly, and the terms in what the waves leave unexplained."""
    centre = rounded(traits.mean(axis=0))
    scale = rounded(np.maximum(traits.std(axis=0), LEAST_SCALE))
    wave = waves_of(standard(traits, centre, scale), directions, phases)
    inverse: Floats = np.linalg.inv(wave.T @ wave + RIDGE_WAVES * np.eye(WAVES)).astype(np.float64, copy=False)
    idf = counts.idf()
    tfidf = counts.times(idf)
    mean = scores.mean(axis=0)

    def unexplained(rows: Floats) -> Floats:
        left: Floats = rows - wave @ (inverse @ (wave.T @ rows))
        return left

    sides = [scores[:, side] - mean[side] for side in range(2)]
    terms = [solve_ridge(tfidf, target, RIDGE_TERMS, without=unexplained, tolerance=1e-4) for target in sides]
    waves = [inverse @ (wave.T @ (target - tfidf.of(words))) for target, words in zip(sides, terms, strict=True)]
    covariance: Floats = RIDGE_WAVES * inverse
    return _Fit(idf, np.stack(terms, 1), centre, scale, np.stack(waves, 1), mean, covariance)


def _apply(fit: _Fit, counts: Counts, traits: Floats, directions: Floats, phases: Floats) -> Floats:
    """[n, 2] raw scores."""
    tfidf = counts.times(fit.idf)
    words = np.stack([tfidf.of(fit.terms[:, side]) for side in range(2)], axis=1)
    found: Floats = fit.mean + words + waves_of(standard(traits, fit.centre, fit.scale), directions, phases) @ fit.waves
    return found
