"""A conversation with a model on the device: template, reuse of what is in the cache, sampling, text, and how sure the model was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..router.confidence.token_signal import TokenSignal, token_signal
from ..shared_protocol.answer_text import AnswerText
from ..shared_protocol.errors import ContextOverflow, InvalidRequest, NoHiddenStates
from ..shared_protocol.model import Model
from ..shared_protocol.noise import fresh_seed
from ..shared_protocol.openai import TokenLogprob
from ..shared_protocol.runtime import EdgeRuntime
from ..shared_protocol.sampling import SamplingParams, sample, top_logprobs
from .drafter import Drafter, Mutate
from .held_tokens import HeldTokens


@dataclass(frozen=True, slots=True)
class EdgeChunk:
    """What one token brought. The last chunk of an answer has a `finish_reason`; `text` may be empty on any."""

    text: str
    token_id: int
    signal: TokenSignal  # of the raw distribution behind it: what confidence is made of
    logprobs: tuple[TokenLogprob, ...] = ()  # when params.logprobs asks for them: of the tokens whose text is shown now
    finish_reason: Literal["stop", "length"] | None = None
    hidden: NDArray[np.float32] | None = None  # [hidden_size], that the token was drawn from, where it was asked for


@dataclass(frozen=True, slots=True)
class EdgeAnswer(Iterator[EdgeChunk]):
    """The chunks of one answer as they are computed, and what is known before the first."""

    seed: int
    num_prompt: int
    num_cached: int  # prompt tokens that were still held from before
    known_text: str  # what may be shown of the output that was known already
    chunks: Iterator[EdgeChunk]

    def __next__(self) -> EdgeChunk:
        return next(self.chunks)


class Session:
    """One runtime, one model, one answer at a time. The text is what the cloud's engine gives for the same model, parameters and seed.

    Context policy: a prompt that does not fit together with max_tokens is refused (ContextOverflow); nothing is cut.
    """

    def __init__(self, runtime: EdgeRuntime, model: Model) -> None:
        self.model = model
        self.held = HeldTokens(runtime)
        self.end_ids = model.tokenizer.eos_ids

    def chat(self, messages: Sequence[Mapping[str, object]], params: SamplingParams, *, hidden: bool = False) -> EdgeAnswer:
        """Answer a conversation; raises TemplateError, and what `generate` does, before anything is computed."""
        return self.generate(self.model.render_chat(messages), params, hidden=hidden)

    def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, known: Sequence[int] = (), hidden: bool = False) -> EdgeAnswer:
        """Continue `prompt_ids`. `known`: output that exists already, as if this session had drawn it: limits, positions and
        stop strings count it, the chunks start after it. `hidden`: each chunk brings the hidden state that its token was drawn from; no
        token is another for that.

        Raises ContextOverflow, InvalidRequest when `known` is a finished answer, and NoHiddenStates; all before anything is computed.
        """
        limit, wanted = self.held.context, params.max_tokens
        asked = len(prompt_ids) + (len(known) + 1 if wanted is None else wanted) - 1  # the last token drawn is never fed
        if asked > limit:
            raise ContextOverflow(asked=asked, limit=limit)
        if hidden and self.held.hidden_size is None:
            raise NoHiddenStates(self.held.card.name)
        seed = fresh_seed() if params.seed is None else params.seed
        text = AnswerText(self.model.tokenizer, params.stop)
        known_text = "".join(text.push(i) for i in known if text.stopped is None)
        if text.stopped is not None or len(known) == wanted:
            raise InvalidRequest("the known output is finished already", param="known")
        num_cached = self.held.keep_common_prefix([*prompt_ids, *known])
        last = limit + 1 - len(prompt_ids) if wanted is None else wanted
        chunks = self._run([*prompt_ids, *known], len(known), text, params, seed, last, hidden)
        return EdgeAnswer(seed, len(prompt_ids), min(num_cached, len(prompt_ids)), known_text, chunks)

    def drafter(self, prompt_ids: Sequence[int], params: SamplingParams, seed: int, mutate: Mutate | None = None) -> Drafter:
        """A drafter over this session's runtime; the session must not answer while it drafts."""
        held = self.held.keep_common_prefix(prompt_ids)
        vocab, ends = self.model.tokenizer.vocab_size, self._ends(params)
        return Drafter(self.held, prompt_ids, params, seed, vocab_size=vocab, end_ids=ends, held=held, mutate=mutate)

    def cancel(self) -> None:
        """End the running answer with Cancelled; may be called from another thread."""
        self.held.cancel()

    def _ends(self, params: SamplingParams) -> frozenset[int]:
        return frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else self.end_ids)

    def _run(
        self, ids: list[int], count: int, text: AnswerText, params: SamplingParams, seed: int, last: int, hidden: bool
    ) -> Iterator[EdgeChunk]:
        """`ids`: prompt and output so far, `count` of them output; `last`: the count at which the answer must end."""
        ends = self._ends(params)
        while True:
            state: NDArray[np.float32] | None = None
            if hidden:
                logits, (state,) = self.held.extend_with_hidden(ids[self.held.length :], rows=1)
            else:
                logits = self.held.extend(ids[self.held.length :], rows=1)
            row = logits[0, : self.model.tokenizer.vocab_size]
            token_id = sample(row, params, seed, len(ids))
            likelihood = None if params.logprobs is None else top_logprobs(row, token_id, params.logprobs)
            ids.append(token_id)
            count += 1
            ended = token_id in ends
            shown = text.push(token_id, ends=ended, likelihood=likelihood)
            finish: Literal["stop", "length"] | None = None
            if ended or text.stopped is not None:
                finish = "stop"
            elif count == last:
                finish = "length"
            if finish is not None:
                shown += text.finish()
            yield EdgeChunk(shown, token_id, token_signal(row, token_id), text.take_logprobs(), finish, state)
            if finish is not None:
                return
