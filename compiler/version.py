"""Which compiler this is: two of one version make the same artifacts."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("compiler", "npu_backends", "quant")  # what an artifact is made by


@cache
def compiler_version() -> str:
    """A hash over the sources of all that takes part, so that no artifact outlives the code that made it."""
    digest = hashlib.sha256()
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()[:16]
