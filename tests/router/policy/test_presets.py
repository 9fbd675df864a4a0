"""Each policy that ships does what its name says, over prompts of all kinds and whatever is there."""

from itertools import product

import pytest
from hybrid.router.decision import Decision
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy.policy import Policy, presets
from hybrid.router.quota import QuotaView
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.errors import ConfigError
from hybrid.shared_protocol.runtime import DeviceState, LinkState
from hybrid.tests.support.deciding import (
    DRAFTED,
    HARD,
    NO_DEVICE,
    OFFLINE,
    ONLINE,
    PRIVATE,
    PRIVATE_AND_HARD,
    SIMPLE,
    UNCERTAIN,
    run,
    way,
)

PUBLIC = (SIMPLE, UNCERTAIN, DRAFTED, HARD)
FAST_LINK = SpeculationFacts(rtt_s=0.01, draft_s=(0, 0.005, 0.01), verify_s=(0.03, 0.035, 0.035), acceptance=0.9)


def decisions(name: str, prompts: tuple[str, ...], **facts: object) -> list[Decision]:
    return [run(prompt, policy=Policy.load(f"preset:{name}"), **facts) for prompt in prompts]


def test_every_preset_is_named_in_its_version_and_described_in_its_first_line() -> None:
    assert set(presets()) == {"private-first", "cheapest", "fastest", "best", "offline"}
    for name, text in presets().items():
        assert Policy.load(f"preset:{name}").version == f"preset:{name}"
        assert text.startswith("# ") and text.splitlines()[0].endswith(".")
    with pytest.raises(ConfigError, match="private-first"):
        Policy.load("preset:cheap")


def test_offline_never_uses_the_cloud_whatever_is_there_or_missing() -> None:
    links = (ONLINE, OFFLINE, LinkState(True, rtt_s=0.001))
    devices = (DeviceState(), NO_DEVICE, DeviceState(battery=0.01, thermal_headroom=0.0), DeviceState(edge_context=10))
    quotas = (QuotaView(), QuotaView(0, 0))
    for link, device, quota in product(links, devices, quotas):
        facts = {"link": link, "device": device, "quota": quota, "speculation": FAST_LINK}
        for decision in decisions("offline", (*PUBLIC, PRIVATE, PRIVATE_AND_HARD), **facts):
            answers = device.edge_available and device.edge_context > 10
            assert (decision.route == "edge") is answers and decision.cloud_tokens == 0, decision.why
    assert way(HARD, policy=Policy.load("preset:offline"), device=NO_DEVICE) == ("refuse", "edge_unavailable", "rule.never-cloud")


def test_best_uses_the_cloud_whenever_it_may() -> None:
    assert {decision.route for decision in decisions("best", PUBLIC)} == {"cloud"}
    drafted = decisions("best", PUBLIC, speculation=FAST_LINK)
    assert {decision.route for decision in drafted} == {"speculative"}  # the cloud's text, sooner
    assert {decision.route for decision in decisions("best", PUBLIC, link=OFFLINE)} == {"edge"}
    assert {decision.route for decision in decisions("best", (PRIVATE,))} == {"edge"}


def test_cheapest_pays_for_nothing_that_the_device_can_answer() -> None:
    assert {decision.route for decision in decisions("cheapest", (*PUBLIC, PRIVATE), speculation=FAST_LINK)} == {"edge"}
    assert {decision.route for decision in decisions("cheapest", PUBLIC, device=DeviceState(edge_context=5))} == {"cloud"}
    assert {decision.route for decision in decisions("cheapest", PUBLIC, device=NO_DEVICE)} == {"cloud"}


def test_fastest_answers_nothing_twice_and_follows_the_load_and_the_link() -> None:
    for facts in ({}, {"speculation": FAST_LINK}, {"link": LinkState(True, rtt_s=0.5)}, {"device": DeviceState(load=3.0)}):
        assert all(decision.route != "cascade" for decision in decisions("fastest", PUBLIC, **facts))
    fastest = Policy.load("preset:fastest")
    assert way(SIMPLE, policy=fastest)[0] == "edge" and way(HARD, policy=fastest)[0] == "cloud"
    assert way(HARD, policy=fastest, speculation=FAST_LINK)[0] == "speculative"
    assert way(SIMPLE, policy=fastest, device=DeviceState(load=3.0))[2] == "rule.busy-device"
    assert way(HARD, policy=fastest, link=LinkState(True, rtt_s=0.5))[2] == "rule.far-cloud"
    assert way("word " * 3000, policy=fastest)[0] == "cloud"


def test_private_first_lets_out_only_hard_public_english_prompts_without_tools() -> None:
    policy = Policy.load("preset:private-first")
    assert way(HARD, policy=policy)[0] == "cloud"
    assert {way(prompt, policy=policy)[0] for prompt in (SIMPLE, UNCERTAIN, PRIVATE, PRIVATE_AND_HARD)} == {"edge"}
    german = "Entwirf und implementiere einen Algorithmus, beweise, dass er korrekt ist, und analysiere die Komplexität mit Python."
    for facts in ({}, {"device": NO_DEVICE}):
        assert way(german, policy=policy, **facts)[0] in ("edge", "refuse")
        assert way(RouteRequest.of(HARD, tools=[{"name": "files"}]), policy=policy, **facts)[0] in ("edge", "refuse")
    assert way("My password is hunter2x9! Where do I change it?", policy=policy)[0] == "refuse"
