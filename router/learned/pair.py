"""For which two models a router has learned."""

from __future__ import annotations

from .model import Model


def other_pair(model: Model, *, edge: str | None, cloud: str | None) -> str | None:
    """In what the models here differ from those it was trained for; None where they do not. What either side does not say is not
    compared."""
    for side, trained, here in (("device", model.about.edge, edge), ("cloud", model.about.cloud, cloud)):
        if trained and here and trained != here:
            return f"was trained for {trained[:100]} as the model of the {side}, here is {here[:100]}"
    return None
