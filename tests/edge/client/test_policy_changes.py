"""A client follows its policy file; a request keeps the policy that it began with."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import HybridError, RouteRefused
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import ASK, TO_CLOUD, TO_EDGE, ask, text_of, told, well
from hybrid.tests.support.scripted_server import Received, Script, scripted_server


class Clock:
    """Seconds that pass as always, and more when told."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


class Ours:
    """A policy file, written as if at another second each time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "ours.toml"
        self.second = 0

    def write(self, text: str) -> None:
        self.second += 10
        self.path.write_text(text)
        os.utime(self.path, (self.second, self.second))


@pytest.fixture
def ours(tmp_path: Path) -> Ours:
    return Ours(tmp_path)


@asynccontextmanager
async def client_of(edge: Model | None, ours: Ours, clock: Clock, handler: Any = well, **options: Any) -> AsyncIterator[AsyncHybridClient]:
    options = {"context": 512, "device_state": SimulatedDevice(), "probe_timeout_s": 60, "clock": clock} | options
    async with scripted_server(handler) as server, AsyncHybridClient(edge, server.url, policy=ours.path, **options) as client:
        yield client


async def test_a_changed_file_holds_from_the_next_request_on(smollm2: Model, ours: Ours) -> None:
    clock = Clock()
    ours.write(TO_CLOUD)
    async with client_of(smollm2, ours, clock) as client:
        assert told(await ask(client))[0] == "cloud"
        ours.write(TO_EDGE)
        clock.ahead += 2
        assert told(await ask(client))[0] == "edge"
        ours.write("[complexity]\nhard_from = 7")
        clock.ahead += 2
        assert told(await ask(client))[0] == "edge"
        assert client.policy == Policy.parse(TO_EDGE)
        assert client.policy_error is not None and client.policy_error.param == "complexity.hard_from"
        ours.write(TO_CLOUD)
        clock.ahead += 2
        assert told(await ask(client))[0] == "cloud" and client.policy_error is None


async def test_a_request_keeps_the_policy_that_it_began_with(smollm2: Model, ours: Ours) -> None:
    """The file changes while the cloud is asked whether it is there: the decision that follows is still made by the old one."""
    clock = Clock()
    ours.write(TO_CLOUD)

    def changing(request: Received) -> Script:
        if request.method == "GET":
            ours.write(TO_EDGE)
            clock.ahead += 5
        return well(request)

    async with client_of(smollm2, ours, clock, changing) as client:
        answer = await ask(client)
        assert told(answer)[0] == "cloud" and text_of(answer) == "from afar"
        assert told(await ask(client))[0] == "edge"


async def test_an_answer_names_the_policy_that_decided(ours: Ours) -> None:
    """An answer that was kept for an audit is traced to the file's values, also once the file says something else."""
    clock = Clock()
    ours.write('version = "7"\n' + TO_CLOUD)
    async with client_of(None, ours, clock) as client:
        first = await ask(client)
        ours.write("# without a version\n" + TO_CLOUD + "[quota]\ncapacity = 5000\n")
        clock.ahead += 2
        *_, second = [one async for one in await client.chat.completions.create(messages=ASK, max_tokens=6, stream=True)]
        assert first.hybrid is not None and second.hybrid is not None
        assert (first.hybrid.policy, first.hybrid.policy_version) == (Policy.parse(TO_CLOUD).hash, "7")
        assert (second.hybrid.policy, second.hybrid.policy_version) == (client.policy.hash, None)
        assert first.hybrid.policy != second.hybrid.policy


async def test_a_changed_quota_counts_what_was_used_before(ours: Ours) -> None:
    clock = Clock()
    ours.write(TO_CLOUD + "[quota]\ncapacity = 1000\nrefill_per_s = 0")
    async with client_of(None, ours, clock) as client:
        await ask(client)  # uses a few of its tokens
        ours.write(TO_CLOUD + "[quota]\ncapacity = 5\nrefill_per_s = 0")
        clock.ahead += 2
        with pytest.raises(HybridError, match=", 5 left"):
            await ask(client)
        ours.write(TO_CLOUD + "[quota]\ncapacity = 2000\nrefill_per_s = 0")
        clock.ahead += 2
        with pytest.raises(HybridError, match=", 5 left"):  # a larger bucket is not a fuller one
            await ask(client, max_tokens=1500)


async def test_rules_see_the_time_the_tenant_and_the_device(smollm2: Model, ours: Ours) -> None:
    ours.write(
        TO_EDGE
        + '[[rule]]\nname = "night"\nwhen = "hour == 3 && weekday == 4"\nroute = "refuse"\n'
        + '[[rule]]\nname = "acme"\nwhen = "tenant == \'acme\' && battery < 0.5"\nroute = "refuse"\n'
    )
    night = datetime(2026, 1, 1, 3, 30).timestamp()  # a Thursday
    device = SimulatedDevice()
    device.set(battery=0.3)
    for wall, tenant, rule in ((night, None, "rule.night"), (night + 7200, "acme", "rule.acme"), (night + 7200, "other", None)):
        async with client_of(smollm2, ours, Clock(), wall=lambda wall=wall: wall, tenant=tenant, device_state=device) as client:
            if rule is None:
                assert told(await ask(client))[0] == "edge"
                continue
            with pytest.raises(RouteRefused) as refused:
                await client.chat.completions.create(messages=ASK, max_tokens=2)
            assert refused.value.rule == rule


async def test_a_preset_stands_where_a_policy_may(smollm2: Model) -> None:
    async with scripted_server(well) as server:
        options: dict[str, Any] = {"context": 512, "device_state": SimulatedDevice()}
        async with AsyncHybridClient(smollm2, server.url, policy="preset:offline", **options) as client:
            answer = await ask(client)
            assert told(answer)[0] == "edge" and answer.hybrid is not None and answer.hybrid.rule == "rule.never-cloud"
            assert client.bytes_sent == 0 and client.policy.version == "preset:offline"
