"""How much of a text may leave the device: four words, from free to forbidden."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

# public     may go to the cloud
# redact     may go once placeholders stand for what was found (redact/)
# local_only only the device may answer
# block      nobody answers
Verdict = Literal["public", "redact", "local_only", "block"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_RANK = {verdict: rank for rank, verdict in enumerate(VERDICTS)}


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """The strictest of `verdicts`; `public` when there is none. Adding one can only make it stricter."""
    return max(verdicts, key=_RANK.__getitem__, default="public")
