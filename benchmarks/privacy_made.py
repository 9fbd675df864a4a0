"""Values and texts made for the measurement of privacy: check digits by rules written out here, everything from a seed.

Nothing here uses the product's detectors or their libraries, so that an error in those is not measured against itself.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise

Make = Callable[[random.Random], str]
SENTENCES = ("It is {} as far as I know.", "Please use {}, thanks", "{}", "Value: {}.", "we got ({}) yesterday", "Bitte {} verwenden.")


def digits(source: random.Random, count: int) -> str:
    return "".join(source.choice("0123456789") for _ in range(count))


def card(source: random.Random) -> str:
    """Of four schemes, in one piece, in groups, or with hyphens."""
    begins, length = source.choice((("4", 16), ("51", 16), ("37", 15), ("6011", 16)))
    number = begins + digits(source, length - len(begins) - 1)
    doubled = (int(d) * (2 if at % 2 == 0 else 1) for at, d in enumerate(reversed(number)))
    number += str(-sum(d // 10 + d % 10 for d in doubled) % 10)
    mark = source.choice(("", " ", "-"))
    cuts = (0, 4, 10, 15) if length == 15 else (0, 4, 8, 12, 16)
    return mark.join(number[a:b] for a, b in pairwise(cuts))


def iban(source: random.Random) -> str:
    shapes = {"DE": "9" * 18, "GB": "AAAA" + "9" * 14, "FR": "9" * 23, "NL": "AAAA" + "9" * 10, "ES": "9" * 20}
    country = source.choice(list(shapes))
    account = "".join(source.choice("ABCDEFGHJKLMNPRSTUVWXYZ") if c == "A" else source.choice("0123456789") for c in shapes[country])
    check = 98 - int("".join(str(int(c, 36)) for c in f"{account}{country}00")) % 97
    written = f"{country}{check:02}{account}"
    return written if source.random() < 0.5 else " ".join(written[at : at + 4] for at in range(0, len(written), 4))


def email(source: random.Random) -> str:
    name = source.choice(("anna", "j.smith", "li_wei", "o'neill", "max+news", "info", "x"))
    return f"{name}{digits(source, 2)}@{source.choice(('example.com', 'mail.example.org', 'firma.example.de', 'a-b.example.co.uk'))}"


def ip(source: random.Random) -> str:
    if source.random() < 0.3:
        return ":".join(f"{source.randrange(1, 65536):x}" for _ in range(8))
    return f"{source.randrange(1, 127)}.{source.randrange(256)}.{source.randrange(256)}.{source.randrange(1, 255)}"


def url(source: random.Random) -> str:
    host = source.choice(("example.com", "www.example.org", "docs.example.net", "example.co.uk", "xn--bcher-kva.example"))
    path = source.choice(("", "/", "/a/b.html", "/wiki/A_(b)", "/s?q=1&r=x%20y#top", ":8080/x"))
    return source.choice(("https://", "http://", "ftp://")) + host + path


def ssn(source: random.Random) -> str:
    mark = source.choice("- .")
    area = source.choice([number for number in range(1, 900) if number != 666])
    return f"{area:03}{mark}{source.randrange(1, 100):02}{mark}{source.randrange(1, 10000):04}"


VALUES: dict[str, Make] = {"card": card, "iban": iban, "email": email, "ip": ip, "url": url, "ssn": ssn}


def _moment(source: random.Random) -> datetime:
    return datetime.fromtimestamp(source.randrange(2 * 10**9), UTC)


HARMLESS: dict[str, Make] = {
    "guid": lambda source: str(uuid.UUID(int=source.getrandbits(128), version=4)),
    "guid, capitals": lambda source: str(uuid.UUID(int=source.getrandbits(128), version=4)).upper(),
    "timestamp, seconds": lambda source: str(source.randrange(10**9, 2 * 10**9)),
    "timestamp, milliseconds": lambda source: str(source.randrange(10**12, 2 * 10**12)),
    "timestamp, nanoseconds": lambda source: str(source.randrange(10**18, 2 * 10**18)),
    "timestamp, of a log": lambda source: f"[{_moment(source):%d/%b/%Y:%H:%M:%S +0000}]",
    "timestamp, ISO": lambda source: _moment(source).isoformat(),
    "timestamp, plain": lambda source: f"{_moment(source):%Y-%m-%d %H:%M:%S}",
    "timestamp, German": lambda source: f"{_moment(source):%d.%m.%Y %H:%M}",
    "ten digits": lambda source: digits(source, 10),
    "order, 8 to 12 digits": lambda source: digits(source, source.randrange(8, 13)),
    "order, year and number": lambda source: f"ORD-{source.randrange(2010, 2030)}-{digits(source, 6)}",
    "order, 3-7-7": lambda source: f"{source.randrange(100, 1000)}-{digits(source, 7)}-{digits(source, 7)}",
    "order, letters": lambda source: f"SO{digits(source, 8)}",
    "decimal": lambda source: f"{source.randrange(1000)}.{digits(source, source.randrange(5, 12))}",
    "coordinates": lambda source: f"{source.uniform(-90, 90):.6f}, {source.uniform(-180, 180):.6f}",
    "range of years": lambda source: f"{source.randrange(1900, 2000)}-{source.randrange(2000, 2030)}",
    "book number": lambda source: f"978-{digits(source, 1)}-{digits(source, 2)}-{digits(source, 6)}-{digits(source, 1)}",
    "two numbers": lambda source: f"{source.randrange(100, 10000)} {source.randrange(100, 10000)}",
    "four numbers": lambda source: " ".join(str(source.randrange(10, 1000)) for _ in range(4)),
    "hash": lambda source: f"{source.getrandbits(160):040x}",
    "version": lambda source: f"v{source.randrange(20)}.{source.randrange(40)}.{source.randrange(200)}",
    "amount": lambda source: f"{source.randrange(1, 1000)},{digits(source, 3)},{digits(source, 3)}.{digits(source, 2)}",
}
HARMLESS_SENTENCES = ("The id is {}.", "Order number: {}", "It was {} and nothing else.", "Please look at {} again, thanks")

# How a ten-digit number may stand in a text, from nothing to a word for telephones.
EVIDENCE: dict[str, Callable[[str], str]] = {
    "bare": lambda number: f"It is {number} here.",
    "bare, after a word for orders": lambda number: f"Order number {number}.",
    "groups of 3-3-4": lambda number: f"It is {number[:3]}-{number[3:6]}-{number[6:]} here.",
    "groups of 2": lambda number: f"It is {' '.join(number[at : at + 2] for at in range(0, 10, 2))} here.",
    "+ and a country": lambda number: f"It is +1{number} here.",
    "after a word for telephones": lambda number: f"Call me at {number}.",
}
