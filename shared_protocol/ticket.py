"""Tickets: what a cloud signed about a session, so that another replica can take it up and no device can invent a prefix."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from .errors import ConfigError
from .sampling import SamplingParams

TICKET_BYTES = 16
SECRET_VARIABLE = "HYBRID_TICKET_SECRET"
MIN_SECRET = 16  # characters


@dataclass(frozen=True, slots=True)
class Claims:
    """Everything that decides how a session goes on, and where it stands."""

    key_id: str
    model_hash: str  # SHA-256 of the model's file, hex
    kernel_id: str
    seed: int
    sampling: SamplingParams  # max_tokens and stops included
    prompt_len: int
    committed_len: int
    prefix_hash: bytes  # of the committed tokens
    expiry: int  # seconds of Unix time


def issue(secret: bytes, claims: Claims) -> bytes:
    """HMAC-SHA-256 over the claims, cut to 16 bytes."""
    return hmac.digest(secret, _canonical(claims), hashlib.sha256)[:TICKET_BYTES]


def check(secret: bytes, claims: Claims, ticket: bytes, now: float) -> bool:
    """Whether `ticket` was issued for exactly these claims and has not expired. Takes as long for a wrong ticket as for a right one."""
    return hmac.compare_digest(issue(secret, claims), ticket) and now < claims.expiry


def ticket_secret(environment: Mapping[str, str]) -> bytes:
    """HYBRID_TICKET_SECRET, else random for this process: sessions then cannot move to another one."""
    found = environment.get(SECRET_VARIABLE)
    if not found:
        return secrets.token_bytes(32)
    if len(found) < MIN_SECRET:
        raise ConfigError(f"{SECRET_VARIABLE} has {len(found)} characters, at least {MIN_SECRET} are needed", hint="use random ones")
    return found.encode()


def _canonical(claims: Claims) -> bytes:
    """One byte string per meaning: a temperature given as 1 is the same as 1.0."""
    sampling = msgspec.convert(msgspec.to_builtins(claims.sampling), SamplingParams)
    fields = (
        "hybrid-ticket-1",
        claims.key_id,
        claims.model_hash,
        claims.kernel_id,
        claims.seed,
        sampling,
        claims.prompt_len,
        claims.committed_len,
        claims.prefix_hash,
        claims.expiry,
    )
    return msgspec.msgpack.encode(fields)
