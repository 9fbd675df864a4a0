"""How many tokens a prompt has: counted where a tokenizer is at hand, else estimated, and the decision says which."""

from __future__ import annotations

from ..shared_protocol.sampling import MAX_TOKENS
from .request import RouteContext, RouteRequest

BYTES_PER_TOKEN = 3.6  # English text under the byte-level BPEs of current small models
TOKENS_PER_MESSAGE = 6  # what a chat template adds around a message


def prompt_tokens(request: RouteRequest, context: RouteContext) -> tuple[int, bool]:
    """(tokens, whether they were counted). A counter that fails, or answers no natural number, is as none."""
    if context.count_tokens is not None:
        try:
            counted = context.count_tokens(request)
        except Exception:  # a tokenizer or template that trips must not stop the decision
            counted = -1
        if isinstance(counted, int) and 0 <= counted <= MAX_TOKENS:
            return counted, True
    return estimate_tokens(request.num_bytes) + TOKENS_PER_MESSAGE * len(request.messages), False


def estimate_tokens(num_bytes: int) -> int:
    return -int(-num_bytes // BYTES_PER_TOKEN)
