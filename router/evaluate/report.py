"""What `hybrid route test` found, as one stable object, and the figures that its gates may name. No prompt is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .assess import OURS, Assessed, undefined
from .bootstrap import Measured, measure
from .curve import LEAST_GAP
from .figure import Figure, Floats, Interval, Undefined, figure
from .gates import Judged
from .replay import NO_OUTCOMES, NO_PRICES, NO_TIMES, Decided, Shares

SCORER_FIGURES = ("apgr", "cpt50", "cpt80", "aiq")
POLICY_FIGURES = (
    "cloud_share",
    "edge_share",
    "cascade_share",
    "speculative_share",
    "refuse_share",
    "private_share",
    "cost",
    "seconds",
    "accuracy",
    "pgr",
)
JUDGE_FIGURES = ("ece", "brier", "auroc", "aurc")


@dataclass(frozen=True, slots=True)
class PolicyQuality:
    """What the policy's own decisions reach on rows with outcomes: `accuracy` and `pgr`, and the intervals of both."""

    figures: dict[str, Figure]
    intervals: dict[str, Interval]


def policy_quality(decided: Sequence[Decided], *, seed: int = 0) -> PolicyQuality:
    """A refusal counts as a wrong answer. `decided`: those with outcomes, at least one."""
    weak, strong, reached = (
        np.array([value for value in column if value is not None])
        for column in ([one.weak for one in decided], [one.strong for one in decided], [one.quality for one in decided])
    )

    def figures(weights: Floats) -> dict[str, Floats]:
        low, high, got = (weights @ values / weights.sum(axis=1) for values in (weak, strong, reached))
        gap = np.where(high - low >= LEAST_GAP, high - low, np.nan)
        return {"accuracy": got, "pgr": (got - low) / gap}

    found: Measured = measure([one.group for one in decided], figures, seed=seed)
    why = f"the strong model is not better by {LEAST_GAP:g} on these rows"
    return PolicyQuality(
        {name: figure(value, why) for name, value in found.value.items()}, {name: found.interval(name) for name in found.value}
    )


def named_figures(found: Shares, quality: PolicyQuality | None, assessed: Assessed | None, scorers: Sequence[str]) -> dict[str, Figure]:
    """Everything that a gate may name; "apgr" alone means ours."""
    figures: dict[str, Figure] = {"cloud_share": found.cloud_share}
    figures |= {f"{route}_share": found.route.get(route, 0.0) for route in ("edge", "cascade", "speculative", "refuse")}
    figures["private_share"] = 1.0 - found.privacy.get("public", 0.0)
    figures["cost"] = found.cost if found.cost is not None else Undefined(NO_PRICES)
    figures["seconds"] = found.seconds if found.seconds is not None else Undefined(NO_TIMES)
    figures |= quality.figures if quality else dict.fromkeys(("accuracy", "pgr"), Undefined(NO_OUTCOMES))
    if assessed is None:
        return figures | dict.fromkeys(_scorer_names(scorers), Undefined(NO_OUTCOMES))
    figures |= {name: assessed.figures[f"{name}.{OURS}"] for name in SCORER_FIGURES}
    return {**figures, **assessed.figures}


def gate_names(scorers: Sequence[str]) -> list[str]:
    """What `named_figures` will hold, known before anything is measured."""
    return [*POLICY_FIGURES, *_scorer_names(scorers)]


def _scorer_names(scorers: Sequence[str]) -> list[str]:
    return [*SCORER_FIGURES, *(f"{figure}.{scorer}" for scorer in scorers for figure in SCORER_FIGURES), *JUDGE_FIGURES]


def to_dict(
    *, head: dict[str, Any], found: Shares, quality: PolicyQuality | None, assessed: Assessed | None, judged: Sequence[Judged]
) -> dict[str, Any]:
    """JSON has no number for undefined: it is null, and `undefined` says why."""
    body: dict[str, Any] = {**head, "cloud_share": found.cloud_share}
    body["shares"] = {"route": found.route, "reason": found.reason, "rule": found.rule, "privacy": found.privacy}
    body["cloud_tokens"] = found.cloud_tokens
    body["cost"], body["seconds"] = found.cost, found.seconds
    missing: dict[str, str] = {}
    if quality is not None and assessed is not None:
        body |= {name: _number(value) for name, value in quality.figures.items()}
        body |= {"weak": assessed.weak, "strong": assessed.strong}
        for name in SCORER_FIGURES:
            body[name] = {scorer: _number(assessed.figures[f"{name}.{scorer}"]) for scorer in assessed.names}
        body |= {name: _number(assessed.figures[name]) for name in JUDGE_FIGURES}
        body["bins"] = [{"n": one.n, "predicted": one.predicted, "observed": one.observed} for one in assessed.bins]
        intervals = {scorer: assessed.intervals[f"apgr.{scorer}"] for scorer in assessed.names}
        intervals |= {name: assessed.intervals[f"{name}.{OURS}"] for name in SCORER_FIGURES[1:]}
        intervals |= {name: assessed.intervals[name] for name in JUDGE_FIGURES} | quality.intervals
        body["ci95"] = {name: _pair(value) for name, value in intervals.items()}
        body["paired"] = {name: [_number(value), *(_pair(ends) or (None, None))] for name, (value, ends) in assessed.paired.items()}
        missing = undefined({**assessed.figures, **quality.figures, **{f"ci95.{name}": value for name, value in intervals.items()}})
    body["undefined"] = missing
    body["gates"] = [one.to_dict() for one in judged]
    return body


def _number(value: Figure) -> float | None:
    return None if isinstance(value, Undefined) else value


def _pair(value: Interval) -> list[float] | None:
    return None if isinstance(value, Undefined) else list(value)
