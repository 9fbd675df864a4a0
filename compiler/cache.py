"""Compiled models kept by content: what is asked for is either there, whole, or made.

ROOT/compiled/KEY/     KEY: a hash of model, scheme, smoothing, context, shapes, chips and compiler
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ..shared_protocol.compile_errors import ArtifactRejected
from ..shared_protocol.model import Model
from ..shared_protocol.store import Store
from .artifact import HEAD, hash_of, read, write
from .compile import Progress, compile_model, silent
from .program import Compiled, Facts

FOLDER = "compiled"
KEPT = 8  # folders; those used longest ago go
SMALLEST = 16 << 20  # bytes of weights; fewer are compiled faster than a folder is kept
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Found:
    """`folder` is None where nothing was kept."""

    compiled: Compiled
    folder: Path | None
    cached: bool  # it was there already
    sha256: str | None  # of the artifact


def compiled_for(
    model: Model,
    facts: Facts,
    *,
    smooth: str | None = None,
    progress: Progress = silent,
    root: Path | None = None,
    always_keep: bool = False,
) -> Found:
    """The compiled model of `facts` below `root` (None: HYBRID_HOME), compiled now if it is not there or not whole. `smooth`: the text
    that the facts were made with.

    Without `always_keep`, a small model is not kept. Where nothing can be written the next start compiles again. Raises what compiling
    raises.
    """
    folder = (Store().root if root is None else root) / FOLDER / key_of(facts)
    if folder.is_dir():
        try:
            compiled = _asked_for(read(folder, file_hash=model.card.file_hash), facts, folder)
            with suppress(OSError):
                os.utime(folder)
            return Found(compiled, folder, True, hash_of(folder))
        except ArtifactRejected as rejected:
            log.warning("%s", rejected)
    compiled = compile_model(model, facts, progress, smooth=smooth)
    if compiled.weights_bytes < SMALLEST and not always_keep:
        return Found(compiled, None, False, None)
    try:
        digest = write(compiled, folder)
        _prune(folder)
        return Found(read(folder), folder, False, digest)  # mapped, and what was compiled in memory is let go
    except (OSError, ArtifactRejected) as error:  # rejected: another process has just put its own in this one's place
        log.warning("the compiled model is not kept, the next start compiles again: %s", error)
        return Found(compiled, None, False, None)


def _asked_for(compiled: Compiled, facts: Facts, folder: Path) -> Compiled:
    """Under the name that the model has now. Raises ArtifactRejected for one that was moved here from another key."""
    if dataclasses.replace(compiled.facts, model=facts.model) != facts:
        other = f"{compiled.facts.scheme}, {compiled.facts.context} tokens, {compiled.facts.target.name}"
        raise ArtifactRejected(f"the artifact {folder} is refused: it is of something else ({other})", hint="compile again")
    return dataclasses.replace(compiled, facts=facts)


def key_of(facts: Facts) -> str:
    """The name a model has is no part of what it is."""
    nameless = dataclasses.replace(facts, model="")
    return hashlib.sha256(msgspec.json.encode(nameless, order="sorted")).hexdigest()[:32]


def _prune(newest: Path) -> None:
    """Let go of folders beyond KEPT; whoever has one open keeps its mapping."""
    with suppress(OSError):
        folders = [path for path in newest.parent.iterdir() if path != newest and (path / HEAD).is_file()]
        for path in sorted(folders, key=lambda path: path.stat().st_mtime)[: max(0, len(folders) - KEPT + 1)]:
            shutil.rmtree(path, ignore_errors=True)
