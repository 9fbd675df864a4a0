"""Any input is decided, and from nothing but the input."""

import ast
import math
from pathlib import Path

import msgspec
import pytest
from hybrid.router.costs import CostModel
from hybrid.router.message import Message
from hybrid.router.plan import SpeculationFacts
from hybrid.router.policy.policy import PRESET, Policy, presets
from hybrid.router.policy.rule import Rule
from hybrid.router.privacy import assess
from hybrid.router.quota import QuotaView
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.request import Moment, RouteRequest
from hybrid.shared_protocol.errors import ConfigError, InvalidRequest
from hybrid.shared_protocol.runtime import DeviceState, LinkState
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.deciding import DRAFTED, DRAFTING, HARD, PRIVATE, PRIVATE_AND_HARD, SIMPLE, UNCERTAIN, run
from hypothesis import given
from hypothesis import strategies as st

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


CONDITION = st.sampled_from(
    (
        "true",
        "code",
        "tokens > 40",
        "tenant == 'acme'",
        "battery < 0.5",
        "1.0 / battery > 0.0",
        "100 / (turns - 1) > 3",
        "language == 'en' || load > 0.5",
        "user.matches('^a+')",
        "reachable && rtt_ms < 50.0",
        "cost > 0.01",
        "complexity > 0.4 && !(task == 'write')",
    )
)
RULES = st.lists(
    st.builds(
        Rule,
        name=st.uuids().map(str),
        when=CONDITION,
        route=st.sampled_from(["edge", "cloud", "cascade", "speculative", "refuse"]),
        priority=st.integers(-3, 3),
        unknown=st.sampled_from(["skip", "match", "refuse"]),
        fallback=st.booleans(),
    ),
    max_size=5,
)


@pytest.mark.parametrize("told_s", [math.inf, math.nan, -1.0, 1e308])
def test_a_cloud_that_asks_to_wait_for_ever_is_merely_busy(told_s: float) -> None:
    decision = run(HARD, quota=QuotaView(0, 0, level="cloud", told_s=told_s))
    assert (decision.route, decision.reason) == ("edge", "quota_degraded")


@pytest.mark.parametrize("counted", [10**400, 2**53 + 1])
def test_a_count_that_no_context_holds_is_none(counted: int) -> None:
    assert run(HARD, count_tokens=lambda request: counted).provenance.tokens == "estimated"


def test_more_tokens_than_there_can_be_are_refused_when_they_are_asked_for() -> None:
    assert run(RouteRequest.of(HARD, max_tokens=2**53)).route == "cloud"  # whose context is not known
    with pytest.raises(InvalidRequest, match="max_tokens must be at most"):
        RouteRequest.of(HARD, max_tokens=10**400)


NUMBER = st.none() | st.floats() | st.integers(-(2**80), 2**80)
DEVICE = st.builds(DeviceState, memory_free_bytes=NUMBER, battery=NUMBER, load=NUMBER, edge_available=st.booleans())
LINK = st.builds(LinkState, reachable=st.booleans(), rtt_s=NUMBER)
PROMPT = st.one_of(ANY_TEXT, st.sampled_from([SIMPLE, UNCERTAIN, DRAFTED, HARD, PRIVATE, PRIVATE_AND_HARD]))


@given(prompt=PROMPT, rules=RULES, device=DEVICE, link=LINK, price=NUMBER, left=st.sampled_from([math.inf, 0.0, -5.0, math.nan, -math.inf]))
def test_whatever_the_rules_nothing_private_leaves_and_no_absent_side_is_asked(
    prompt: str, rules: list[Rule], device: DeviceState, link: LinkState, price: float | None, left: float
) -> None:
    try:
        policy = msgspec.structs.replace(DRAFTING, rules=tuple(rules))
        request = RouteRequest.of(prompt)
    except (ConfigError, InvalidRequest):  # two of them contradict each other; half a surrogate pair
        return
    facts = {
        "policy": policy,
        "device": device,
        "link": link,
        "costs": CostModel(price_in=price, price_out=price),
        "quota": QuotaView(left),
    }
    decision = run(request, **facts)
    assert decision.to_json() == run(request, **facts).to_json()
    touches_cloud = decision.route in ("cloud", "cascade", "speculative")
    assert not touches_cloud or (link.reachable and assess(request, policy).verdict == "public")
    assert device.edge_available or decision.route in ("cloud", "refuse")
    bare = run(request, **{**facts, "policy": DRAFTING})
    assert bare.route != "refuse" or decision.route == "refuse", "no rule opens what is closed"


REDACTING = Policy.parse('[privacy]\nemail = "redact"\ncard = "redact"\nphone = "redact"\n')
NAME = st.none() | ANY_TEXT
TIMES = st.none() | st.lists(st.floats(), max_size=4).map(tuple)
VIEW = st.builds(QuotaView, st.floats(), st.floats(), st.floats(), level=st.sampled_from(["user", "budget", "store"]), told_s=NUMBER)
SURROUNDINGS = st.fixed_dictionaries(
    {
        "policy": st.sampled_from([Policy.default(), DRAFTING, REDACTING, *(Policy.load(PRESET + name) for name in presets())]),
        "device": DEVICE,
        "link": st.builds(LinkState, st.booleans(), NUMBER, NUMBER, NUMBER),
        "quota": VIEW,
        "rejected": VIEW,
        "count_tokens": st.none() | st.integers(-5, 2**70).map(lambda count: lambda request: count),
        "privacy_floor": st.sampled_from(["public", "redact", "local_only", "block"]),
        "costs": st.builds(CostModel, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER),
        "speculation": st.none() | st.builds(SpeculationFacts, NUMBER, NUMBER, TIMES, TIMES, NUMBER, st.floats()),
        "moment": st.none() | st.builds(Moment, st.integers(), st.integers()),
        "edge_model": NAME,
        "cloud_model": NAME,
    }
)


@given(PROMPT, st.lists(ANY_TEXT, max_size=2), st.lists(ANY_TEXT, max_size=2), NAME, SURROUNDINGS, st.booleans())
def test_no_surroundings_make_decide_raise(
    prompt: str, tools: list[str], stop: list[str], model: str | None, facts: dict[str, object], remembered: bool
) -> None:
    """Numbers that are none, clocks that are wrong, tokenizers that count backward, policies that redact, and all of them together."""
    try:
        request = RouteRequest.of(prompt, tools=tools, model=model, sampling=SamplingParams(stop=tuple(stop)))
    except InvalidRequest:
        return
    decision = run(request, **facts, redaction=RedactionMapping.of_a_dry_run() if remembered else None)
    msgspec.json.decode(decision.to_json())
    assert decision.route not in ("cloud", "speculative", "cascade") or facts["privacy_floor"] in ("public", "redact")


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
