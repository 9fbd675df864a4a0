"""A learned router as a file: plain numbers behind a digest, read without trust.

    magic | SHA-256 of the rest, 32 bytes | MessagePack of `_File`: what it is, then every array as little-endian float32

No pickle and no archive: the size of everything is known before anything is read, so that no file can make memory explode.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from ...shared_protocol.errors import ConfigError, NotFound
from ...shared_protocol.whole_file import write_whole
from ..calibration import Calibration
from .hashed import CLOSING, OPENING, TERM, Floats
from .model import RANKS, WAVES, About, Model
from .traits import HEAD, TAIL, TRAITS

MAGIC = b"hybrid learned router 1\n"
MAX_BYTES = 8_000_000
MAX_BUCKETS = 65_536
DATE = re.compile(r"[0-9]{4}-[0-1][0-9]-[0-3][0-9]")
_HINT = "train it again: hybrid route train"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    features: str
    about: About
    buckets: int
    edge: Calibration
    cloud: Calibration
    arrays: dict[str, bytes]


def feature_hash() -> str:
    """16 hex digits over what a prompt is turned into: a router trained for other features cannot be read by these."""
    said = ["traits 1", *(trait.name for trait in TRAITS), TERM.pattern, *map(str, (HEAD, TAIL, OPENING, CLOSING))]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def to_bytes(model: Model) -> bytes:
    """The same model gives the same bytes."""
    shapes = _shapes(len(model.idf))
    arrays = {name: np.ascontiguousarray(getattr(model, name), dtype="<f4").tobytes() for name in shapes}
    file = _File(feature_hash(), model.about, len(model.idf), model.edge, model.cloud, arrays)
    body = msgspec.msgpack.encode(file, order="deterministic")
    return MAGIC + hashlib.sha256(body).digest() + body


def from_bytes(data: bytes, source: str = "learned router") -> Model:
    """Raises ConfigError for anything but a whole file of this format and these features."""
    digest = data[len(MAGIC) : len(MAGIC) + 32]
    body = data[len(MAGIC) + 32 :]
    if not data.startswith(MAGIC):
        raise ConfigError(f"{source}: no learned router", hint=_HINT)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{source}: {len(data)} bytes, at most {MAX_BYTES} are read", hint=_HINT)
    if hashlib.sha256(body).digest() != digest:
        raise ConfigError(f"{source}: damaged: its digest is another", hint="copy it again")
    try:
        file = msgspec.msgpack.decode(body, type=_File)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: not as a learned router is written: {str(error)[:200]}", hint=_HINT) from None
    if file.features != feature_hash():
        raise ConfigError(f"{source}: trained for features {file.features[:16]}, here are {feature_hash()}", hint=_HINT)
    _check(file, source)
    shapes = _shapes(file.buckets)
    arrays: dict[str, Floats] = {}
    for name, shape in shapes.items():
        if len(file.arrays[name]) != 4 * math.prod(shape):
            raise ConfigError(f"{source}: {name} holds {len(file.arrays[name])} bytes, not {4 * math.prod(shape)}", hint=_HINT)
        with np.errstate(invalid="ignore"):  # a signalling NaN: refused below, by name
            arrays[name] = np.frombuffer(file.arrays[name], dtype="<f4").astype(np.float64).reshape(shape)
        arrays[name].flags.writeable = False
        if not np.isfinite(arrays[name]).all() or np.abs(arrays[name]).max() > 1e6:
            raise ConfigError(f"{source}: {name} holds what is no usable number", hint=_HINT)
    if (arrays["scale"] <= 0).any() or (arrays["idf"] <= 0).any() or (np.diff(arrays["ranks"]) < 0).any():
        raise ConfigError(f"{source}: scale and idf must be positive, and ranks must not fall", hint=_HINT)
    return Model(about=file.about, edge=file.edge, cloud=file.cloud, id=digest.hex()[:16], **arrays)


def save(model: Model, path: str | Path) -> Model:
    """Write whole or not at all; the model with its id. Raises ConfigError where it cannot be written."""
    data = to_bytes(model)
    write_whole(path, data)
    return replace(model, id=data[len(MAGIC) :][:8].hex())


def load(path: str | Path) -> Model:
    """Raises NotFound, or ConfigError for a file that is damaged, foreign or too large."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotFound(f"{path}: {error.strerror}", hint="name a file that hybrid route train has written") from None
    return from_bytes(data, str(path))


def _check(file: _File, source: str) -> None:
    about = file.about
    wrong = None
    if not 1 <= file.buckets <= MAX_BUCKETS:
        wrong = f"buckets must be 1 to {MAX_BUCKETS}"
    elif set(file.arrays) != set(_shapes(1)):
        wrong = "other arrays than those there must be"
    elif about.rows < 1 or not 0 <= about.noise <= 2 or not all(map(math.isfinite, about.figures.values())):
        wrong = "rows, noise or figures that cannot be"
    elif max(map(len, (about.edge, about.cloud, about.trained, about.data))) > 256 or len(about.figures) > 100:
        wrong = "names that are too long, or too many figures"
    elif about.trained and not DATE.fullmatch(about.trained):
        wrong = "a training date that is none"
    if wrong:
        raise ConfigError(f"{source}: {wrong}", hint=_HINT)


def _shapes(buckets: int) -> dict[str, tuple[int, ...]]:
    traits = len(TRAITS)
    return {
        "idf": (buckets,),
        "terms": (buckets, 2),
        "centre": (traits,),
        "scale": (traits,),
        "directions": (traits, WAVES),
        "phases": (WAVES,),
        "waves": (WAVES, 2),
        "mean": (2,),
        "covariance": (WAVES, WAVES),
        "ranks": (RANKS,),
    }
