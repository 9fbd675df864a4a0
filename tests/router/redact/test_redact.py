"""Every text of a request is redacted, whatever its shape, and stays what it was otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hybrid.router.detect.finding import Finding
from hybrid.router.redact.restore import restored
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.redacting import mails, mapping, redact_all, redacted
from hypothesis import given
from hypothesis import strategies as st

JANE, BOB = "jane@example.com", "bob@example.com"


def test_every_place_of_a_request_loses_its_values() -> None:
    call = {"id": f"call-{JANE}", "function": {"name": "send", "arguments": json.dumps({"to": JANE, "cc": [BOB], "n": 1})}}
    request = RouteRequest.of(
        [
            {"role": "system", "content": f"You serve {JANE}"},
            {"role": "user", "content": [{"type": "text", "text": f"Ask {BOB}"}, {"type": "text", "text": "now"}], "name": JANE},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": f"sent to {BOB}", "tool_call_id": f"call-{JANE}"},
        ],
        sampling=SamplingParams(stop=(BOB, "\n")),
        tools=[{"type": "function", "function": {"name": "send", "description": f"for {JANE}", "parameters": {}}}],
        model="big",
    )
    into = mapping()
    found = redact_all(request, into)
    sent = found.request
    assert not [text for text in sent.texts() if "example.com" in text]
    jane, bob = (into.placeholder("email", value) for value in (JANE, BOB))
    assert [message.content for message in sent.messages] == [f"You serve {jane.text}", f"Ask {bob.text}\nnow", None, f"sent to {bob.text}"]
    assert sent.messages[1].name == jane.bare
    assert sent.messages[2].tool_calls[0].id == sent.messages[3].tool_call_id == f"call-{jane.bare}"
    assert json.loads(sent.messages[2].tool_calls[0].arguments) == {"to": jane.text, "cc": [bob.text], "n": 1}
    assert json.loads(sent.tools[0])["function"]["description"] == f"for {jane.text}"
    assert sent.sampling.stop == (bob.text, "\n")
    assert (sent.model, sent.user, sent.max_tokens) == ("big", "local", None)
    assert dict(found.replaced) == {"email": 10}
    assert redact_all(request, into).request == sent  # the same again


def test_a_number_that_is_a_value_becomes_a_string_of_the_json() -> None:
    def cards(text: str) -> list[Finding]:
        at = text.find("4111")
        return [Finding("card", at, at + 16)] if at >= 0 and "card" in text else []

    arguments = '{ "card" : 4111111111111111 , "k\\u0065y": "caf\\u00e9", "x": -1.5e3}'
    call = {"id": "1", "function": {"name": "pay", "arguments": arguments}}
    into = mapping()
    sent = redact_all(RouteRequest.of([{"role": "assistant", "tool_calls": [call]}]), into, cards).request
    card = into.placeholder("card", "4111111111111111").text
    assert sent.messages[0].tool_calls[0].arguments == arguments.replace("4111111111111111", f'"{card}"')


json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=6), st.sampled_from([JANE, f'"{BOB}\\'])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.text(max_size=4), st.just(JANE)), inner, max_size=3)),
    max_leaves=8,
)


def put_back(value: Any, values: Any) -> Any:
    if isinstance(value, str):
        return restored(value, values)
    if isinstance(value, list):
        return [put_back(item, values) for item in value]
    return {put_back(key, values): put_back(item, values) for key, item in value.items()} if isinstance(value, dict) else value


@given(json_values, st.booleans())
def test_json_stays_json_and_means_the_same(value: Any, ascii_only: bool) -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": json.dumps(value, ensure_ascii=ascii_only)}}
    into = mapping()
    sent = redact_all(RouteRequest.of([{"role": "assistant", "tool_calls": [call]}]), into).request.messages[0].tool_calls[0].arguments
    assert "example" not in sent
    assert put_back(json.loads(sent), into.values()) == value


@pytest.mark.parametrize("arguments", [f"to {JANE}", f'{{"to": "{JANE}"', f'"{JANE}" "{JANE}"', "[" * 5_000 + JANE])
def test_arguments_that_are_no_json_are_redacted_as_text(arguments: str) -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
    into = mapping()
    sent = redact_all(RouteRequest.of([{"role": "assistant", "tool_calls": [call]}]), into).request.messages[0].tool_calls[0].arguments
    assert sent == arguments.replace(JANE, into.placeholder("email", JANE).text)


def test_what_was_found_once_is_replaced_where_no_detector_would_find_it() -> None:
    def said(text: str) -> list[Finding]:
        at = text.find("5550100200")
        return [Finding("phone", at, at + 10)] if "call" in text else []

    into = mapping()
    request = RouteRequest.of(
        [{"role": "assistant", "content": "5550100200 it is, not 55501002009."}, {"role": "user", "content": "call 5550100200"}]
    )
    sent = redact_all(request, into, said).request
    phone = into.placeholder("phone", "5550100200").text
    assert [message.content for message in sent.messages] == [f"{phone} it is, not 55501002009.", f"call {phone}"]
    assert redacted("and 5550100200?", into, said) == f"and {phone}?"


def test_an_answer_that_was_filled_in_goes_out_again_with_the_same_placeholders() -> None:
    into = mapping()
    first = redacted(f"Write to {JANE} and {BOB}", into)
    answer = restored(first.replace("Write to", "I wrote to"), into.values())
    assert answer == f"I wrote to {JANE} and {BOB}"
    assert redacted(answer, into) == first.replace("Write to", "I wrote to")


def test_a_value_inside_an_address_of_the_web_takes_the_address_with_it() -> None:
    into = mapping()
    text = f"See https://x.example/?a={JANE}&b={BOB} or ask {JANE}."
    sent = redacted(text, into)
    link, jane = into.placeholder("url", f"https://x.example/?a={JANE}&b={BOB}"), into.placeholder("email", f"{JANE}")
    assert sent == f"See {link.text} or ask {jane.text}."
    assert restored(sent, into.values()) == text
    assert redacted("See https://x.example/ please", into) == "See https://x.example/ please"


@pytest.mark.parametrize(
    ("places", "pieces"),
    [
        ([(0, 4, "email"), (2, 6, "phone")], ["0123456789"[0:6]]),
        ([(0, 6, "email"), (2, 4, "phone")], ["012345"]),
        ([(0, 3, "email"), (3, 6, "phone")], ["012", "345"]),
        ([(0, 3, "email"), (0, 3, "phone")], ["012"]),
    ],
)
def test_findings_that_overlap_never_leave_a_part_behind(places: list[tuple[int, int, str]], pieces: list[str]) -> None:
    into = mapping()
    sent = redacted("0123456789", into, lambda text: [Finding(kind, start, end) for start, end, kind in places])
    assert sorted(into.values().values()) == sorted(pieces)
    assert restored(sent, into.values()) == "0123456789"


@pytest.mark.parametrize(
    ("stop", "is_sent"),
    [(stop, True) for stop in ("\n", ".", "END", "@", "x]")] + [(stop, False) for stop in ("[", "see [", "mail", "_1_", "] and")],
)
def test_a_stop_string_that_could_end_an_answer_inside_a_placeholder_is_not_sent(stop: str, is_sent: bool) -> None:
    into = mapping()
    assert "x" not in into.placeholder("email", JANE).suffix[-1]
    sent = redact_all(RouteRequest.of(f"Write to {JANE}", sampling=SamplingParams(stop=(stop,))), into, mails).request
    assert sent.sampling.stop == ((stop,) if is_sent else ())
