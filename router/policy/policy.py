"""What the owner of a deployment has decided: thresholds and verdicts, frozen, with a hash that every decision carries.

Its tables are in `tables.py`, their defaults in `default.toml`.
"""

from __future__ import annotations

import hashlib
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from ...shared_protocol.bounded_file import read_at_most
from ...shared_protocol.errors import ConfigError, HybridError
from .policy_file import Tables, line_of_rule, overlay, parse
from .rule import Rule
from .tables import (
    CascadePolicy,
    ComplexityPolicy,
    ConfidencePolicy,
    EdgePolicy,
    FallbackPolicy,
    LearnedPolicy,
    PricePolicy,
    PrivacyPolicy,
    QuotaPolicy,
    SpeculationPolicy,
)

if TYPE_CHECKING:
    from ..learned.model import Model
    from .rules import CompiledRule, Where

MAX_BYTES = 2**20  # of a policy's file ...
MAX_GATE = 2**24  # ... and of a gate's
PRESET = "preset:"  # what the name of a policy that ships begins with, where a path may stand


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A complete, checked policy. Two policies of equal values have equal hashes, however they are written."""

    privacy: PrivacyPolicy
    complexity: ComplexityPolicy
    learned: LearnedPolicy
    confidence: ConfidencePolicy
    cascade: CascadePolicy
    quota: QuotaPolicy
    price: PricePolicy
    fallback: FallbackPolicy
    edge: EdgePolicy
    speculation: SpeculationPolicy
    rules: Annotated[tuple[Rule, ...], Meta(description="Asked in order of priority, then of the file.")] = msgspec.field(
        name="rule", default=()
    )
    version: Annotated[str, Meta(max_length=64, description="The owner's own name for it; every decision carries it.")] = ""

    def __post_init__(self) -> None:
        """Compile the rules and read the files that it names; raises ConfigError for one that is wrong."""
        if self.rules:
            _ = self.compiled_rules
        _ = self.learned_router
        _ = self.gate_hash

    @staticmethod
    def default() -> Policy:
        """The policy of `default.toml`."""
        return _default()

    @staticmethod
    def load(path: str | Path) -> Policy:
        """Read a policy file, or "preset:NAME"; what it leaves out keeps its default. Raises ConfigError naming file, line and key."""
        if str(path).startswith(PRESET):
            return _preset(str(path).removeprefix(PRESET))
        try:
            text = read_at_most(path, MAX_BYTES).decode("utf-8")
        except OSError as error:
            raise ConfigError(f"policy {path}: {error.strerror or error}", hint="name a readable TOML file") from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"policy {path}: not UTF-8 at byte {error.start}", hint="save it as UTF-8") from None
        return Policy.parse(text, source=str(path), folder=Path(path).parent)

    @staticmethod
    def parse(text: str, source: str = "policy", folder: Path | None = None) -> Policy:
        """A policy from the text of a file: `Policy.parse('[speculation]\\nmode = "always"')`. Raises ConfigError.

        Files that it names are looked for in `folder`; None: in the current one.
        """
        tables = overlay(default_tables(), parse(text, source, Policy), text, source)
        for table, key in (("learned", "model"), ("confidence", "gate")):
            if folder is not None and tables[table][key]:
                tables[table] = {**tables[table], key: str(folder / tables[table][key])}
        if "rule" in tables:  # first by themselves, where an error knows the line
            _compile(msgspec.convert(tables["rule"], tuple[Rule, ...]), lambda n, key: f"{source}:{line_of_rule(text, n, key)}")
        return msgspec.convert(tables, Policy)

    @cached_property
    def hash(self) -> str:
        """First 16 hex digits of SHA-256 over the canonical values; of files that it names, over what is in them. The version, a mere
        name, is not one of them."""
        values: dict[str, Any] = msgspec.to_builtins(self)
        values.pop("version")
        if self.learned_router is not None:
            values["learned"]["model"] = self.learned_router.id
        values["confidence"]["gate"] = self.gate_hash
        return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()[:16]

    @cached_property
    def learned_router(self) -> Model | None:
        """Imported late: it needs NumPy."""
        if not self.learned.model:
            return None
        from ..learned.store import load

        try:
            return load(self.learned.model)
        except HybridError as error:
            raise ConfigError(f"learned.model: {error.message}", param="learned.model", hint=error.hint) from None

    @cached_property
    def gate_hash(self) -> str:
        """SHA-256 of the gate's file; "" where none is named. Whether it fits is known once the device's model is: one that cannot be
        read is no wrong policy, and goes by its name."""
        if not self.confidence.gate:
            return ""
        path = Path(self.confidence.gate)
        try:
            return hashlib.sha256(read_at_most(path, MAX_GATE)).hexdigest()
        except OSError:
            return path.name

    @cached_property
    def compiled_rules(self) -> tuple[CompiledRule, ...]:
        """The rules in the order in which they are asked."""
        return _compile(self.rules) if self.rules else ()


def _compile(rules: tuple[Rule, ...], where: Where | None = None) -> tuple[CompiledRule, ...]:
    """Imported late: conditions look at requests, whose module knows the policy."""
    from .rules import compile_rules

    return compile_rules(rules, where) if where is not None else compile_rules(rules)


@cache
def default_tables() -> Tables:
    """What `default.toml` says. Read only."""
    text = (files(__package__) / "default.toml").read_text(encoding="utf-8")
    return parse(text, "default.toml", Policy)


@cache
def _default() -> Policy:
    return msgspec.convert(default_tables(), Policy)


def presets() -> dict[str, str]:
    """The text of each policy that ships, by its name."""
    found = (file for file in _presets().iterdir() if file.name.endswith(".toml"))
    return {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in sorted(found, key=lambda file: file.name)}


def preset_path(name: str) -> Traversable:
    """Where the file of a preset is."""
    return _presets() / f"{name}.toml"


def _presets() -> Traversable:
    return files(__package__) / "presets"


@cache
def _preset(name: str) -> Policy:
    known = presets()
    if name not in known:
        raise ConfigError(f"policy {PRESET}{name[:60]}: there is no such preset", hint="there are " + ", ".join(known))
    return Policy.parse(known[name], f"{PRESET}{name}")
