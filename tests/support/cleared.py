"""A request that may leave the device."""

from __future__ import annotations

from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import Shareable, clear
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.sampling import SamplingParams


def cleared(text: str = "Say hello.", **sampling: object) -> Shareable[RouteRequest]:
    params = SamplingParams(**sampling)  # type: ignore[arg-type]
    request = clear(RouteRequest.of([{"role": "user", "content": text}], sampling=params), Policy.default())
    assert isinstance(request, Shareable)
    return request
