"""How the next token is chosen, the same on device and cloud.

greedy if temperature < 1e-5, else: temperature -> min_p -> top_k -> top_p -> argmax(logit / T + g), g from `noise`.
Ties go to the lowest id. Tokens at -inf are masked. Reported log-probabilities are those of the raw distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from .errors import InvalidLogits, InvalidRequest
from .filters import CHUNK, leading_ids, survivors, survivors_plain, top_ids
from .noise import Keys, gumbel_of, gumbel_one, hash_ids, keys, uniform

GREEDY_BELOW = 1e-5
MAX_LOGPROBS = 20
MAX_STOP_STRINGS = 16
MAX_STOP_CHARACTERS = 1024  # of one: every choice keeps a table as long
MAX_STOP_IDS = 1024
MAX_TOKENS = 2**53  # no context is as long; what is reckoned with them stays a number


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
        _check(self.max_tokens is None or self.max_tokens <= MAX_TOKENS, "max_tokens", f"at most {MAX_TOKENS}", "more")
        _check(_integer(self.n) and 1 <= self.n <= 128, "n", "between 1 and 128", self.n)
        # a lone string would be a list of its letters
        _check(isinstance(self.stop, list | tuple), "stop", "a list of strings", self.stop)
        _check(isinstance(self.stop_token_ids, list | tuple), "stop_token_ids", "a list of token ids", self.stop_token_ids)
        _check(isinstance(self.ignore_eos, bool), "ignore_eos", "true or false", self.ignore_eos)
        _check(len(self.stop) <= MAX_STOP_STRINGS, "stop", f"at most {MAX_STOP_STRINGS} strings", len(self.stop))
        _check(all(isinstance(s, str) and s for s in self.stop), "stop", "strings that are not empty", "an empty string")
        longest = max(map(len, self.stop), default=0)
        _check(longest <= MAX_STOP_CHARACTERS, "stop", f"strings of at most {MAX_STOP_CHARACTERS} characters", longest)
        _check(len(self.stop_token_ids) <= MAX_STOP_IDS, "stop_token_ids", f"at most {MAX_STOP_IDS} ids", len(self.stop_token_ids))
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


@dataclass(frozen=True, slots=True)
class SampleRow:
    """How to draw from one row of logits. `position` is the index in the whole sequence of the token drawn.

    `vocab_size` masks the padding above the real vocabulary; None: all columns are tokens.
    """

    params: SamplingParams
    seed: int
    position: int
    vocab_size: int | None = None


def sample_rows(logits: NDArray[np.float32], rows: Sequence[SampleRow]) -> list[int]:
    """Draw one token for each row of logits [rows, vocab]; a row's token depends on that row only."""
    assert logits.shape[0] == len(rows)
    return [sample(logits[i, : row.vocab_size], row.params, row.seed, row.position) for i, row in enumerate(rows)]


def sample(logits: NDArray[np.float32], params: SamplingParams, seed: int, position: int) -> int:
    """Draw one token from logits float32 [vocab]. Raises InvalidLogits on NaN, +inf, or when every token is masked."""
    _check_logits(logits)
    if params.greedy:
        return int(logits.argmax())
    ids = survivors(logits, params)
    if ids is None:
        return _draw_pruned(logits, _all_ids(logits.size), params.temperature, keys(seed, position))
    draw = _draw if ids.size <= _PRUNE_FROM else _draw_pruned
    return draw(logits[ids], ids.astype(np.uint32), params.temperature, keys(seed, position))


def sample_full(logits: NDArray[np.float32], params: SamplingParams, seed: int, position: int) -> int:
    """The definition of `sample`: filters and noise over the whole vocabulary, nothing pruned."""
    _check_logits(logits)
    if params.greedy:
        return int(np.flatnonzero(logits == logits.max())[0])
    ids = survivors_plain(logits, params)
    return _draw(logits[ids], ids.astype(np.uint32), params.temperature, keys(seed, position))


def top_logprobs(logits: NDArray[np.float32], token_id: int, k: int) -> tuple[float, tuple[tuple[int, float], ...]]:
    """Raw log-probability of `token_id`, and the k most likely (id, log-probability), best first, ties by id, masked ones left out."""
    _check_logits(logits)
    wide = logits.astype(np.float64)
    best = float(logits.max())
    log_total = best + math.log(sum(float(np.exp(wide[i : i + CHUNK] - best).sum()) for i in range(0, wide.size, CHUNK)))
    top = top_ids(logits, k) if k else ()
    return float(wide[token_id]) - log_total, tuple((int(i), float(wide[i]) - log_total) for i in top)


_LEADERS = 64
_FEW = 12  # up to here one at a time in Python is quicker than arrays
_PRUNE_FROM = 1024  # up to here the noise of all costs less than deciding whose is needed
_SPAN = 16384  # ids in one pass of the pruning


def _draw(logits: NDArray[np.float32], ids: NDArray[np.uint32], temperature: float, key: Keys) -> int:
    """argmax(logit / T + g) over `ids` (ascending, so that argmax settles ties by id)."""
    if ids.size == 1:
        return int(ids[0])
    scaled = logits.astype(np.float64) / temperature
    if ids.size > _FEW:
        return int(ids[np.argmax(scaled + gumbel_of(key, ids))])
    scores = [x + gumbel_one(key, i) for x, i in zip(scaled.tolist(), ids.tolist(), strict=True)]
    return int(ids[scores.index(max(scores))])


def _draw_pruned(logits: NDArray[np.float32], ids: NDArray[np.uint32], temperature: float, key: Keys) -> int:
    """The same as `_draw`, with the full noise only for ids that can still win.

    The leaders by logit give a score to beat. u < (hi + 1) / 2^32 and -log u > 1 - u bound an id's noise: g < -log(1 - (hi + 1) / 2^32),
    so it can win only if 2^32 - (hi + 1) <= 2^32 exp(logit / T - beat): half of the hash and float32 decide. Only logits / T within 37
    of `beat` matter, so four roundings err by less than 2^-22 (|beat| + 64) in the exponent; four times that, and a unit of `hi`, is given.
    """
    leaders = leading_ids(logits, _LEADERS)
    u = uniform(hash_ids(ids[leaders], key.k0, key.k1), hash_ids(ids[leaders], key.k2, key.k3))
    scores = logits[leaders].astype(np.float64) / temperature - np.log(-np.log(u))
    beat = max(float(scores.max()), float(logits.max()) / temperature - 3.7)  # no noise is below -3.61
    if abs(beat) > 1e6:
        return _draw(logits, ids, temperature, key)
    offset = np.float32(32 * math.log(2) - beat + 2.0**-20 * (abs(beat) + 64))
    contenders = []
    with np.errstate(over="ignore"):
        for start in range(0, logits.size, _SPAN):
            within_reach = logits[start : start + _SPAN] * np.float32(1 / temperature)
            within_reach += offset
            np.exp(within_reach, out=within_reach)
            within_reach += np.float32(1)
            short = hash_ids(ids[start : start + _SPAN], key.k0, key.k1)
            np.invert(short, out=short)  # 2^32 - (hi + 1)
            contenders.append(np.flatnonzero(short.astype(np.float32) <= within_reach) + start)
    left = np.concatenate(contenders)
    return _draw(logits[left], ids[left], temperature, key)


@lru_cache(maxsize=8)
def _all_ids(size: int) -> NDArray[np.uint32]:
    ids = np.arange(size, dtype=np.uint32)
    ids.flags.writeable = False
    return ids


def _check_logits(logits: NDArray[np.float32]) -> None:
    assert logits.ndim == 1 and logits.dtype == np.float32
    best = logits.max() if logits.size else -np.inf
    if not -np.inf < best < np.inf:
        found = "NaN" if np.isnan(best) else "+inf" if best > 0 else "no token that is not masked"
        raise InvalidLogits(f"the logits hold {found}; nothing can be drawn from them")
