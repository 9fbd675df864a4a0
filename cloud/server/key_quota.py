"""How many tokens a minute each key may have: reserved at admission, so that requests that run at once never get more than there is.

A request takes its prompt and the longest answer it may get; when it ends, however it does, what was computed is charged and the rest
given back. Streamed, whole and drafted answers share one bucket, which holds a minute's tokens and fills steadily.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...router.quota import TokenBucket
from ...shared_protocol.errors import QuotaExceeded, RequestExceedsQuota
from .keys import ADMIN

ASSUMED_OUTPUT = 512  # tokens of an answer whose length is not limited; what it takes beyond is charged all the same


class KeyQuotas:
    """Used from one event loop. `per_minute` None: no limit; 0: nothing."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}  # as many as there are keys

    def headers(self, key_id: str) -> dict[str, str]:
        """What a key is told of its bucket, under OpenAI's names; nothing where there is no limit. `reset`: until it is full again."""
        bucket, now = self._buckets.get(key_id), self._clock()
        if self._per_minute is None or bucket is None:
            return {}
        view = bucket.view(now)
        return {
            "x-ratelimit-limit-tokens": str(self._per_minute),
            "x-ratelimit-remaining-tokens": str(max(0, math.floor(view.available))),
            "x-ratelimit-reset-tokens": f"{math.ceil(view.wait_s(self._per_minute) or 0)}s",
        }

    @contextmanager
    def hold(self, key_id: str, prompt: int, output: int | None, used: Callable[[], int]) -> Iterator[None]:
        """Reserve `prompt` and `output` tokens (None: as long as it gets); `used` says in the end what it was.

        Raises RequestExceedsQuota for more than a minute ever has, QuotaExceeded with the time to wait for more than there is now.
        """
        if self._per_minute is None or key_id == ADMIN:
            yield
            return
        asked = prompt + (max(1, min(ASSUMED_OUTPUT, self._per_minute - prompt)) if output is None else output)
        now = self._clock()
        bucket = self._buckets.setdefault(key_id, TokenBucket(self._per_minute, self._per_minute / 60, now))
        if asked > self._per_minute:
            raise RequestExceedsQuota(
                f"this request takes up to {asked} tokens, this key may have {self._per_minute} a minute",
                hint="shorten the prompt or lower max_tokens",
            )
        reserved = bucket.reserve(asked, now)
        if reserved is None:
            view = bucket.view(now)
            wait, left = view.wait_s(asked), max(0, math.floor(view.available))
            raise QuotaExceeded(
                f"this request takes up to {asked} tokens, this key has {left} left of {self._per_minute} a minute",
                hint="ask again later, or for a shorter answer",
                retry_after_s=None if wait is None else math.ceil(wait),
            )
        try:
            yield
        finally:
            bucket.settle(reserved, used(), self._clock())
