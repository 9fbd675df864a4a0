"""/v1/speculate behind the same door as the rest: key, Host, Origin, drain."""

import asyncio

import aiohttp
import pytest
from hybrid.cloud.engine.scripted import Script
from hybrid.cloud.server.keys import KeyRing
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.frames import decode, encode
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.cloud.server.conftest import Bench, Start

HELLO = encode(frames.Hello((1,), frames.Limits()))
KEYS = {"keys": KeyRing({"anna": "secret-a"})}


async def refused(bench: Bench, **headers: str) -> int:
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await bench.http.ws_connect(bench.url + "/v1/speculate", headers=headers)
    return error.value.status


async def test_a_device_with_a_key_is_greeted_without_compression(start: Start) -> None:
    bench = await start(**KEYS)
    asked = bench.http.ws_connect(bench.url + "/v1/speculate", headers={"authorization": "Bearer secret-a"}, compress=15)
    async with asked as link:
        assert link.compress == 0
        await link.send_bytes(HELLO)
        greeting = decode(await link.receive_bytes(), "to_device")
        assert isinstance(greeting, frames.CloudHello)


async def test_strangers_are_refused_at_the_handshake(start: Start) -> None:
    keyed, local = await start(**KEYS), await start()
    assert await refused(keyed) == 401
    assert await refused(keyed, authorization="Bearer wrong") == 401
    assert await refused(local, host="evil.example") == 403
    assert await refused(local, origin="https://evil.example") == 403
    async with local.http.ws_connect(local.url + "/v1/speculate", headers={"origin": "http://localhost:3000"}) as link:
        await link.send_bytes(HELLO)
        assert (await link.receive()).type is aiohttp.WSMsgType.BINARY


async def test_a_drain_refuses_new_sessions_and_waits_for_an_open_one(start: Start) -> None:
    bench = await start(Script([b"x"] * 9, finish=None), automatic=False, drain_s=60)
    model = bench.server.app.service.frontend.model
    opening = frames.Open("bytes/test", model.card.fingerprint, SamplingParams(), 7, 0, 1, frames.pack_ids(b"a"))
    async with bench.http.ws_connect(bench.url + "/v1/speculate") as link:
        await link.send_bytes(HELLO)
        await link.receive_bytes()
        await link.send_bytes(encode(opening))
        await bench.settled(lambda: bench.server.app.service.admission.inside == 1)
        drained = bench.server.drain()
        async with bench.http.ws_connect(bench.url + "/v1/speculate") as late:
            await late.send_bytes(HELLO)
            await late.receive_bytes()
            await late.send_bytes(encode(opening))
            answer = decode(await late.receive_bytes(), "to_device")
            assert isinstance(answer, frames.Error)
            assert answer.code == "unavailable"
        assert not drained.done()
    await asyncio.wait_for(drained, 10)


async def test_a_websocket_to_where_no_route_leads_is_told_so_and_counted(start: Start) -> None:
    bench = await start()
    for path in ("/v1/nothing", "/v1/models"):
        with pytest.raises(aiohttp.WSServerHandshakeError) as error:
            await bench.http.ws_connect(bench.url + path)
        assert error.value.status == 404
    await refused(bench, host="evil.example")
    async with bench.http.ws_connect(bench.url + "/v1/speculate"):
        pass
    lines = (await bench.get("/metrics")).raw.decode().splitlines()
    counts = dict(line.rsplit(" ", 1) for line in lines if 'method="WEBSOCKET"' in line and "_total" in line)
    assert counts == {
        'hybrid:http_requests_total{method="WEBSOCKET",route="unmatched",status="404"}': "2.0",
        'hybrid:http_requests_total{method="WEBSOCKET",route="/v1/speculate",status="403"}': "1.0",
        'hybrid:http_requests_total{method="WEBSOCKET",route="/v1/speculate",status="101"}': "1.0",
    }
