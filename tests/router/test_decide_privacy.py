"""What is private is decided alone by what is private."""

from hybrid.router.confidence.judgement import judge
from hybrid.router.decide import resolve_cascade
from hybrid.router.quota import QuotaView
from hybrid.shared_protocol.runtime import DeviceState
from hybrid.tests.support.deciding import DRAFTING, NO_DEVICE, OFFLINE, ONLINE, PRIVATE, PRIVATE_AND_HARD, run, way


def test_a_private_request_is_decided_the_same_online_offline_and_over_quota() -> None:
    for prompt in (PRIVATE, PRIVATE_AND_HARD):
        ways = {way(prompt, link=link, quota=quota) for link in (ONLINE, OFFLINE) for quota in (QuotaView(), QuotaView(0, 0))}
        assert len(ways) == 1


def test_a_private_request_without_a_device_is_refused_and_never_escalated() -> None:
    assert way(PRIVATE, device=NO_DEVICE) == ("refuse", "edge_unavailable", "capability.edge")
    assert way(PRIVATE, device=DeviceState(edge_context=10)) == ("refuse", "too_long", "capability.edge_context")


def test_a_conversation_that_was_private_stays_private() -> None:
    assert way("Thanks, continue.", privacy_floor="local_only") == ("edge", "private", "privacy.local_only")
    assert way("Thanks, continue.", privacy_floor="redact")[1] == "private"  # without placeholders for it, it stays
    assert way("Thanks, continue.", privacy_floor="block") == ("refuse", "blocked", "privacy.block")


def test_a_blocked_request_is_refused_whoever_could_answer() -> None:
    for facts in ({}, {"link": OFFLINE}, {"device": NO_DEVICE}):
        assert way("What does AKIAIOSFODNN7EXAMPLE open?", **facts) == ("refuse", "blocked", "privacy.block")


def test_confidence_cannot_open_the_way_for_a_private_answer() -> None:
    assert resolve_cascade(run(PRIVATE), judge(0.0, DRAFTING.confidence, None, "text")).shareable is None
