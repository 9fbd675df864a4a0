"""A device that fails leaves the request to the cloud, unless it is private."""

from __future__ import annotations

import pytest
from hybrid.edge.native import NativeRuntime
from hybrid.edge.session import Session
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import PRIVATE, TO_CLOUD, TO_EDGE, ask, client_of, failing, told, well
from hybrid.tests.support.scripted_server import (
    response,
)


async def test_a_device_that_fails_leaves_the_request_to_the_cloud_unless_it_is_private(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise MemoryError

    async with client_of(smollm2, TO_EDGE, well) as (client, server):
        await client.load()
        monkeypatch.setattr(Session, "generate", broken)
        with pytest.raises(errors.RouteRefused) as refused:
            await ask(client, PRIVATE)
        assert refused.value.code == "edge_unavailable"
        assert server.connections == 0
        answer = await ask(client)
    assert told(answer) == ("cloud", "edge_unavailable", [("cloud", 3)])


async def test_a_device_whose_model_does_not_load_is_one_that_fails_but_a_wrong_name_is_told(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise MemoryError

    async with client_of(smollm2, TO_EDGE, well) as (client, server):
        with monkeypatch.context() as patch:
            patch.setattr(NativeRuntime, "__init__", broken)
            with pytest.raises(errors.RouteRefused) as refused:
                await ask(client, PRIVATE)
            assert refused.value.code == "edge_unavailable"
            assert server.connections == 0
            assert told(await ask(client)) == ("cloud", "edge_unavailable", [("cloud", 3)])
        assert told(await ask(client)) == ("edge", "simple", [("edge", 6)])
    async with client_of("no-such-model", TO_EDGE, well) as (client, server):
        with pytest.raises(errors.ModelNotFound):
            await ask(client)
        assert server.connections == 0


async def test_when_all_fail_the_error_lists_them(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Session, "generate", broken)
    async with client_of(smollm2, TO_CLOUD, failing(response(503, b""))) as (client, server):
        with pytest.raises(errors.HybridError, match=r"cloud: .*edge: ") as gone:
            await ask(client)
        assert gone.value.code in ("cloud_unreachable", "edge_unavailable")
        assert sum(request.method == "POST" for request in server.requests) == 1
