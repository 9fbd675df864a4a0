"""How the next token is chosen, the same on device and cloud."""

from __future__ import annotations

import math

import msgspec

from .errors import InvalidRequest

GREEDY_BELOW = 1e-5
MAX_LOGPROBS = 20
MAX_STOP_STRINGS = 16


class SamplingParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one request asks of the sampler. Validated when made; raises InvalidRequest naming the field.

    `seed` None means: the front-end draws one from the system's random source and reports it.
    """

    temperature: float = 1.0  # 0..2; below 1e-5 is greedy
    top_p: float = 1.0  # (0, 1]
    top_k: int = 0  # 0: off
    min_p: float = 0.0  # 0..1, relative to the most likely token
    seed: int | None = None  # signed 64-bit
    max_tokens: int | None = None  # None: up to the context's end
    stop: tuple[str, ...] = ()  # applied by the front-end on text
    stop_token_ids: tuple[int, ...] = ()  # besides the model's own end tokens
    ignore_eos: bool = False
    n: int = 1
    logprobs: int | None = None  # None: off; k: the chosen token and the k most likely

    def __post_init__(self) -> None:
        _check(_number(self.temperature) and 0 <= self.temperature <= 2, "temperature", "between 0 and 2", self.temperature)
        _check(_number(self.top_p) and 0 < self.top_p <= 1, "top_p", "above 0 and at most 1", self.top_p)
        _check(_integer(self.top_k) and self.top_k >= 0, "top_k", "0 (off) or more", self.top_k)
        _check(_number(self.min_p) and 0 <= self.min_p <= 1, "min_p", "between 0 and 1", self.min_p)
        _check(self.seed is None or (_integer(self.seed) and -(2**63) <= self.seed < 2**63), "seed", "a signed 64-bit integer", self.seed)
        _check(self.max_tokens is None or (_integer(self.max_tokens) and self.max_tokens >= 1), "max_tokens", "at least 1", self.max_tokens)
        _check(_integer(self.n) and 1 <= self.n <= 128, "n", "between 1 and 128", self.n)
        _check(len(self.stop) <= MAX_STOP_STRINGS, "stop", f"at most {MAX_STOP_STRINGS} strings", len(self.stop))
        _check(all(isinstance(s, str) and s for s in self.stop), "stop", "strings that are not empty", "an empty string")
        _check(all(_integer(i) and i >= 0 for i in self.stop_token_ids), "stop_token_ids", "token ids", "something else")
        wanted = self.logprobs
        _check(wanted is None or (_integer(wanted) and 0 <= wanted <= MAX_LOGPROBS), "logprobs", f"between 0 and {MAX_LOGPROBS}", wanted)

    @property
    def greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check(holds: bool, param: str, rule: str, found: object) -> None:
    if not holds:
        shown = repr(found)
        raise InvalidRequest(f"{param} must be {rule}, found {shown[:80]}", param=param)
