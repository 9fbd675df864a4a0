"""A conversation may go with placeholders in place of what was found; if anything is left, it stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hybrid.router.cascade import resolve_cascade
from hybrid.router.confidence.judgement import judge
from hybrid.router.decision import Decision
from hybrid.router.detect import search as search_module
from hybrid.router.detect.finding import Finding
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import LocalOnly, Shareable, assess, clear
from hybrid.router.redact import fully
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.redact.restore import restored
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.deciding import HARD, NO_DEVICE, OFFLINE, SIMPLE, UNCERTAIN, run
from hybrid.tests.support.redacting import mapping
from hypothesis import given
from hypothesis import strategies as st

KINDS = '[privacy]\nemail = "redact"\nphone = "redact"\ncard = "redact"\niban = "redact"\nip = "redact"\n'
POLICY = Policy.parse(KINDS + '[speculation]\nmode = "always"\n')
JANE, PHONE, CARD = "jane@example.com", "+49 30 1234567", "4111 1111 1111 1111"
SAID = f"Write to {JANE}. "


def ask(prompt: Any, into: RedactionMapping | None = None, **facts: object) -> Decision:
    return run(prompt, **{"policy": POLICY, "redaction": into or mapping(), **facts})


@pytest.mark.parametrize(
    ("prompt", "facts", "route"),
    [
        (SAID + HARD, {}, "cloud"),
        (SAID + HARD, {"policy": Policy.parse(KINDS + '[speculation]\nmode = "always"\ndraft_below = 1.0')}, "speculative"),
        (SAID + UNCERTAIN, {}, "cascade"),
        (SAID + SIMPLE, {"device": NO_DEVICE}, "cloud"),
    ],
)
def test_what_the_cloud_gets_holds_placeholders_on_every_way(prompt: str, facts: dict[str, Any], route: str) -> None:
    decision = ask(prompt, **facts)
    assert (decision.route, decision.reason, decision.scores.privacy) == (route, "redacted", "redact")
    assert dict(decision.assessment.findings) == dict(decision.replaced) == {"email": 1}
    assert decision.why.endswith("; placeholders are sent for 1 email")
    assert decision.shareable is not None
    placeholder = mapping().placeholder("email", JANE).text
    assert decision.shareable.value.messages[0].content == prompt.replace(JANE, placeholder)
    shown = json.loads(decision.to_json())
    assert shown["replaced"] == {"email": 1}
    assert JANE not in f"{decision!r}{decision.to_json()!r}" and placeholder not in f"{decision!r}{decision.to_json()!r}"


def test_the_device_alone_needs_no_placeholders() -> None:
    for decision in (ask(SAID + SIMPLE), ask(SAID + HARD, link=OFFLINE)):
        assert (decision.route, decision.scores.privacy, dict(decision.replaced)) == ("edge", "redact", {})
        assert decision.reason in ("simple", "cloud_unreachable") and decision.shareable is None


def test_deciding_again_gives_the_same_decision() -> None:
    into = mapping()
    first, second = ask(SAID + HARD, into), ask(SAID + HARD, into)
    assert first.shareable is not None and second.shareable is not None
    assert first.shareable.value == second.shareable.value
    assert first.report() == second.report()


def test_a_cascade_that_keeps_the_devices_answer_sends_nothing_and_says_so() -> None:
    decision = ask(SAID + UNCERTAIN)
    kept, handed = (resolve_cascade(decision, judge(sure, POLICY.confidence, None, "text")) for sure in (0.99, 0.0))
    assert (kept.route, kept.reason, dict(kept.replaced)) == ("edge", "simple", {})
    assert (handed.route, handed.reason, dict(handed.replaced)) == ("cascade", "redacted", {"email": 1})


@pytest.mark.parametrize(
    "request_",
    [
        RouteRequest.of(f"{SAID} I have cancer."),
        RouteRequest.of(SAID, model=f"for {JANE}"),
        RouteRequest.of([{"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": SAID}]}]),
    ],
)
def test_what_no_placeholder_can_stand_for_keeps_all_of_it_on_the_device(request_: RouteRequest) -> None:
    cleared = clear(request_, POLICY, "public", mapping())
    assert isinstance(cleared, LocalOnly) and cleared.assessment.verdict == "local_only"


def test_a_secret_blocks_what_could_else_be_redacted() -> None:
    decision = ask(f"{SAID} AKIAIOSFODNN7EXAMPLE")
    assert (decision.route, decision.reason) == ("refuse", "blocked")


@pytest.mark.parametrize("floor", ["public", "redact", "local_only", "block"])
def test_a_conversation_is_never_less_private_than_it_was(floor: Any) -> None:
    for text, own in (("continue", "public"), (SAID, "redact")):
        cleared = clear(RouteRequest.of(text), POLICY, floor, mapping())
        assert isinstance(cleared, Shareable) == (floor in ("public", "redact"))
        assert cleared.assessment.verdict == max(own, floor, key=("public", "redact", "local_only", "block").index)


def test_a_later_turn_keeps_its_placeholders_and_hides_what_only_an_earlier_one_showed_to_be_a_value() -> None:
    into = mapping()
    ask(f"Call me: 5550100200. {HARD}", into)
    decision = ask(f"Is 5550100200 a prime number? {HARD}", into, privacy_floor="redact")
    assert decision.shareable is not None
    assert decision.shareable.value.messages[0].content == f"Is {into.placeholder('phone', '5550100200').text} a prime number? {HARD}"
    nothing = ask(HARD, into, privacy_floor="redact")
    assert (nothing.reason, nothing.scores.privacy, dict(nothing.replaced)) == ("hard", "redact", {})


def test_without_a_mapping_it_stays() -> None:
    decision = run(SAID + SIMPLE, policy=POLICY)
    assert (decision.route, decision.reason, decision.scores.privacy) == ("edge", "private", "local_only")
    assert decision.why == "stays on the device (email, not redacted)"
    forgotten = mapping()
    forgotten.forget()
    assert ask(SAID + SIMPLE, forgotten).reason == "private"


def test_more_values_than_a_mapping_holds_stay() -> None:
    many = " ".join(f"a{number}@example.com" for number in range(1_001))
    assert isinstance(clear(RouteRequest.of(many), POLICY, "public", mapping()), LocalOnly)
    assert isinstance(clear(RouteRequest.of(many[:-20]), POLICY, "public", mapping()), Shareable)


def test_what_the_second_search_still_finds_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a redaction went wrong, or where replacing one value makes another one show."""
    monkeypatch.setattr(fully, "redact", lambda request, find, into: fully.Redacted(request, {}))
    assert isinstance(clear(RouteRequest.of(SAID), POLICY, "public", mapping()), LocalOnly)


@pytest.mark.parametrize("kind", ["person", "unreadable"])
def test_what_is_found_in_a_placeholder_itself_is_no_value(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A recogniser of names may take a placeholder for one; one that fails is believed all the same."""
    real = search_module.search

    def and_placeholders(texts: list[str], privacy: Any) -> search_module.Found:
        more = [[Finding(kind, 0, len(text))] if text.startswith("[EMAIL_1") else [] for text in texts]
        return search_module.Found([here + extra for here, extra in zip(real(texts, privacy).findings, more, strict=True)])

    monkeypatch.setattr(fully, "search", and_placeholders)
    cleared = clear(RouteRequest.of(JANE), POLICY, "public", mapping())
    assert isinstance(cleared, Shareable if kind == "person" else LocalOnly)


def test_a_redaction_that_fails_stays_and_says_nothing_of_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> None:
        raise RuntimeError(JANE)

    monkeypatch.setattr(fully, "redact", broken)
    decision = ask(SAID + SIMPLE)
    assert (decision.route, decision.reason) == ("edge", "private")
    assert JANE not in repr(decision)


def test_tokens_are_those_of_the_longer_of_what_is_said_and_what_is_sent() -> None:
    decision = ask(SAID + HARD, count_tokens=lambda request: 90 if JANE in (request.messages[0].content or "") else 100)
    assert (decision.prompt_tokens, decision.provenance.tokens) == (100, "exact")
    assert ask(SAID + HARD, count_tokens=lambda request: 90 if JANE in (request.messages[0].content or "") else 80).prompt_tokens == 90


def test_every_kind_is_replaced_by_its_own_and_settings_stay() -> None:
    text = f"{JANE}, {PHONE}, {CARD}, DE89370400440532013000, 81.2.69.142"
    request = RouteRequest.of(text, sampling=SamplingParams(seed=5, max_tokens=7), tools=[{"name": "f"}], user="u")
    cleared = clear(request, POLICY, "public", into := mapping())
    assert isinstance(cleared, Shareable)
    assert [placeholder.kind for placeholder, _ in into.entries()] == ["email", "phone", "card", "iban", "ip"]
    assert cleared.value.messages[0].content == ", ".join(placeholder.text for placeholder, _ in into.entries())
    assert (cleared.value.sampling, cleared.value.tools, cleared.value.user) == (request.sampling, request.tools, "u")


pieces = st.sampled_from(
    [
        JANE,
        PHONE,
        CARD,
        "bob@example.com",
        "81.2.69.142",
        "https://x.example/?",
        "//",
        " ",
        "\n",
        "=",
        "password",
        "call ",
        "<",
        ">",
        "[",
        "]",
        "4",
        "a",
    ]
)


@given(st.lists(pieces, max_size=14).map("".join), st.lists(pieces, max_size=6).map("".join), st.data())
def test_whatever_is_sent_holds_nothing_to_find_and_comes_back_as_it_was(text: str, argument: str, data: st.DataObject) -> None:
    call = {
        "id": "1",
        "function": {"name": "f", "arguments": data.draw(st.sampled_from([argument, json.dumps({"a": argument, "b": [1]})]))},
    }
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": argument, "tool_calls": [call]}]
    request, into = RouteRequest.of(messages), mapping()
    cleared = clear(request, POLICY, "public", into)
    assert isinstance(cleared, Shareable) == (cleared.assessment.verdict in ("public", "redact"))
    if isinstance(cleared, Shareable):
        sent = cleared.value.messages
        assert assess(cleared.value, POLICY).verdict == "public"
        assert [restored(one.content or "", into.values()) for one in sent] == [text, argument]
    run(request, policy=POLICY, redaction=into)  # never raises
