"""What the owner of a deployment has decided: thresholds and verdicts, frozen, with a hash that every decision carries.

`default.toml` documents every key and holds its default; `policy_file.py` checks what a file says.
"""

from __future__ import annotations

import hashlib
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

from ..shared_protocol.errors import ConfigError
from .policy_file import Tables, overlay, parse
from .verdict import Verdict


class PrivacyPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict of each kind of finding. None is `redact`: that is not served yet, and refused at load."""

    email: Verdict
    phone: Verdict
    card: Verdict
    iban: Verdict
    ip: Verdict
    secret: Verdict
    topic: Verdict
    unreadable: Verdict  # local_only or block: what no detector could judge fails closed
    topic_words: tuple[str, ...]
    max_characters: int
    too_hard_from: float  # 0..1


class ComplexityPolicy(msgspec.Struct, frozen=True, kw_only=True):
    cascade_from: float  # 0..1
    hard_from: float  # cascade_from..1


class ConfidencePolicy(msgspec.Struct, frozen=True, kw_only=True):
    threshold: float  # 0..1
    quantile: float  # 0..1
    quantile_weight: float  # 0..1


class QuotaPolicy(msgspec.Struct, frozen=True, kw_only=True):
    capacity: int  # tokens; 0 lets nothing through
    refill_per_s: float  # tokens per second
    assumed_output: int  # tokens
    on_exhausted: Literal["degrade", "refuse"]


class EdgePolicy(msgspec.Struct, frozen=True, kw_only=True):
    min_battery: float  # 0..1
    min_thermal_headroom: float  # 0..1
    max_prompt_tokens: int


class SpeculationPolicy(msgspec.Struct, frozen=True, kw_only=True):
    mode: Literal["auto", "always", "off"]
    draft_below: float  # 0..1
    max_draft: int  # tokens, 1..64
    min_gain: float  # ratio, 1 or more


class Policy(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A complete, checked policy. Two policies of equal values have equal hashes, however they are written."""

    privacy: PrivacyPolicy
    complexity: ComplexityPolicy
    confidence: ConfidencePolicy
    quota: QuotaPolicy
    edge: EdgePolicy
    speculation: SpeculationPolicy

    @staticmethod
    def default() -> Policy:
        """The policy of `default.toml`."""
        return _default()

    @staticmethod
    def load(path: str | Path) -> Policy:
        """Read a policy file; what it leaves out keeps its default. Raises ConfigError naming file, line and key."""
        try:
            text = Path(path).read_bytes().decode("utf-8")
        except OSError as error:
            raise ConfigError(f"policy {path}: {error.strerror or error}", hint="name a readable TOML file") from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"policy {path}: not UTF-8 at byte {error.start}", hint="save it as UTF-8") from None
        return Policy.parse(text, source=str(path))

    @staticmethod
    def parse(text: str, source: str = "policy") -> Policy:
        """A policy from the text of a file: `Policy.parse('[speculation]\\nmode = "always"')`. Raises ConfigError."""
        return msgspec.convert(overlay(_default_tables(), parse(text, source), text, source), Policy)

    @cached_property
    def hash(self) -> str:
        """First 16 hex digits of SHA-256 over the canonical values."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]


@cache
def _default_tables() -> Tables:
    text = (files(__package__) / "default.toml").read_text(encoding="utf-8")
    return parse(text, "default.toml")


@cache
def _default() -> Policy:
    return msgspec.convert(_default_tables(), Policy)
