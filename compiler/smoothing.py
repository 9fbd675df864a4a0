"""A model whose large columns were moved into its weights, by what a text brings to its rows: a text of the user's, or the package's own.

Only the sizes of rows are taken from the text, column by column; no word of it is kept.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from ..shared_protocol.compile_errors import CompileError
from ..shared_protocol.errors import ConfigError
from ..shared_protocol.model import Model
from .capture.capture import capture
from .capture.constants import constants_of
from .program import Smoothing
from .quantise.calibrate import observe
from .quantise.smooth import smoothed

STRENGTH = 0.5  # half of the difference goes to the weights; see docs/quantised_execution.md for what others give
ROWS = 32  # of a run
PIECES, LENGTH = 8, 128  # sequences, and tokens of each; what a text has beyond them is not read
LARGEST_TEXT = 1 << 20  # bytes


@cache
def own_text() -> str:
    """The text that comes with the package: prose, code, JSON, a letter."""
    return (files(f"{__package__}.quantise") / "calibration.txt").read_text("utf-8")


def read_text(path: Path) -> str:
    """A text of the user's. Raises ConfigError for a file that cannot be read, is empty, no UTF-8, or larger than LARGEST_TEXT."""
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is no file")  # a pipe would be waited for
        with path.open("rb") as file:
            content = file.read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise ValueError(f"it is larger than {LARGEST_TEXT:,} bytes")
        text = content.decode()
        if not text.strip():
            raise ValueError("it is empty")
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read the text {path}: it is not UTF-8", param="smooth_text") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read the text {path}: {getattr(error, 'strerror', None) or error}", param="smooth_text") from None
    return text


def smoothing_of(model: Model, text: str) -> Smoothing:
    """What smoothing by `text` is, for an artifact's facts. Raises CompileError for a text without tokens."""
    tokens = sum(map(len, _sequences(model, text)))
    if not tokens:
        raise CompileError("the text to smooth by has no tokens", hint="give it a few hundred words of what the model is used for")
    return Smoothing(STRENGTH, tokens, hashlib.sha256(text.encode()).hexdigest(), text != own_text())


def smoothed_by(model: Model, text: str) -> Model:
    """The model that computes the same, in float32 matrices that are made when asked for. Runs it over the text, and holds its float32
    weights meanwhile. Raises CompileError where the text brings nothing."""
    rows, length = _sizes(model)
    graph = capture(model.architecture, rows=rows, logit_rows=1, context=length, name="smoothing")
    peaks = observe(graph, constants_of(model, graph), _sequences(model, text))
    return smoothed(model, peaks, STRENGTH)[0]


def _sizes(model: Model) -> tuple[int, int]:
    """Tokens of a run and of a sequence; the padding of a sequence's last run must fit as well."""
    most = min(LENGTH, model.architecture.context_length)
    rows = min(ROWS, most)
    return rows, most // rows * rows


def _sequences(model: Model, text: str) -> list[list[int]]:
    ids, (_, length) = model.tokenizer.encode(text[: 16 * PIECES * LENGTH]), _sizes(model)
    return [ids[at : at + length] for at in range(0, min(len(ids), PIECES * length), length)]
