"""Which tokens min-p, top-k and top-p leave to the draw, without ever sorting the vocabulary.

The order of tokens is (-logit, id), so a tie at a cut is settled by id. A token at -inf is masked: it survives nothing.
`survivors_plain` is the definition, over the whole vocabulary; `survivors` decides the same with NumPy's quick `exp`, and goes back to
the definition wherever the two exponentials could disagree.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .noise import exp

F32 = NDArray[np.float32]
Ids = NDArray[np.int64]

FIRST_CANDIDATES = 256  # top-p looks at this many, then four times as many, until they hold the mass
CHUNK = 8192  # float64 arrays of this many stay in the cache; a whole vocabulary's costs more in page faults than in arithmetic
_SMALL = 2048  # up to here the definition is the quickest
_DOUBT = 1e-9  # relative; 10^6 rounded additions and two exponentials of 2 ulp differ by less
_GROUP = 16


class Filters(Protocol):
    """What of SamplingParams the filters read."""

    @property
    def temperature(self) -> float: ...
    @property
    def min_p(self) -> float: ...
    @property
    def top_k(self) -> int: ...
    @property
    def top_p(self) -> float: ...


def survivors_plain(logits: F32, params: Filters) -> Ids:
    """Ids, ascending, left by temperature -> min_p -> top_k -> top_p. At least one logit is finite, none is NaN or +inf.

    Weights are exp(logit / T - best / T) by our own `exp`. top-p divides them by their sum over the survivors in id order, adds
    the quotients up in (-logit, id) order and keeps the smallest prefix whose sum reaches p, or all when rounding lets none reach it.
    """
    ids = np.flatnonzero(logits > -np.inf)
    if params.min_p > 0:
        ids = ids[_weights(logits[ids], params.temperature) >= params.min_p]
    if 0 < params.top_k < ids.size:
        ids = np.sort(ids[_ranked(logits[ids])[: params.top_k]])
    if params.top_p < 1:
        ids = ids[_nucleus_plain(logits[ids], params.temperature, params.top_p)]
    return ids


def survivors(logits: F32, params: Filters) -> Ids | None:
    """The same as `survivors_plain`; None when no filter is set, so that the whole vocabulary stands."""
    if params.min_p == 0 and params.top_k == 0 and params.top_p == 1:
        return None
    if logits.size <= _SMALL:
        return survivors_plain(logits, params)
    ids = _above_min_p(logits, params) if params.min_p > 0 else None
    if params.top_k > 0:
        ids = np.sort(top_ids(logits, params.top_k) if ids is None else ids[top_ids(logits[ids], params.top_k)])
    if params.top_p == 1:
        return ids
    if ids is None:
        return _nucleus(logits, params.temperature, params.top_p)
    return ids[_nucleus(logits[ids], params.temperature, params.top_p)]


def top_ids(logits: F32, k: int) -> Ids:
    """The first k ids in (-logit, id) order, masked ones left out.

    The k-th largest of the maxima of small groups bounds the k-th largest logit from below: what is at or above it gets sorted.
    """
    ids = _at_or_above(logits, _floor_of_top(logits, k))
    if ids.size > 4 * k:
        values = logits[ids]
        ids = ids[values >= np.partition(values, ids.size - k)[ids.size - k]]
    return ids[_ranked(logits[ids])[:k]]


def leading_ids(logits: F32, k: int) -> Ids:
    """Some ids, ascending, among which are good ones: about the k best, never more than 4k, never none."""
    return _at_or_above(logits, _floor_of_top(logits, k))[: 4 * k]


def _floor_of_top(logits: F32, k: int) -> np.float32:
    """A value that at least min(k, all) logits reach."""
    groups = logits.size // _GROUP
    if groups < k:
        return np.partition(logits, logits.size - k)[logits.size - k] if k < logits.size else np.float32(-np.inf)
    maxima = logits[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
    return np.float32(np.partition(maxima, groups - k)[groups - k])


def _at_or_above(logits: F32, floor: np.float32) -> Ids:
    return np.flatnonzero(logits >= floor) if floor > -np.inf else np.flatnonzero(logits > -np.inf)


def _ranked(logits: F32) -> Ids:
    """Indices by falling logit; ids ascend in the input, so a stable sort settles ties by id."""
    return np.argsort(-logits, kind="stable")


def _weights(logits: F32, temperature: float) -> NDArray[np.float64]:
    """exp(logit / T - best / T): 1.0 for the best."""
    scaled = logits.astype(np.float64) / temperature
    return exp(scaled - scaled.max())


def _above_min_p(logits: F32, params: Filters) -> Ids:
    best = float(logits.max())
    floor = best + params.temperature * (math.log(params.min_p) - 1.0) - 1e-9 * abs(best)  # generous: the weights decide
    ids = np.flatnonzero(logits >= np.nextafter(np.float32(floor), np.float32(-np.inf)))
    return ids[_weights(logits[ids], params.temperature) >= params.min_p]


def _nucleus_plain(logits: F32, temperature: float, top_p: float) -> Ids:
    """Indices, ascending, that top-p keeps; none of the logits is masked."""
    weights = _weights(logits, temperature)
    order = _ranked(logits)
    sums = np.cumsum(weights[order] / np.cumsum(weights)[-1])
    return np.sort(order[: int(np.searchsorted(sums, top_p)) + 1])


def _nucleus(logits: F32, temperature: float, top_p: float) -> Ids:
    best = float(logits.max()) / temperature
    total = sum(float(_rough_weights(logits[i : i + CHUNK], temperature, best).sum()) for i in range(0, logits.size, CHUNK))
    count = FIRST_CANDIDATES
    while count < logits.size:
        order = top_ids(logits, count)
        sums = np.cumsum(_rough_weights(logits[order], temperature, best)) / total
        if sums[-1] > top_p + _DOUBT:
            if np.abs(sums - top_p).min() <= _DOUBT:
                break  # too close to tell
            return np.sort(order[: int(np.searchsorted(sums, top_p)) + 1])
        count *= 4
    ids = np.flatnonzero(logits > -np.inf)
    return ids[_nucleus_plain(logits[ids], temperature, top_p)]


def _rough_weights(logits: F32, temperature: float, best: float) -> NDArray[np.float64]:
    weights = logits.astype(np.float64)
    weights /= temperature
    weights -= best
    np.exp(weights, out=weights)
    return weights
