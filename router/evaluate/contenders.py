"""The routers of our own that are measured: "ours" is the one that a policy would be given."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..learned.ours import Ours
from .assess import OURS
from .rules_scorer import Rules
from .scorers import Scorer


def contenders() -> Mapping[str, Callable[[], Scorer]]:
    """By the name in the report, how to make one that has learned nothing yet."""
    return {OURS: Ours, "rules": Rules}
