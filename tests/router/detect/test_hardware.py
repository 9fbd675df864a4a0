"""Network cards and purses. The Bitcoin addresses are made here, from made-up bytes."""

import hashlib

import pytest
from hybrid.router.detect.hardware import find_macs, find_wallets
from hybrid.router.detect.scan import Scan

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58(version: int, payload: bytes) -> str:
    """Version, 20 bytes, and the first four bytes of their double SHA-256, in base 58; leading zero bytes are ones."""
    data = bytes([version]) + payload
    data += hashlib.sha256(hashlib.sha256(data).digest()).digest()[:4]
    value, text = int.from_bytes(data), ""
    while value:
        value, digit = divmod(value, 58)
        text = ALPHABET[digit] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


OLD, SHARED = base58(0, bytes(range(50, 70))), base58(5, bytes(range(60, 80)))


@pytest.mark.parametrize("text", [OLD, f"send it to {SHARED}.", "0x" + "aB3" * 13 + "c"])
def test_an_address_of_a_purse_is_found(text: str) -> None:
    (one,) = find_wallets(Scan(text))
    assert text[one.start : one.end] in (OLD, SHARED, text)


@pytest.mark.parametrize("text", [OLD[:-1] + ("2" if OLD[-1] != "2" else "3"), f"A{OLD}", "0x" + "a" * 39, "0x" + "a" * 64, "1" * 30])
def test_what_fails_its_check_or_is_longer_is_none(text: str) -> None:
    assert find_wallets(Scan(text)) == []


@pytest.mark.parametrize("text", ["00:1b:44:11:3a:b7", "00-1B-44-11-3A-B7", "card 00:1b:44:11:3a:b7, up"])
def test_the_address_of_a_network_card_is_found(text: str) -> None:
    (one,) = find_macs(Scan(text))
    assert text[one.start : one.end].lower().replace("-", ":") == "00:1b:44:11:3a:b7"


@pytest.mark.parametrize(
    "text",
    [
        "00:00:00:00:00:00",
        "ff:ff:ff:ff:ff:ff",
        "00:1b:44:11:3a",
        "00:1b:44:11:3a:b7:11",
        "00:1b-44:11-3a:b7",
        "a00:1b:44:11:3a:b7",
        "12:30:45 to 12:31:45",
    ],
)
def test_broadcasts_times_and_longer_runs_are_none(text: str) -> None:
    assert find_macs(Scan(text)) == []
