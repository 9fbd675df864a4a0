"""Whose request it is, what it takes of the cloud, and which report of that is believed."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Literal

from ...shared_protocol.errors import InvalidRequest

ABSURD = 100  # a report of so many times what was reserved is no report: a tokenizer, at its worst, is wrong by a factor of a few


class InvalidUse(InvalidRequest):
    """A report of what cannot have been used: negative, infinite, or no number."""

    code = "invalid_use"


@dataclass(frozen=True, slots=True)
class Account:
    """Who asks, and for which model (None: the cloud's own choice). A user of one tenant is not a user of the same name of another."""

    user: str
    tenant: str | None = None
    model: str | None = None

    def bucket(self, level: str) -> str:
        """The key of this account's bucket of a level; names are not kept, only their hashes."""
        tenant = "" if self.tenant is None else f"t{self.tenant}"
        name = {"tenant": tenant, "model": self.model or ""}.get(level, f"{tenant}\0{self.user}")
        return f"{level}:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class Use:
    """What a request takes, or took, of the cloud. Raises InvalidUse for what cannot be."""

    tokens: int = 0  # of prompts and of answers, computed for this request
    money: float | None = 0.0  # their price; None: not known
    rejected: int = 0  # tokens that the device drafted and the cloud computed and did not keep

    def __post_init__(self) -> None:
        for name, value in (("tokens", self.tokens), ("money", self.money or 0.0), ("rejected", self.rejected)):
            if not 0 <= value < math.inf:
                raise InvalidUse(f"nobody uses {value} {name}", param=name, hint="a use is 0 or more; leave out what is not known")


@dataclass(frozen=True, slots=True)
class Hold:
    """An open reservation, in the ledger; of the offline allowance; or of nothing at all, when the policy admits without a store."""

    name: str
    account: Account
    source: Literal["ledger", "allowance", "free"]
    reserved: Use


def believed(hold: Hold, use: Use) -> Use:
    """`use`, or what was reserved, where `use` is ABSURD times that: nobody is put in debt for years by one wrong number.

    `rejected` is drafted here, and no more than ABSURD times what was reserved either.
    """
    most = ABSURD * max(1, hold.reserved.tokens)
    if use.tokens <= most and use.rejected <= most:
        return use
    return replace(hold.reserved, rejected=min(use.rejected, most))
