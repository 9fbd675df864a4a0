"""Log-probabilities in the shapes of the two routes. The tokens of a choice joined are its text."""

from __future__ import annotations

from collections.abc import Sequence

from ...shared_protocol.openai import ChoiceLogprobs, CompletionLogprobs
from ...shared_protocol.sampling import SamplingParams
from ..engine.frontend import Chunk


def chat_logprobs(pieces: Sequence[Chunk], params: SamplingParams) -> ChoiceLogprobs | None:
    """Those of consecutive chunks of one choice; None when they were not asked for."""
    if params.logprobs is None:
        return None
    return ChoiceLogprobs(content=[token for piece in pieces for token in piece.logprobs])


def completion_logprobs(pieces: Sequence[Chunk], params: SamplingParams, offset: int = 0) -> CompletionLogprobs | None:
    """Those of consecutive chunks of one choice whose text begins at character `offset`; None when they were not asked for.

    A token's `top_logprobs` hold the most likely ones and the token itself; of ids with one text the most likely counts.
    """
    if params.logprobs is None:
        return None
    shape = CompletionLogprobs(tokens=[], token_logprobs=[], top_logprobs=[], text_offset=[])
    for token in (token for piece in pieces for token in piece.logprobs):
        top = {other.token: other.logprob for other in reversed(token.top_logprobs)}  # the most likely last, so that it wins
        shape.tokens.append(token.token)
        shape.token_logprobs.append(token.logprob)
        shape.top_logprobs.append({token.token: token.logprob} | dict(reversed(top.items())))
        shape.text_offset.append(offset)
        offset += len(token.token)
    return shape
