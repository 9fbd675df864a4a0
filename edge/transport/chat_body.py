"""What is sent to the cloud for one request: only what a `Shareable` holds."""

from __future__ import annotations

import msgspec

from ...router.privacy import Shareable, require_shareable
from ...router.request import RouteRequest
from ...shared_protocol.sampling import SamplingParams

_DEFAULTS = SamplingParams()
_PLAIN = ("top_p", "top_k", "min_p", "seed", "max_tokens", "ignore_eos", "n")
_LISTS = ("stop", "stop_token_ids")


def chat_body(request: Shareable[RouteRequest], model: str | None, *, stream: bool) -> bytes:
    """The JSON body of a chat completion. Parameters at their default are left out, but for the temperature.

    Raises NotShareable for anything that privacy has not cleared.
    """
    require_shareable(request)
    cleared = request.value
    sampling = cleared.sampling
    body: dict[str, object] = {"messages": cleared.to_openai(), "temperature": sampling.temperature}
    if model is not None:
        body["model"] = model
    for name in _PLAIN:
        value = getattr(sampling, name)
        if value != getattr(_DEFAULTS, name):
            body[name] = value
    for name in _LISTS:
        if getattr(sampling, name):
            body[name] = list(getattr(sampling, name))
    if sampling.logprobs is not None:
        body |= {"logprobs": True, "top_logprobs": sampling.logprobs}
    if cleared.tools:
        body["tools"] = [msgspec.json.decode(tool) for tool in cleared.tools]
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return msgspec.json.encode(body)
