"""Chips that come with the product, and chips of your own: one TOML file each.

A number stands bare, or as `{ value = 8192, source = "...", kind = "measured" }` where it is not from the file's own source. A table may
have a `source` and a `kind` for all in it. Every key must be known: a misspelt one would leave another number in force without a word.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from ..shared_protocol.errors import ConfigError
from .spec import KINDS, MEMORY, Array, Energy, Kind, Memory, Provenance, Spec

LARGEST_FILE = 1 << 20  # bytes
TABLES: dict[str, tuple[str, ...]] = {
    "array": ("rows", "cols", "dataflows"),
    "sram": MEMORY,
    "dram": MEMORY,
    "energy": ("pj_per_mac", "pj_per_sram_byte", "pj_per_dram_byte"),
}
PLAIN = ("clock_hz", "vector_lanes", "weight_formats", "alignment", "launch_cycles")
SAID = ("source", "kind")


def preset_names() -> list[str]:
    return sorted(entry.name.removesuffix(".toml") for entry in files(f"{__package__}.presets").iterdir() if entry.name.endswith(".toml"))


def load_preset(name_or_path: str | Path) -> Spec:
    """The chip of that name, or of a TOML file (anything that ends in .toml).

    Raises ConfigError: no such preset (near names are said), a file that cannot be read, a key unknown or missing, a number no chip has.
    """
    if str(name_or_path).endswith(".toml"):
        path = Path(name_or_path)
        try:
            if path.exists() and not path.is_file():
                raise ValueError("it is no file")  # a pipe would be waited for
            with path.open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read the preset {path}: {getattr(error, 'strerror', None) or error}", param="target") from None
        if len(content) > LARGEST_FILE:
            raise ConfigError(f"{path} is larger than {LARGEST_FILE} bytes: not a preset", param="target")
        return parse_preset(content, name=path.stem, where=str(path))
    known = preset_names()
    if name_or_path not in known:
        from difflib import get_close_matches

        near = get_close_matches(str(name_or_path), known, 3, 0.5)
        hint = (f"did you mean {' or '.join(near)}? " if near else "") + f"known: {', '.join(known)}; or the path of a .toml file"
        raise ConfigError(f"there is no preset named {str(name_or_path)[:80]!r}", param="target", hint=hint)
    return parse_preset(
        (files(f"{__package__}.presets") / f"{name_or_path}.toml").read_bytes(), name=str(name_or_path), where=f"preset {name_or_path}"
    )


def parse_preset(content: bytes, *, name: str, where: str) -> Spec:
    """A chip from a file's bytes; `where` is what an error calls the file."""
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError alone
        raise ConfigError(f"{where}: not TOML: {error}") from None
    try:
        return _spec(document, name)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", param=error.param, hint=error.hint) from None


def _spec(document: Mapping[str, Any], name: str) -> Spec:
    _known_keys(document, (*PLAIN, *SAID, *TABLES), "")
    provenance: list[Provenance] = []
    plain = _values(document, PLAIN, "", provenance)
    tables: dict[str, dict[str, Any]] = {}
    for table, keys in TABLES.items():
        entries = document.get(table)
        if not isinstance(entries, dict):
            raise ConfigError(f"[{table}] is missing", param=table, hint=f"it holds {', '.join(keys)}")
        _known_keys(entries, (*keys, *SAID), f"{table}.")
        if any(key in entries for key in SAID):
            provenance.append(_said(entries, table))
        tables[table] = _values(entries, keys, f"{table}.", provenance)
    chip = _said(document, "")
    dataflows = _words(tables["array"].pop("dataflows"), "array.dataflows")
    formats = _words(plain.pop("weight_formats"), "weight_formats")
    return Spec(
        name=name,
        array=Array(**tables["array"], dataflows=cast(Any, dataflows)),
        sram=Memory("sram", **tables["sram"]),
        dram=Memory("dram", **tables["dram"]),
        energy=Energy(**tables["energy"]),
        weight_formats=formats,
        source=chip.source,
        kind=chip.kind,
        provenance=tuple(provenance),
        **plain,
    )


def _values(entries: Mapping[str, Any], keys: tuple[str, ...], prefix: str, provenance: list[Provenance]) -> dict[str, Any]:
    """The value of every key, all of which must be there; who says so goes to `provenance`."""
    found = {}
    for key in keys:
        dotted = prefix + key
        if key not in entries:
            raise ConfigError(f"{dotted} is missing", param=dotted)
        value = entries[key]
        if isinstance(value, dict):
            _known_keys(value, ("value", *SAID), f"{dotted}.")
            if "value" not in value:
                raise ConfigError(f"{dotted}.value is missing", param=f"{dotted}.value")
            provenance.append(_said(value, dotted))
            value = value["value"]
        found[key] = value
    return found


def _said(entries: Mapping[str, Any], key: str) -> Provenance:
    for part in SAID:
        dotted = f"{key}.{part}".lstrip(".")
        if not isinstance(entries.get(part), str):
            wanted = f"one of {', '.join(KINDS)}" if part == "kind" else "where the numbers are from, as a text"
            raise ConfigError(f"{dotted} is missing" if part not in entries else f"{dotted} must be a text", param=dotted, hint=wanted)
    return Provenance(key, entries["source"], cast(Kind, entries["kind"]))


def _words(value: Any, dotted: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ConfigError(f"{dotted} must be a list of texts", param=dotted)
    return tuple(value)


def _known_keys(entries: Mapping[str, Any], known: tuple[str, ...], prefix: str) -> None:
    for key in entries:
        if key not in known:
            from difflib import get_close_matches

            shown = key if key.isprintable() and len(key) <= 60 else repr(key[:60])
            near = get_close_matches(key[:60], known, 1)
            hint = (f"did you mean {prefix}{near[0]}? " if near else "") + f"known: {', '.join(known)}"
            raise ConfigError(f"unknown key {prefix}{shown}", param=f"{prefix}{shown}", hint=hint)
