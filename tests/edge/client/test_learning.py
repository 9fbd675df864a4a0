"""Under `auto` the client learns the facts by itself, and every answer says what came of them."""

from __future__ import annotations

from typing import Any

import pytest
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.openai import HybridInfo
from hybrid.tests.support.real_cloud import cut_server, real_frontend
from hybrid.tests.support.scripted_client import ask, client_of, stream, well
from hybrid.tests.support.scripted_server import Received, Script, response

AUTO = '[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "auto"\ndraft_below = 1.0\n'
ASK = [{"role": "user", "content": "Name three rivers."}]


class Clock:
    """Goes on by a tenth of a second at every look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.1
        return self.now


def told(info: HybridInfo | None) -> tuple[str | None, str]:
    assert info is not None
    return info.route, info.drafting or ""


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_plain_answer_of_the_cloud_teaches_its_time(tiny_llama: Model, streamed: bool) -> None:
    async def once() -> HybridInfo | None:
        return (await stream(client))[-1].hybrid if streamed else (await ask(client)).hybrid

    # nothing of what the device drafts is kept: whatever times are measured, the cloud alone is faster
    given = SpeculationFacts(acceptance=0.0)
    async with client_of(tiny_llama, AUTO, well, clock=Clock(), speculation=given, context=256) as (client, _):
        first, second = await once(), await once()
    assert told(first) == ("cloud", "the link, the device or the cloud is not measured")
    route, why = told(second)
    assert route == "cloud"
    assert why.startswith("drafting would be ") and why.endswith(" times as fast as the cloud alone, drafting 1")


async def test_the_device_is_measured_when_auto_asks_and_only_then(tiny_llama: Model) -> None:
    for policy, measured in ((AUTO, True), (AUTO.replace("auto", "always"), False), (AUTO.replace("0.0", "1.0"), False)):
        async with client_of(tiny_llama, policy, well, context=256) as (client, _):
            await ask(client, logprobs=True)  # never drafted
            assert (client._services.draft_s is not None) == measured, policy
    async with client_of(tiny_llama, AUTO, well, context=256, speculation=SpeculationFacts(draft_s=(0.0, 1.0))) as (client, _):
        await ask(client)
        assert client._services.draft_s is None  # the application knows it


async def test_auto_drafts_once_that_pays_and_says_so(smollm2: Model) -> None:
    device: dict[str, Any] = {"context": 256, "device_state": SimulatedDevice(), "probe_timeout_s": 60}
    slow_cloud = SpeculationFacts(verify_s=(100.0,) * 5)  # so slow that any draft pays, on a machine however busy
    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend) as server,
        AsyncHybridClient(smollm2, server.url, policy=Policy.parse(AUTO), speculation=slow_cloud, **device) as client,
    ):
        answer = await client.chat.completions.create(messages=ASK, max_tokens=9, temperature=0)
        learned = client._services.clouds.targets[0].learned
    route, why = told(answer.hybrid)
    assert route == "speculative"
    assert why.endswith(" times as fast as the cloud alone, drafting 4")
    assert answer.hybrid is not None
    assert answer.hybrid.drafts is not None
    assert learned.kept > 0  # one model on both sides
    assert learned.refused == 0
    assert learned.acceptance > 0.7


async def test_a_cloud_that_serves_another_model_is_learned_anew(tiny_llama: Model) -> None:
    """Its times, and whether its vocabulary is the device's, were those of the old one."""
    name, clock, unmeasured = "big", Clock(), "the link, the device or the cloud is not measured"

    def answer(request: Received) -> Script:
        models = {"object": "list", "data": [{"id": name, "created": 1, "owned_by": "x"}]}
        return [response(200, models)] if request.path == "/v1/models" else well(request)

    given = SpeculationFacts(acceptance=0.0)
    async with client_of(tiny_llama, AUTO, answer, clock=clock, speculation=given, context=256) as (client, _):
        target = client._services.clouds.targets[0]
        assert told((await ask(client)).hybrid)[1] == unmeasured
        clock.now += 60  # long enough for another probe
        assert told((await ask(client)).hybrid)[1].startswith("drafting would be")
        target.can_speculate, target.sends_messages = False, True
        clock.now += 60
        await ask(client)
        assert (target.can_speculate, target.sends_messages) == (False, True)
        name = "another"
        clock.now += 60
        assert told((await ask(client)).hybrid)[1] == unmeasured
        assert (target.can_speculate, target.sends_messages) == (True, False)
