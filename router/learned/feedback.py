"""Correcting a learned router by what its answers turned out to be: in small steps, never far, and never for good.

    phi     = (wave, 1) / sqrt(3)                           at most 1 long
    step    = cut(rate * (observed - predicted), limit) * phi / |phi|^2
    total   = pulled back to `drift` where it grew longer

A step moves the score of the very prompt by `step_limit` at most, and all steps together move no prompt's score by more than `drift`.
Only the part that knows traits is corrected, so that what is kept of the observed prompts holds no trace of their words.
Every correction is a version; version 0 is the router as trained, and any version can be gone back to, which is one more version.
Pure: the date is an argument, and a history is never changed, only followed by another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
import numpy as np

from ...shared_protocol.errors import ConfigError, InvalidRequest
from .hashed import Floats
from .model import WAVES, Model, raw_scores, rounded

MAGIC = b"hybrid learned corrections 1\n"
MAX_VERSIONS = 1_000
MAX_BYTES = 16_000_000
_SIZE = (WAVES + 1) * 2 * 8  # bytes of one `total`


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rate: float = 0.05  # 0..1 of an error that one observation mends
    step: float = 0.02  # the most that one observation moves the score of its prompt
    drift: float = 0.1  # the most that all together move any score

    def __post_init__(self) -> None:
        if not (0 < self.rate <= 1 and 0 < self.step <= 1 and 0 < self.drift <= 1):
            raise ValueError("limits lie above 0 and are 1 at most")


@dataclass(frozen=True, slots=True, repr=False)
class Observed:
    """What one model made of a prompt: a score 0..1."""

    prompt: str
    side: Literal["edge", "cloud"]
    score: float


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of the log, without any word of a prompt."""

    number: int
    when: str
    what: str  # "12 observations", or "back to version 3"
    error: float  # mean size of what the observed scores were beside the predicted; 0 for going back
    drift: float  # length of `total`
    total: bytes  # float64, [WAVES + 1, 2]: what is added to the trained weights


@dataclass(frozen=True, slots=True)
class History:
    base: Model
    limits: Limits = field(default_factory=Limits)
    versions: tuple[Version, ...] = ()  # numbers 1, 2, ...

    @property
    def number(self) -> int:
        return len(self.versions)


def corrected(history: History) -> Model:
    """The router as its latest version has it; its id names that version."""
    if not history.versions:
        return history.base
    total = _total(history, history.number) / np.sqrt(3)
    return replace(
        history.base,
        waves=rounded(history.base.waves + total[:-1]),
        mean=rounded(history.base.mean + total[-1]),
        id=f"{history.base.id}+{history.number}",
    )


def correct(history: History, observed: Sequence[Observed], *, when: str) -> History:
    """One more version, moved by these observations in order. Raises InvalidRequest for none, or a score outside 0..1."""
    if not observed or not all(one.side in ("edge", "cloud") and 0 <= one.score <= 1 for one in observed):
        raise InvalidRequest("feedback needs observations of edge or cloud, with scores from 0 to 1", param="score")
    limits = history.limits
    raw, wave = raw_scores(history.base, [one.prompt for one in observed])
    phi = np.hstack([wave, np.ones((len(wave), 1))]) / np.sqrt(3)
    total = _total(history, history.number)
    errors = []
    for row, one in enumerate(observed):
        side = 0 if one.side == "edge" else 1
        error = one.score - float(raw[row, side] + phi[row] @ total[:, side])
        errors.append(abs(error))
        step = min(limits.step, max(-limits.step, limits.rate * error))
        total[:, side] += step * phi[row] / float(phi[row] @ phi[row])
        length = float(np.linalg.norm(total[:, side]))
        if length > limits.drift:
            total[:, side] *= limits.drift / length
    return _followed(history, total, when, f"{len(observed)} observations", float(np.mean(errors)))


def roll_back(history: History, number: int, *, when: str) -> History:
    """One more version, equal to version `number`; 0 is the router as trained. Raises InvalidRequest where there is none."""
    if not 0 <= number <= history.number:
        raise InvalidRequest(f"there is no version {number}: there are 0 to {history.number}", param="version")
    return _followed(history, _total(history, number), when, f"back to version {number}", 0.0)


def to_bytes(history: History) -> bytes:
    body = msgspec.msgpack.encode((history.base.id, history.limits, history.versions))
    return MAGIC + hashlib.sha256(body).digest() + body


def from_bytes(data: bytes, base: Model) -> History:
    """The corrections of `base`. Raises ConfigError for those of another router, and for a damaged file."""
    body = data[len(MAGIC) + 32 :]
    if not data.startswith(MAGIC) or len(data) > MAX_BYTES or hashlib.sha256(body).digest() != data[len(MAGIC) : len(MAGIC) + 32]:
        raise ConfigError("corrections of a learned router: damaged, too large, or something else", hint="begin a new history")
    try:
        made_for, limits, versions = msgspec.msgpack.decode(body, type=tuple[str, Limits, tuple[Version, ...]])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"corrections of a learned router: {str(error)[:200]}", hint="begin a new history") from None
    if made_for != base.id:
        raise ConfigError(f"corrections of the learned router {made_for[:40]}, this one is {base.id}", hint="begin a new history")
    if len(versions) > MAX_VERSIONS or [version.number for version in versions] != list(range(1, len(versions) + 1)):
        raise ConfigError("corrections of a learned router: its versions are not in order", hint="begin a new history")
    for version in versions:
        total = np.frombuffer(version.total, dtype="<f8") if len(version.total) == _SIZE else np.array([np.nan])
        if not (np.abs(total) <= limits.drift + 1e-9).all() or _length(total.reshape(-1, 2)) > limits.drift + 1e-9:
            raise ConfigError(f"corrections of a learned router: version {version.number} is out of its limits", hint="begin a new history")
    return History(base, limits, versions)


def _followed(history: History, total: Floats, when: str, what: str, error: float) -> History:
    if history.number >= MAX_VERSIONS:
        raise InvalidRequest(f"{MAX_VERSIONS} versions are kept at most", hint="train again, on the new outcomes too")
    version = Version(history.number + 1, when, what, error, _length(total), total.astype("<f8").tobytes())
    return replace(history, versions=(*history.versions, version))


def _total(history: History, number: int) -> Floats:
    """[WAVES + 1, 2], a copy."""
    if number == 0:
        return np.zeros((WAVES + 1, 2))
    return np.frombuffer(history.versions[number - 1].total, dtype="<f8").reshape(-1, 2).astype(np.float64)


def _length(total: Floats) -> float:
    """The longer of the two sides'."""
    return float(np.linalg.norm(total, axis=0).max())
