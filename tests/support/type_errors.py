"""What the type checker says of a few lines that use the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def type_errors(snippet: str, folder: Path) -> list[tuple[int, str]]:
    """The errors of mypy as (line, the whole message), in order. `folder` is an empty one to work in."""
    root = Path(__file__).resolve().parents[2]
    (folder / "hybrid").symlink_to(root)
    (folder / "snippet.py").write_text(snippet)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", f"--cache-dir={root / '.mypy_cache' / 'snippet'}"]
    environment = {**os.environ, "MYPYPATH": str(folder)}
    done = subprocess.run([*command, "snippet.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 2: mypy itself failed
    return [(int(line.split(":")[1]), line) for line in done.stdout.splitlines() if ": error:" in line]
