"""What a probe learns of the cloud."""

from __future__ import annotations

import pytest
from hybrid.edge.transport.cloud import CloudClient
from hybrid.edge.transport.lane import Traffic
from hybrid.tests.support.scripted_server import (
    FOREVER,
    Received,
    Script,
    response,
    says,
    scripted_server,
)


async def test_a_probe_measures_and_learns_and_tells_nothing() -> None:
    models = {"object": "list", "data": [{"id": "big", "created": 1, "owned_by": "x", "max_model_len": 99}]}

    def answer(request: Received) -> Script:
        yield response(200, models if request.path == "/v1/models" else {"status": "ok"})

    readings = iter([1.0, 5.0, 10.0, 11.5])
    async with scripted_server(answer) as server:
        cloud, traffic = CloudClient(server.url, clock=lambda: next(readings), probe_timeout_s=60), Traffic()
        link = await cloud.probe(traffic)
        await cloud.close()
    assert server.connections == 1
    assert (link.reachable, link.rtt_s, link.cloud_context) == (True, 1.5, 99)
    assert cloud.model == "big"
    assert [(r.method, r.path, r.body) for r in server.requests] == [
        ("GET", "/health", b""),
        ("GET", "/health", b""),
        ("GET", "/v1/models", b""),
    ]
    assert traffic.bytes_sent == server.bytes_received


async def test_each_probe_sees_what_is_served_now() -> None:
    """A server that is started again may serve another model, of another length."""
    served = ("big", 99)

    def answer(request: Received) -> Script:
        models = {"object": "list", "data": [{"id": served[0], "created": 1, "owned_by": "x", "max_model_len": served[1]}]}
        return [response(200, models if request.path == "/v1/models" else {})]

    async with scripted_server(answer) as server:
        cloud = CloudClient(server.url, probe_timeout_s=60)
        seen = [((await cloud.probe(Traffic())).cloud_context, cloud.model)]
        served = ("small", 20)
        seen.append(((await cloud.probe(Traffic())).cloud_context, cloud.model))
        await cloud.close()
    assert seen == [(99, "big"), (20, "small")]


@pytest.mark.parametrize("models", [b"", b"<html>", b"[" * 100_000, b'{"data": [{"id": "\xff"}]}', b'{"data": []}'])
async def test_a_cloud_that_cannot_name_its_models_is_reachable_all_the_same(models: bytes) -> None:
    async with scripted_server(lambda request: [response(200, models if request.path == "/v1/models" else {})]) as server:
        cloud = CloudClient(server.url, probe_timeout_s=60)
        assert (await cloud.probe(Traffic())).reachable
        assert cloud.model is None
        await cloud.close()


async def test_a_cloud_that_is_gone_or_unwell_is_not_reachable() -> None:
    cloud = CloudClient("http://127.0.0.1:9")
    assert not (await cloud.probe(Traffic())).reachable
    await cloud.close()
    async with scripted_server(says(response(503, b""))) as server:
        cloud = CloudClient(server.url)
        assert not (await cloud.probe(Traffic())).reachable
        await cloud.close()
    async with scripted_server(says(FOREVER)) as server:
        cloud = CloudClient(server.url, probe_timeout_s=0.1)
        assert not (await cloud.probe(Traffic())).reachable
        await cloud.close()
