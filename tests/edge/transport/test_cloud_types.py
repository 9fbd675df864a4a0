"""What privacy has not cleared is refused by the type checker wherever something is sent; at run time too (test_cloud.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hybrid.tests.support.type_errors import type_errors

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
    errors = type_errors(SNIPPET, tmp_path)
    assert [number for number, _ in errors] == [*range(17, 21), *range(22, 26)], errors
    lines = [line for _, line in errors]
    assert all('incompatible type "RouteRequest"; expected "Shareable[RouteRequest]"' in line for line in lines[:4])
    assert all('incompatible type "LocalOnly[RouteRequest]"; expected "Shareable[RouteRequest]"' in line for line in lines[4:])
