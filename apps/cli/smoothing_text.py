"""Which text a model is smoothed by: `--smooth` takes the one that comes with the package, `--smooth-text` one of the user's."""

from __future__ import annotations

from pathlib import Path


def smoothing_text(smooth: bool, path: Path | None) -> str | None:
    """None: not smoothed. Naming a text asks for smoothing. Raises ConfigError for a file that is no text."""
    if not smooth and path is None:
        return None
    from ...compiler.smoothing import own_text, read_text

    return own_text() if path is None else read_text(path)
