"""The device's model asked about its own answer: whether it is right, or once more. Each takes time that the answer's own tokens do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ..router.confidence.self_check import agreement, ask_whether_true, probability_of_true
from ..shared_protocol.errors import ContextOverflow, TemplateError
from ..shared_protocol.noise import child_seed
from ..shared_protocol.sampling import SamplingParams
from .session import Session

TEMPERATURE = 0.7  # of the further answers, at least: greedy ones would all be the same


def p_true(session: Session, messages: Sequence[Mapping[str, object]], answer: str) -> float | None:
    """How likely the model calls its `answer` right, 0..1; None where that question does not fit its context or its template."""
    try:
        ids = session.model.render_chat(ask_whether_true(messages, answer))
    except TemplateError:
        return None
    if len(ids) > session.held.context:
        return None
    session.held.keep_common_prefix(ids)
    row = session.held.extend(ids[session.held.length :], rows=1)[0, : session.model.tokenizer.vocab_size]
    return probability_of_true(row, session.model.tokenizer)


def answers_agree(session: Session, prompt_ids: Sequence[int], params: SamplingParams, answer: str, samples: int) -> float | None:
    """How far `samples` more answers agree with `answer`, 0..1, each with a seed of its own made from that of `params`, which is set.

    None where they do not fit the context.
    """
    assert params.seed is not None
    texts = []
    for number in range(1, samples + 1):
        seed, temperature = child_seed(params.seed, number), max(params.temperature, TEMPERATURE)
        again = replace(params, seed=seed, temperature=temperature, logprobs=None)
        try:
            texts.append("".join(chunk.text for chunk in session.generate(prompt_ids, again)))
        except ContextOverflow:
            return None
    return agreement(answer, texts)
