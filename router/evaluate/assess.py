"""How good a router is on outcomes that it has not seen, beside its baselines: every figure with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...npu_backends.cpu.blas import one_blas_thread
from . import curve, hull
from .bootstrap import RESAMPLES, Measured, measure
from .failures import Failures
from .figure import Figure, Floats, Interval, Undefined, figure
from .folds import HeldOut, fold_of, held_out
from .forecast import forecasting
from .outcomes import Outcome
from .reliability import Bin, Reliability
from .scorers import Scorer, baselines

OURS = "ours"
COMPARED = ("length", "tfidf_ridge")  # the baselines that ours is compared with on equal resamples
NO_GAP = f"the strong model is not better by {curve.LEAST_GAP:g} on these rows"
ONE_KIND = "the device failed on all of these rows, or on none"


@dataclass(frozen=True, eq=False, slots=True)
class Plot:
    """A curve to be drawn: points (x, y), and for thresholds the score from which on the strong model is called."""

    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class Assessed:
    """`figures`: apgr.NAME, cpt50.NAME, cpt80.NAME and aiq.NAME of each scorer, and ece, brier, auroc, aurc of ours."""

    rows: int
    groups: int
    folds: int
    weak: float
    strong: float
    names: tuple[str, ...]  # of the scorers
    figures: Mapping[str, Figure]
    intervals: Mapping[str, Interval]
    paired: Mapping[str, tuple[Figure, Interval]]  # ours-NAME, of the APGR
    curves: Mapping[str, Plot] = field(repr=False, default_factory=dict)  # share of strong calls, quality
    hull: Plot | None = field(repr=False, default=None)  # of ours
    bins: tuple[Bin, ...] = ()  # of ours: the device's expected score against what it reached
    risk: Plot | None = field(repr=False, default=None)  # of ours: coverage, risk


@one_blas_thread()  # more of them spin more than they compute, and change the last bits of a sum
def assess(
    rows: Sequence[Outcome], contenders: Mapping[str, Callable[[], Scorer]], *, folds: int = 5, seed: int = 0, resamples: int = RESAMPLES
) -> Assessed:
    """`contenders` by name, "ours" among them; the baselines are added. Raises InvalidRequest for too few different prompts."""
    groups = [row.group for row in rows]
    fold = fold_of(groups, folds, seed)
    weak, strong = np.array([row.weak for row in rows]), np.array([row.strong for row in rows])
    found = {name: held_out(make, rows, fold) for name, make in baselines(rows).items()}
    found |= {name: held_out(make, rows, fold) for name, make in contenders.items() if name != OURS}
    ours = found[OURS] = held_out(forecasting(contenders[OURS]), rows, fold)
    lines = {name: curve.Curves(held.scores, weak, strong) for name, held in found.items()}
    judged = _Judged(ours, weak)

    def figures(weights: Floats) -> dict[str, Floats]:
        measured = judged.figures(weights)
        for name, line in lines.items():
            share, quality = line.points(weights)
            measured[f"apgr.{name}"] = curve.apgr(share, quality)
            measured[f"cpt50.{name}"] = curve.cpt(share, quality, 0.5)
            measured[f"cpt80.{name}"] = curve.cpt(share, quality, 0.8)
        return measured

    measured = measure(groups, figures, resamples=resamples, seed=seed)
    hulls = measure(groups, lambda weights: {f"aiq.{OURS}": hull.aiq(*lines[OURS].points(weights))}, resamples=resamples, seed=seed)
    points = {name: Plot(*(values[0] for values in line.points(np.ones((1, len(rows)))))) for name, line in lines.items()}
    heights = {f"aiq.{name}": float(hull.aiq(plot.x[None], plot.y[None])[0]) for name, plot in points.items()}
    return Assessed(
        rows=len(rows),
        groups=len(set(groups)),
        folds=folds,
        weak=float(weak.mean()),
        strong=float(strong.mean()),
        names=tuple(found),
        figures={name: figure(value, _why(name)) for name, value in {**measured.value, **heights}.items()},
        intervals={name: found.interval(name) for found in (measured, hulls) for name in found.value},
        paired={
            f"{OURS}-{name}": _difference(measured, f"apgr.{OURS}", f"apgr.{name}") for name in (*COMPARED, *contenders) if name != OURS
        },
        curves=points,
        hull=_corners(points[OURS]),
        bins=tuple(judged.reliability.bins()),
        risk=Plot(*(values[0] for values in judged.failures.risk_coverage(np.ones((1, len(rows)))))),
    )


class _Judged:
    """Ours as a judge of the device: its forecast of the weak model's score."""

    def __init__(self, ours: HeldOut, weak: Floats) -> None:
        assert ours.weak is not None, "ours is made a forecaster"
        self.reliability = Reliability(ours.weak, weak)
        self.failures = Failures(-ours.weak, weak)

    def figures(self, weights: Floats) -> dict[str, Floats]:
        return {
            "ece": self.reliability.ece(weights),
            "brier": self.reliability.brier(weights),
            "auroc": self.failures.auroc(weights),
            "aurc": self.failures.aurc(weights),
        }


def _corners(plot: Plot) -> Plot:
    corners, count = hull.hulls(plot.x[None], plot.y[None])
    at = corners[0, : count[0]]
    return Plot(plot.x[at], np.maximum.accumulate(plot.y[at]))


def _difference(measured: Measured, one: str, other: str) -> tuple[Figure, Interval]:
    value, found = measured.difference(one, other)
    return figure(value, NO_GAP), found


def _why(name: str) -> str:
    return ONE_KIND if name == "auroc" else NO_GAP


def undefined(figures: Mapping[str, Figure | Interval]) -> dict[str, str]:
    """Which figures there are not, and why."""
    return {name: found.why for name, found in figures.items() if isinstance(found, Undefined)}
