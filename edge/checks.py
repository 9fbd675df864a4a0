"""What every runtime refuses before it computes anything, and where it stops."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import numpy as np
from numpy.typing import NDArray

from ..shared_protocol.errors import Cancelled, ContextOverflow, InvalidRequest
from ..shared_protocol.model_card import ModelCard

DEFAULT_CONTEXT = 4096


def chosen_context(asked: int | None, card: ModelCard) -> int:
    """Tokens that a runtime is to hold. Raises InvalidRequest for more than the model knows, or none."""
    context = min(DEFAULT_CONTEXT, card.context_length) if asked is None else asked
    if not 1 <= context <= card.context_length:
        raise InvalidRequest(f"context must be between 1 and the model's {card.context_length} tokens, found {context}")
    return context


def checked_ids(ids: Sequence[int], rows: int, *, held: int, context: int, vocab: int) -> NDArray[np.int32]:
    """`ids` as an array. Raises InvalidRequest for rows or ids that do not exist, ContextOverflow when `held` more do not fit."""
    if not 0 <= rows <= len(ids):
        raise InvalidRequest(f"rows must be between 0 and the {len(ids)} tokens fed, found {rows}")
    if held + len(ids) > context:
        raise ContextOverflow(asked=held + len(ids), limit=context)
    try:
        tokens = np.asarray(ids, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        tokens = np.array([-1])
    if tokens.ndim != 1 or (tokens.size and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocab):
        raise InvalidRequest(f"token ids must be between 0 and {vocab - 1}")
    return tokens.astype(np.int32)


def check_length(length: int, held: int) -> None:
    """Raises InvalidRequest when a sequence of `held` tokens cannot be cut to `length`."""
    if not 0 <= length <= held:
        raise InvalidRequest(f"cannot truncate to {length}: {held} tokens are held")


def check_cancelled(cancelled: Event) -> None:
    """Raises Cancelled once for each time that `cancelled` was set."""
    if cancelled.is_set():
        cancelled.clear()
        raise Cancelled("the device's work was cancelled")
