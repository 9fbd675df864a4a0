"""A ticket stands for every claim it was issued for, and for nothing else."""

import hashlib
import hmac
from dataclasses import replace

import msgspec
import pytest
from hybrid.shared_protocol.errors import ConfigError
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.ticket import Claims, check, issue, ticket_secret

SECRET = b"0123456789abcdef"
CLAIMS = Claims("key", "model", "avx2-1", 7, SamplingParams(temperature=0.8, stop=("a",)), 10, 20, b"h" * 16, 2_000)
OTHER = {
    "key_id": "other",
    "model_hash": "other",
    "kernel_id": "avx2-2",
    "seed": 8,
    "sampling": SamplingParams(temperature=0.8, stop=("b",)),
    "prompt_len": 11,
    "committed_len": 21,
    "prefix_hash": b"i" * 16,
    "expiry": 2_001,
}


def test_a_ticket_is_sixteen_bytes_of_an_hmac() -> None:
    ticket = issue(SECRET, CLAIMS)
    fields = ["hybrid-ticket-1", "key", "model", "avx2-1", 7, CLAIMS.sampling, 10, 20, b"h" * 16, 2_000]
    assert ticket == hmac.new(SECRET, msgspec.msgpack.encode(fields), hashlib.sha256).digest()[:16]
    assert check(SECRET, CLAIMS, ticket, now=1_999.9)


@pytest.mark.parametrize("name", OTHER)
def test_a_ticket_does_not_stand_for_another(name: str) -> None:
    assert not check(SECRET, replace(CLAIMS, **{name: OTHER[name]}), issue(SECRET, CLAIMS), now=1_000)


def test_a_ticket_ends_at_its_expiry_and_under_another_secret() -> None:
    ticket = issue(SECRET, CLAIMS)
    assert not check(SECRET, CLAIMS, ticket, now=2_000)
    assert not check(b"another secret!!", CLAIMS, ticket, now=1_000)
    assert not check(SECRET, CLAIMS, ticket[:15], now=1_000)


def test_one_meaning_has_one_ticket() -> None:
    whole, fraction = (replace(CLAIMS, sampling=SamplingParams(temperature=t, top_p=1)) for t in (1, 1.0))
    assert issue(SECRET, whole) == issue(SECRET, fraction)


def test_the_secret_comes_from_the_environment_or_from_chance() -> None:
    assert ticket_secret({"HYBRID_TICKET_SECRET": "x" * 16}) == b"x" * 16
    assert ticket_secret({}) != ticket_secret({}) and len(ticket_secret({})) == 32
    with pytest.raises(ConfigError, match="HYBRID_TICKET_SECRET"):
        ticket_secret({"HYBRID_TICKET_SECRET": "short"})
