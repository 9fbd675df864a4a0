"""One request, one route, one reason; the same for the dry run and for serving, whatever the request holds."""

import ast
import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from hybrid.router.costs import CostModel, Expected
from hybrid.router.decide import decide, resolve_cascade
from hybrid.router.decision import Decision
from hybrid.router.message import Message
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy import Policy
from hybrid.router.privacy import require_shareable
from hybrid.router.quota import QuotaView
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.errors import InvalidRequest
from hybrid.shared_protocol.runtime import DeviceState, LinkState
from hybrid.shared_protocol.sampling import SamplingParams
from hypothesis import given
from hypothesis import strategies as st

ONLINE = LinkState(reachable=True)
OFFLINE = LinkState(reachable=False)
NO_DEVICE = DeviceState(edge_available=False)
DRAFTING = Policy.parse('[speculation]\nmode = "always"')

# One prompt for each way through the router, with the default policy and drafting switched on.
SIMPLE = "What is the capital of France?"
UNCERTAIN = "Explain why the sky is blue and compare it with a sunset."
DRAFTED = "Prove that the square root of two is irrational, step by step, and explain why each step is needed."
HARD = "Design and implement a lock-free queue in Rust, prove that it is linearizable, and analyse its complexity step by step."
PRIVATE = "Write a friendly reply to anna.smith@example.com: I will be ten minutes late."
PRIVATE_AND_HARD = f"My card is 4111 1111 1111 1111. {HARD}"


def run(prompt: object, **facts: object) -> Decision:
    context = RouteContext(**{"link": ONLINE, "policy": DRAFTING, "speculation": SpeculationFacts(), **facts})
    decision = decide(prompt if isinstance(prompt, RouteRequest) else RouteRequest.of(prompt), context)
    touches_cloud = decision.route in ("cloud", "cascade", "speculative")
    assert (decision.shareable is not None) == touches_cloud == (decision.cloud_tokens > 0)
    if decision.shareable is not None:
        require_shareable(decision.shareable)
        assert decision.scores.privacy == "public"
    return decision


def way(prompt: object, **facts: object) -> tuple[str, str, str]:
    decision = run(prompt, **facts)
    return decision.route, decision.reason, decision.rule


@pytest.mark.parametrize(
    ("prompt", "facts", "expected"),
    [
        (SIMPLE, {}, ("edge", "simple", "complexity.cascade_from")),
        (HARD, {}, ("cloud", "hard", "complexity.hard_from")),
        (UNCERTAIN, {}, ("cascade", "low_confidence", "complexity.hard_from")),
        (DRAFTED, {}, ("speculative", "drafted", "speculation.always")),
        (PRIVATE, {}, ("edge", "private", "privacy.local_only")),
        (HARD, {"quota": QuotaView(available=3, capacity=1000)}, ("edge", "quota_degraded", "quota.on_exhausted")),
        (PRIVATE_AND_HARD, {}, ("refuse", "private_too_hard", "privacy.too_hard_from")),
        (HARD, {"link": OFFLINE}, ("edge", "cloud_unreachable", "capability.cloud")),
        (SIMPLE, {"link": OFFLINE}, ("edge", "simple", "complexity.cascade_from")),
    ],
)
def test_each_way_through_the_router_is_reached_by_a_natural_prompt(prompt: str, facts: dict, expected: tuple[str, str, str]) -> None:
    assert way(prompt, **facts) == expected


# ---- 1 privacy -------------------------------------------------------------------------------------------------


def test_a_private_request_is_decided_the_same_online_offline_and_over_quota() -> None:
    for prompt in (PRIVATE, PRIVATE_AND_HARD):
        ways = {way(prompt, link=link, quota=quota) for link in (ONLINE, OFFLINE) for quota in (QuotaView(), QuotaView(0, 0))}
        assert len(ways) == 1


def test_a_private_request_without_a_device_is_refused_and_never_escalated() -> None:
    assert way(PRIVATE, device=NO_DEVICE) == ("refuse", "edge_unavailable", "capability.edge")
    assert way(PRIVATE, device=DeviceState(edge_context=10)) == ("refuse", "too_long", "capability.edge_context")


def test_a_conversation_that_was_private_stays_private() -> None:
    assert way("Thanks, continue.", privacy_floor="local_only") == ("edge", "private", "privacy.local_only")
    assert way("Thanks, continue.", privacy_floor="redact")[1] == "private"  # redaction is not served: it stays
    assert way("Thanks, continue.", privacy_floor="block") == ("refuse", "blocked", "privacy.block")


def test_a_blocked_request_is_refused_whoever_could_answer() -> None:
    for facts in ({}, {"link": OFFLINE}, {"device": NO_DEVICE}):
        assert way("What does AKIAIOSFODNN7EXAMPLE open?", **facts) == ("refuse", "blocked", "privacy.block")


def test_confidence_cannot_open_the_way_for_a_private_answer() -> None:
    assert resolve_cascade(run(PRIVATE), 0.0, DRAFTING).shareable is None


# ---- 2 capability ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"device": NO_DEVICE}, ("cloud", "edge_unavailable", "capability.edge")),
        ({"device": DeviceState(edge_context=20)}, ("cloud", "too_long", "capability.edge_context")),
        ({"link": LinkState(reachable=True, cloud_context=20)}, ("edge", "too_long", "capability.cloud_context")),
        ({"device": NO_DEVICE, "link": OFFLINE}, ("refuse", "cloud_unreachable", "capability.cloud")),
        (
            {"device": DeviceState(edge_context=20), "link": LinkState(True, cloud_context=20)},
            ("refuse", "too_long", "capability.cloud_context"),
        ),
    ],
)
def test_who_can_answer_is_settled_before_how_hard_it_is(facts: dict, expected: tuple[str, str, str]) -> None:
    for prompt in (UNCERTAIN, DRAFTED):
        assert way(RouteRequest.of(prompt, max_tokens=30), **facts) == expected


def test_prompt_and_answer_together_must_fit() -> None:
    device = DeviceState(edge_context=100)
    counted = {"count_tokens": lambda request: 60, "device": device}
    assert way(RouteRequest.of("hi", max_tokens=40), **counted)[0] == "edge"
    assert way(RouteRequest.of("hi", max_tokens=41), **counted)[:2] == ("cloud", "too_long")


def test_the_policy_may_spare_the_device() -> None:
    policy = Policy.parse("[edge]\nmin_battery = 0.2\nmin_thermal_headroom = 0.1\nmax_prompt_tokens = 50")
    assert way(SIMPLE, policy=policy, device=DeviceState(battery=0.1)) == ("cloud", "edge_unavailable", "edge.min_battery")
    assert way(SIMPLE, policy=policy, device=DeviceState(thermal_headroom=0.0)) == (
        "cloud",
        "edge_unavailable",
        "edge.min_thermal_headroom",
    )
    assert way("word " * 60, policy=policy) == ("cloud", "too_long", "edge.max_prompt_tokens")
    assert way(SIMPLE, policy=policy, device=DeviceState())[1] == "simple"  # not known is not bad news
    assert way(PRIVATE, policy=policy, device=DeviceState(battery=0.1))[1] == "private"
    assert way(SIMPLE, policy=policy, device=DeviceState(battery=0.1), link=OFFLINE)[1] == "cloud_unreachable"


# ---- 3 quota ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [UNCERTAIN, DRAFTED, HARD])
def test_an_empty_bucket_degrades_or_refuses_as_the_policy_says(prompt: str) -> None:
    empty = {"quota": QuotaView(available=10, capacity=10_000, refill_per_s=1)}
    assert way(prompt, **empty)[:2] == ("edge", "quota_degraded")
    refusing = Policy.parse('[quota]\non_exhausted = "refuse"')
    assert way(prompt, policy=refusing, **empty)[:2] == ("refuse", "over_quota")
    assert way(prompt, device=NO_DEVICE, **empty)[:2] == ("refuse", "over_quota")


def test_a_request_that_needs_no_cloud_asks_no_quota() -> None:
    refusing = Policy.parse('[quota]\non_exhausted = "refuse"')
    assert way(SIMPLE, policy=refusing, quota=QuotaView(0, 0))[:2] == ("edge", "simple")


def test_prompt_and_answer_are_reserved_together() -> None:
    counted = {"count_tokens": lambda request: 30}
    assert run(RouteRequest.of(HARD, max_tokens=70), quota=QuotaView(100, 100), **counted).cloud_tokens == 100
    assert run(RouteRequest.of(HARD, max_tokens=71), quota=QuotaView(100, 100), **counted).reason == "quota_degraded"
    assumed = DRAFTING.quota.assumed_output
    two = RouteRequest.of(HARD, sampling=SamplingParams(max_tokens=70, n=2))
    assert run(two, **counted).cloud_tokens == 30 + 2 * 70
    assert run(HARD, **counted).cloud_tokens == 30 + assumed


def test_a_request_larger_than_the_bucket_is_told_so() -> None:
    assert "never holds" in run(HARD, quota=QuotaView(available=5, capacity=5, refill_per_s=1)).why
    assert "enough in" in run(HARD, quota=QuotaView(available=5, capacity=5_000, refill_per_s=1)).why


# ---- 5 complexity, 7 plan --------------------------------------------------------------------------------------


def test_drafting_follows_the_plan_and_the_policy() -> None:
    fast = SpeculationFacts(rtt_s=0.01, draft_s=(0, 0.005, 0.01, 0.015, 0.02), verify_s=(0.03,) + (0.035,) * 4, acceptance=0.9)
    slow = replace(fast, rtt_s=0.5)
    auto, off = Policy.default(), Policy.parse('[speculation]\nmode = "off"')
    assert way(DRAFTED, policy=auto, speculation=fast) == ("speculative", "drafted", "speculation.auto")
    assert way(DRAFTED, policy=auto, speculation=slow)[:2] == ("cloud", "hard")
    assert way(DRAFTED, policy=auto, speculation=SpeculationFacts())[:2] == ("cloud", "hard")
    assert way(DRAFTED, policy=DRAFTING, speculation=slow)[:2] == ("speculative", "drafted")
    assert way(DRAFTED, policy=DRAFTING, speculation=None)[:2] == ("cloud", "hard")  # the two share no vocabulary, say
    assert way(DRAFTED, policy=off, speculation=fast)[:2] == ("cloud", "hard")
    plan = run(DRAFTED, policy=auto, speculation=fast).plan
    assert plan is not None and plan.draft_len == 4


def test_bands_follow_the_policy() -> None:
    all_edge = Policy.parse("[complexity]\ncascade_from = 1\nhard_from = 1")
    no_cascade = Policy.parse("[complexity]\ncascade_from = 0.5\nhard_from = 0.5")
    all_cloud = Policy.parse("[complexity]\ncascade_from = 0\nhard_from = 0")
    assert way(HARD, policy=all_edge)[:2] == ("edge", "simple")
    assert {way(prompt, policy=no_cascade)[0] for prompt in (SIMPLE, UNCERTAIN, DRAFTED, HARD)} == {"edge", "cloud"}
    assert way(SIMPLE, policy=all_cloud)[:2] == ("cloud", "hard")
    never_too_hard = Policy.parse("[privacy]\ntoo_hard_from = 1.0")
    assert way(PRIVATE_AND_HARD, policy=never_too_hard)[:2] == ("edge", "private")


# ---- what a decision says --------------------------------------------------------------------------------------


def test_a_decision_is_printed_with_six_keys_and_no_word_of_the_request() -> None:
    decision = run(PRIVATE)
    shown = json.loads(decision.to_json())
    assert list(shown) == ["route", "reason", "rule", "scores", "expected", "provenance"]
    assert shown["scores"] == {"complexity": decision.scores.complexity, "confidence": None, "privacy": "local_only"}
    assert shown["expected"] == {"edge": None, "cloud": None, "cascade": None, "speculative": None}
    assert shown["provenance"] == {"policy_hash": DRAFTING.hash, "tokens": "estimated", "calibration_id": None}


def test_no_log_error_repr_or_json_holds_private_text(caplog: pytest.LogCaptureFixture) -> None:
    """Like row H69: a prompt with mail, phone and card leaves none of them anywhere."""
    secrets = ("anna.smith@example.com", "415-555-0123", "4111 1111 1111 1111", "5eCr3t")
    prompt = f"{secrets[0]} {secrets[1]} {secrets[2]} password={secrets[3]}"
    with caplog.at_level(logging.DEBUG):
        decision = run(prompt)
        shown = f"{decision!r} {decision.to_json().decode()} {decision.why} {RouteRequest.of(prompt)!r}"
        for bad in (
            [{"role": prompt, "content": "x"}],
            [{"role": "user", "content": prompt + "\ud800"}],
            [{"role": "user", prompt: prompt}],
        ):
            with pytest.raises(InvalidRequest) as caught:
                RouteRequest.of(bad)
            shown += f"{caught.value} {caught.value!r} {caught.value.hint} {caught.value.__cause__!r} {caught.value.__context__!r}"
    for secret in secrets:
        assert secret not in shown + caplog.text


def test_tokens_are_counted_where_a_tokenizer_is_given_and_else_estimated() -> None:
    assert run(SIMPLE, count_tokens=lambda request: 9).provenance.tokens == "exact"
    assert run(SIMPLE, count_tokens=lambda request: 9).prompt_tokens == 9
    text = "é" * 90  # 180 bytes: 50 tokens, and 6 for the message
    assert run(text).prompt_tokens == 56

    def broken(request: RouteRequest) -> int:
        raise ValueError("no template")

    assert run(SIMPLE, count_tokens=broken).provenance.tokens == "estimated"
    assert run(SIMPLE, count_tokens=lambda request: -1).provenance.tokens == "estimated"


def test_expected_costs_are_worked_out_where_all_numbers_are_known() -> None:
    costs = CostModel(0.01, 0.1, 0.001, 0.02, price_in=1e-6, price_out=2e-6)
    link = LinkState(reachable=True, rtt_s=0.05)
    facts = {"costs": costs, "link": link, "count_tokens": lambda request: 100}
    expected = run(RouteRequest.of(HARD, max_tokens=10), **facts).expected
    assert expected["edge"] == Expected(pytest.approx(2.0), 0, 0.0)
    assert expected["cloud"] == Expected(pytest.approx(0.05 + 0.1 + 0.2), 110, pytest.approx(1.2e-4))
    assert expected["cascade"] == Expected(pytest.approx(2.35), 110, pytest.approx(1.2e-4))
    assert expected["speculative"] is None  # the link is not measured
    measured = SpeculationFacts(rtt_s=0.05, draft_s=(0.0, 0.01), verify_s=(0.02, 0.02), acceptance=1.0)
    expected = run(RouteRequest.of(HARD, max_tokens=10), **facts, speculation=measured).expected
    assert expected["speculative"] == Expected(pytest.approx(0.05 + 0.1 + 10 * (0.01 + 0.05 + 0.02) / 2), 110, pytest.approx(1.2e-4))
    assert run(RouteRequest.of(HARD, max_tokens=10), **{**facts, "costs": CostModel(0.01, 0.1)}).expected["cloud"] is None
    private = run(RouteRequest.of(PRIVATE, max_tokens=10), **facts).expected
    assert private["edge"] is not None and private["cloud"] is private["cascade"] is private["speculative"] is None


def test_falling_back_is_deciding_again_with_the_facts_changed() -> None:
    assert way(DRAFTED)[0] == "speculative"
    assert way(DRAFTED, link=OFFLINE)[:2] == ("edge", "cloud_unreachable")
    assert way(SIMPLE, device=NO_DEVICE)[:2] == ("cloud", "edge_unavailable")
    assert way(PRIVATE, device=NO_DEVICE)[0] == "refuse"


# ---- any input -------------------------------------------------------------------------------------------------

ANY_TEXT = st.text(alphabet=st.characters(), max_size=300)  # lone surrogates too
PART = st.one_of(
    ANY_TEXT, st.none(), st.integers(), st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url"]), "text": ANY_TEXT})
)
CONTENT = st.one_of(ANY_TEXT, st.none(), st.lists(PART, max_size=4), st.integers(), st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2))
CALL = st.fixed_dictionaries({"id": ANY_TEXT, "function": st.fixed_dictionaries({"name": ANY_TEXT, "arguments": ANY_TEXT})})
ANY_MESSAGE = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "tool", "nobody"]), "content": CONTENT},
        optional={"name": ANY_TEXT, "tool_calls": st.lists(CALL, max_size=2), "tool_call_id": ANY_TEXT, "extra": CONTENT},
    ),
)


@given(messages=st.one_of(ANY_TEXT, st.none(), st.lists(ANY_MESSAGE, max_size=4)))
def test_no_input_makes_decide_raise(messages: object) -> None:
    """Wrong structure is refused when the request is made; what was made is decided, and twice the same."""
    try:
        request = RouteRequest.of(messages)
    except InvalidRequest:
        return
    first = run(request)
    assert first.to_json() == run(request).to_json()
    assert first.route in ("edge", "cloud", "cascade", "speculative", "refuse")


@given(text=ANY_TEXT)
def test_a_message_made_by_hand_is_decided_too(text: str) -> None:
    run(RouteRequest((Message("user", text),)))
    run(RouteRequest((Message("tool", None, name=text, tool_call_id=text, unreadable=(text,)),), tools=(text,)))
    run(RouteRequest(()))


@pytest.mark.parametrize("text", ["", "\x00", "a" * 3_000_000, "\U0010ffff" * 100_000, "9" * 100_000, "\n" * 100_000, "{" * 100_000])
def test_huge_and_empty_texts_are_decided(text: str) -> None:
    run(text)


def test_the_router_knows_no_clock_no_random_source_and_no_network() -> None:
    forbidden = {"time", "random", "secrets", "datetime", "socket", "ssl", "asyncio", "urllib", "http", "aiohttp", "requests", "subprocess"}
    for path in (Path(__file__).resolve().parents[2] / "router").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            assert not {name.split(".")[0] for name in names} & forbidden, path.name


def test_deciding_opens_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[object] = []
    monkeypatch.setattr("socket.socket", lambda *args, **options: opened.append(args))
    for prompt in (SIMPLE, UNCERTAIN, DRAFTED, HARD, PRIVATE, PRIVATE_AND_HARD):
        run(prompt)
    assert opened == []
