"""What privacy has not cleared is refused by the type checker wherever something is sent; at run time too (test_cloud.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SNIPPET = """
from hybrid.edge.transport.chat_body import chat_body
from hybrid.edge.transport.cloud import CloudClient
from hybrid.edge.transport.lane import Traffic
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import LocalOnly, Shareable, clear
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.request import RouteRequest

async def send(cloud: CloudClient, request: RouteRequest, traffic: Traffic) -> None:
    cleared = clear(request, Policy.default(), "public", RedactionMapping())
    if isinstance(cleared, Shareable):
        await cloud.chat(cleared, traffic)
        cloud.stream(cleared, traffic)
        await cloud.open_link(cleared, traffic)
        chat_body(cleared, None, stream=False)
        await cloud.chat(cleared.value, traffic)
        cloud.stream(cleared.value, traffic)
        await cloud.open_link(cleared.value, traffic)
        chat_body(cleared.value, None, stream=False)
    else:
        await cloud.chat(cleared, traffic)
        cloud.stream(cleared, traffic)
        await cloud.open_link(cleared, traffic)
        chat_body(cleared, None, stream=False)
"""


def test_a_type_checker_refuses_to_send_what_was_not_cleared(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    root = Path(__file__).resolve().parents[3]
    (tmp_path / "hybrid").symlink_to(root)
    (tmp_path / "snippet.py").write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", f"--cache-dir={root / '.mypy_cache' / 'snippet'}"]
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    done = subprocess.run([*command, "snippet.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert [int(line.split(":")[1]) for line in lines] == [*range(17, 21), *range(22, 26)], done.stdout + done.stderr
    assert all('incompatible type "RouteRequest"; expected "Shareable[RouteRequest]"' in line for line in lines[:4])
    assert all('incompatible type "LocalOnly[RouteRequest]"; expected "Shareable[RouteRequest]"' in line for line in lines[4:])
