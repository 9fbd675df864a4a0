"""Every figure once more, from its definition, with loops: shares no code with what it checks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise


def curve(scores: Sequence[float], weak: Sequence[float], strong: Sequence[float]) -> list[tuple[float, float]]:
    """(share of strong calls, quality), for a threshold above all scores and then at each."""
    n = len(scores)
    points = []
    for threshold in [max(scores) + 1, *sorted(set(scores), reverse=True)]:
        called = [score >= threshold for score in scores]
        points.append((sum(called) / n, sum(s if call else w for call, w, s in zip(called, weak, strong, strict=True)) / n))
    return points


def apgr(points: list[tuple[float, float]]) -> float:
    weak, strong = points[0][1], points[-1][1]
    area = sum((x1 - x0) * (y0 + y1 - 2 * weak) / 2 for (x0, y0), (x1, y1) in pairwise(points))
    return area / (strong - weak)


def cpt(points: list[tuple[float, float]], level: float) -> float:
    weak, strong = points[0][1], points[-1][1]
    return min(x for x, y in points if y >= weak + level * (strong - weak) - 1e-12)


def aiq(points: list[tuple[float, float]], steps: int = 20_000) -> float:
    """The height of the hull at many places: the best mixture of any two points that costs no more."""
    total = 0.0
    for step in range(steps):
        at = (step + 0.5) / steps
        best = max(y for x, y in points if x <= at)
        for (x0, y0), (x1, y1) in combinations(points, 2):
            if x0 <= at <= x1 and x1 > x0:
                best = max(best, y0 + (y1 - y0) * (at - x0) / (x1 - x0))
        total += best
    return total / steps


def auroc(scores: Sequence[float], weak: Sequence[float]) -> float:
    """Over all pairs of a failure and a success."""
    pairs = won = 0.0
    for failed, one in zip(scores, weak, strict=True):
        for well, other in zip(scores, weak, strict=True):
            pairs += (1 - one) * other
            won += (1 - one) * other * (1.0 if failed > well else 0.5 if failed == well else 0.0)
    return won / pairs


def aurc(scores: Sequence[float], weak: Sequence[float]) -> float:
    """The risk at each row's own threshold, averaged."""
    total = 0.0
    for score in scores:
        kept = [1 - w for s, w in zip(scores, weak, strict=True) if s <= score]
        total += sum(kept) / len(kept)
    return total / len(scores)


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    return max(abs(sum(x <= at for x in one) / len(one) - sum(x <= at for x in other) / len(other)) for at in [*one, *other])
