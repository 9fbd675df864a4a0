"""From a checked request to a job: parameters, limits, identity."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...shared_protocol.errors import InvalidRequest
from ...shared_protocol.noise import fresh_seed
from ...shared_protocol.sampling import SamplingParams
from ..engine.frontend import check_prompt
from ..engine.request import resolve_max_tokens
from .generation import Job, Service
from .request_info import RequestInfo
from .schemas import Generating


def sampling_params(body: Generating, *, max_tokens: int | None, logprobs: int | None) -> SamplingParams:
    """What the sampler is asked; a seed is drawn when none was sent. Raises InvalidRequest naming the field."""
    stop = (body.stop,) if isinstance(body.stop, str) else tuple(body.stop or ())
    return SamplingParams(
        temperature=1.0 if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=0 if body.top_k in (None, -1) else body.top_k or 0,
        min_p=body.min_p or 0.0,
        seed=fresh_seed() if body.seed is None else body.seed,
        max_tokens=max_tokens,
        stop=stop,
        stop_token_ids=tuple(body.stop_token_ids or ()),
        ignore_eos=bool(body.ignore_eos),
        n=1 if body.n is None else body.n,
        logprobs=logprobs,
    )


@contextmanager
def blaming(param: str) -> Iterator[None]:
    """Errors of the request raised within name this field."""
    try:
        yield
    except InvalidRequest as error:
        error.param = param
        raise


def job_of(
    service: Service,
    info: RequestInfo,
    body: Generating,
    *,
    prefix: str,
    prompts: Sequence[Sequence[int]],
    params: SamplingParams,
    param: str,
    arrival: float,
) -> Job:
    """Raises ContextOverflow when a prompt and its answer do not fit, InvalidRequest when a prompt has no token or one that the vocabulary
    does not have; `param` is the prompt's field."""
    with blaming(param):
        for prompt in prompts:
            check_prompt(prompt, service.frontend.model.tokenizer.vocab_size)
            resolve_max_tokens(len(prompt), params.max_tokens, service.frontend.client.max_model_len)
    if len(prompts) * params.n > service.settings.max_choices:
        asked = f"{len(prompts)} prompts with n = {params.n}"
        raise InvalidRequest(f"{asked} ask for more than {service.settings.max_choices} choices, the limit", param="n")
    salt = info.caller.key_id if body.cache_salt is None else f"{info.caller.key_id}:{body.cache_salt}"
    return Job(
        id=f"{prefix}-{uuid.uuid4().hex}",
        created=int(service.wall()),
        model=service.model_id,
        prompts=tuple(tuple(prompt) for prompt in prompts),
        params=params,
        cache_salt=salt,
        arrival=arrival,
    )
