"""What a learned router says of a request, for the decision: a score in the place of the complexity, or that it abstains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ..request import RouteContext, RouteRequest
from .model import Model, Prediction, predict
from .pair import other_pair
from .traits import said

if TYPE_CHECKING:
    from ..policy.tables import ComplexityPolicy


class Opinion(msgspec.Struct, frozen=True):
    """`score` 0..1: the share of the training prompts that gain less from the cloud; None: it abstains, and the rules decide."""

    score: float | None
    why: str  # without any word of the request
    prediction: Prediction
    id: str  # of the model
    data: str  # hash of what it has learned from


def opinion_of(model: Model, request: RouteRequest, context: RouteContext) -> Opinion:
    """Never raises."""
    limits, bands = context.policy.learned, context.policy.complexity
    found = hardest(model, said(request), limits.abstain_above)[1]
    chances = f"a right answer is likely to {found.p_edge:.0%} from the device, {found.p_cloud:.0%} from the cloud"
    score: float | None = None
    other = other_pair(model, edge=context.edge_model, cloud=context.cloud_model)
    if other is not None:
        why = f"the learned router abstains: it {other}"
    elif found.unknown > limits.abstain_above:
        why = f"the learned router abstains: it has seen too little of the kind ({found.unknown:.2f} unknown)"
    elif _undecided(model, found, limits.abstain_errors, bands):
        why = f"the learned router abstains: the gain of {found.gain:+.2f} is too uncertain (give or take {found.error:.2f})"
    else:
        score, why = found.rank, chances
    return Opinion(score, why, found, model.id, model.about.data)


def hardest(model: Model, texts: Sequence[str], abstain_above: float) -> tuple[str, Prediction]:
    """The text of the highest rank among those that it knows the kind of; the first when it knows none. `texts` holds one at least."""
    found = [(text, predict(model, text)) for text in texts]
    return max((one for one in found if one[1].unknown <= abstain_above), key=lambda one: one[1].rank, default=found[0])


def _undecided(model: Model, found: Prediction, errors: float, bands: ComplexityPolicy) -> bool:
    """Whether the device's band and the cloud's both lie within so many standard errors of the gain."""
    if errors == 0:
        return False
    away = errors * found.error
    return model.rank_of(found.gain - away) < bands.cascade_from and model.rank_of(found.gain + away) >= bands.hard_from
