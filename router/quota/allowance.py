"""Tokens that a device may use while the quota's store is away: granted beforehand, signed, and paid back when it returns.

    authority   sign_grant(Grant)                           ──► device
    device      AllowanceBook: spend, settle, receipt()     ──► authority: Quotas.settle_receipt

A receipt tells all that was ever used of one grant, so handing it in twice charges once. The book's file remembers the latest time it has
seen: a clock that is set back neither revives an expired grant nor refills one. Grants do not refill at all. HMAC-SHA-256 signs grants,
receipts and the book; that a file was put back to an older state, or removed, no software on the device can see.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
from pathlib import Path
from typing import TypeVar

import msgspec

from ...shared_protocol.errors import PermissionDenied
from ...shared_protocol.whole_file import replace_whole

S = TypeVar("S", bound=msgspec.Struct)
MIN_KEY = 16  # bytes


class InvalidAllowance(PermissionDenied):
    """A grant, receipt or book whose signature does not hold, or that is of another kind."""

    code = "invalid_allowance"


class Grant(msgspec.Struct, frozen=True, tag="grant", forbid_unknown_fields=True):
    """Times are seconds since 1970, of the authority's clock."""

    id: str
    user: str
    tenant: str | None
    tokens: int
    issued: float
    expires: float


class Receipt(msgspec.Struct, frozen=True, tag="receipt", forbid_unknown_fields=True):
    """All that was used of a grant so far."""

    grant: Grant
    used: int


class _Book(msgspec.Struct, tag="book", forbid_unknown_fields=True):
    grant_id: str
    used: int = 0  # reserved tokens count as used until they are settled
    at: float = 0.0  # the latest time seen


def sign(value: Grant | Receipt | _Book, key: bytes) -> str:
    """PAYLOAD.MAC, both base64url. Raises InvalidAllowance for a key that is too short to mean anything."""
    if len(key) < MIN_KEY:
        raise InvalidAllowance(f"an allowance's key needs at least {MIN_KEY} bytes, found {len(key)}")
    payload = msgspec.json.encode(value)
    return f"{_text(payload)}.{_text(hmac.digest(key, payload, hashlib.sha256))}"


def sign_grant(grant: Grant, key: bytes) -> str:
    """What a device is given. Raises InvalidAllowance for a key that is too short."""
    return sign(grant, key)


def read_receipt(text: str, key: bytes) -> Receipt:
    """What `AllowanceBook.receipt` wrote, for `Quotas.settle_receipt`. Raises InvalidAllowance."""
    return read_signed(text, Receipt, key)


def read_signed(text: str, kind: type[S], key: bytes) -> S:
    """Raises InvalidAllowance, without a word of what it was given."""
    try:
        payload, mac = (base64.urlsafe_b64decode(part) for part in text.split("."))
        if hmac.compare_digest(mac, hmac.digest(key, payload, hashlib.sha256)):
            return msgspec.json.decode(payload, type=kind)
    except (ValueError, msgspec.DecodeError):
        pass
    raise InvalidAllowance(f"this is no {kind.__name__.strip('_').lower()} signed with this key", hint="ask for a new one") from None


class AllowanceBook:
    """One grant on one device, in a small file. Thread-safe; `now` is wall time in seconds since 1970."""

    def __init__(self, path: str | Path, grant: str, key: bytes) -> None:
        """Raises InvalidAllowance for a grant or a book that was tampered with."""
        self.grant = read_signed(grant, Grant, key)
        self._path = Path(path)
        self._key = key
        self._lock = threading.Lock()
        self._book = self._read()

    def covers(self, user: str, tenant: str | None) -> bool:
        return (user, tenant) == (self.grant.user, self.grant.tenant)

    @property
    def used(self) -> int:
        return self._book.used

    def left(self, now: float) -> int:
        """Tokens; 0 once it has expired, for good."""
        with self._lock:
            return self._left(now)

    def spend(self, tokens: int, now: float) -> bool:
        """Take `tokens`, on disk before it returns. False, and nothing is taken, when there are not as many or the disk fails."""
        with self._lock:
            if tokens > self._left(now):
                self._save()  # the time, at least
                return False
            self._book.used += tokens
            if not self._save():
                self._book.used -= tokens
                return False
            return True

    def settle(self, reserved: int, used: int) -> None:
        """Give back what was not used of a `spend`; whoever dies before has used it all."""
        with self._lock:
            self._book.used += used - reserved
            self._save()

    def receipt(self) -> str:
        with self._lock:
            return sign(Receipt(self.grant, self._book.used), self._key)

    def _left(self, now: float) -> int:
        self._book.at = max(self._book.at, now)
        return max(0, self.grant.tokens - self._book.used) if self._book.at < self.grant.expires else 0

    def _read(self) -> _Book:
        try:
            book = read_signed(self._path.read_text("ascii"), _Book, self._key)
        except FileNotFoundError:
            book = _Book(self.grant.id)
        except (OSError, UnicodeDecodeError):
            raise InvalidAllowance("the allowance's book cannot be read", hint="it is a file of this client's own") from None
        if book.grant_id != self.grant.id:  # a new grant; the old one's time stays
            book = _Book(self.grant.id, at=book.at)
        book.at = max(book.at, self.grant.issued)
        return book

    def _save(self) -> bool:
        try:
            replace_whole(self._path, sign(self._book, self._key).encode("ascii"), mode=0o600, durable=True)
            return True
        except OSError:
            return False


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()
