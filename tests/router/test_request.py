"""A request is checked and frozen when it is made; errors name the field and never show its text."""

import msgspec
import pytest
from hybrid.router.message import Message
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.errors import InvalidRequest, UnsupportedParameter
from hybrid.shared_protocol.openai import Message as Answer
from hybrid.shared_protocol.sampling import SamplingParams

USER = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        (None, "messages"),
        ({}, "messages"),
        ([], "messages"),
        (b"hello", "messages"),
        ([3], "messages.0"),
        ([USER, None], "messages.1"),
        ([{"content": "hello"}], "messages.0.role"),
        ([{"role": "wizard", "content": "hello"}], "messages.0.role"),
        ([{"role": ["user"], "content": "hello"}], "messages.0.role"),
        ([{"role": "user", "content": 7}], "messages.0.content"),
        ([{"role": "user", "content": {"text": "hello"}}], "messages.0.content"),
        ([{"role": "user", "content": [7]}], "messages.0.content.0"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages.0.content.0.text"),
        ([{"role": "user", "content": "half \ud83d"}], "messages.0.content"),
        ([{"role": "user", "content": [{"type": "text", "text": "\udc00"}]}], "messages.0.content.0.text"),
        ([{"role": "assistant", "tool_calls": "x"}], "messages.0.tool_calls"),
        ([{"role": "assistant", "tool_calls": [{}]}], "messages.0.tool_calls.0"),
        ([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]}], "messages.0.tool_calls.0.function.arguments"),
        ([{"role": "tool", "content": "x", "tool_call_id": 4}], "messages.0.tool_call_id"),
    ],
)
def test_a_wrong_message_is_refused_where_it_is_wrong(messages: object, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        RouteRequest.of(messages)
    assert caught.value.param == param
    assert "hello" not in str(caught.value) and "wizard" not in str(caught.value)


@pytest.mark.parametrize("user", ["", "x" * 257, 3, None, "\ud800"])
def test_a_wrong_user_is_refused(user: object) -> None:
    with pytest.raises(InvalidRequest, match="user"):
        RouteRequest.of("hello", user=user)  # type: ignore[arg-type]


@pytest.mark.parametrize("tools", ["x", 3, [{"a": object()}], [object()]])
def test_wrong_tools_are_refused(tools: object) -> None:
    with pytest.raises(InvalidRequest, match="tools"):
        RouteRequest.of("hello", tools=tools)


def test_max_tokens_is_checked_as_the_sampler_checks_it() -> None:
    with pytest.raises(InvalidRequest, match="max_tokens"):
        RouteRequest.of("hello", max_tokens=0)
    assert RouteRequest.of("hello", max_tokens=5, sampling=SamplingParams(temperature=0)).sampling == SamplingParams(
        temperature=0, max_tokens=5
    )


def test_a_field_that_is_not_served_is_named_not_dropped() -> None:
    with pytest.raises(UnsupportedParameter):
        RouteRequest.of([{**USER, "cache_control": {"type": "ephemeral"}}])
    empty = {"refusal": None, "annotations": [], "audio": None, "function_call": None}
    assert RouteRequest.of([{**USER, **empty}]).messages == RouteRequest.of("hello").messages


def test_text_parts_are_joined_and_other_parts_are_remembered_by_type() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "two"}]
    request = RouteRequest.of([{"role": "user", "content": parts}])
    assert request.messages == (Message("user", "one\ntwo", unreadable=("image_url",)),)
    assert request.unreadable == ("image_url",)
    with pytest.raises(UnsupportedParameter):  # nothing is dropped silently
        request.to_openai()


def test_null_content_beside_a_tool_call_survives_the_round_trip() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"city": "Oslo"}'}}
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "7 C", "tool_call_id": "c1"},
    ]
    assert RouteRequest.of(messages).to_openai() == messages


def test_our_own_answer_can_be_appended_to_the_history() -> None:
    assert RouteRequest.of([USER, Answer(role="assistant", content="hi")]).messages[1] == Message("assistant", "hi")


def test_nothing_of_a_request_can_change() -> None:
    request = RouteRequest.of("hello")
    with pytest.raises(AttributeError):
        request.messages = ()  # type: ignore[misc]
    tool = {"name": "f"}
    request = RouteRequest.of("hello", tools=[tool])
    tool["name"] = "bob@example.com"
    assert "bob" not in "".join(request.texts())


def test_every_string_that_would_be_sent_is_searched() -> None:
    call = {"id": "id-1", "function": {"name": "f-1", "arguments": '{"a": ["nested\\n1", {"key": 2.5}]}'}}
    messages = [
        {"role": "assistant", "content": "said", "name": "who", "tool_calls": [call]},
        {"role": "tool", "content": "r", "tool_call_id": "id-2"},
    ]
    tools = [{"name": "t-1", "parameters": {"enum": ["e-1"]}}]
    found = "\n".join(RouteRequest.of(messages, tools=tools, sampling=SamplingParams(stop=("s-1",)), model="m-1").texts())
    for part in ("said", "who", "id-1", "f-1", "nested\n1", "key", "2.5", "id-2", "t-1", "e-1", "s-1", "m-1"):
        assert part in found


def test_a_key_that_occurs_twice_is_searched_twice() -> None:
    arguments = '{"to": "first", "to": "second"}'  # sent as it is, though JSON decodes the second only
    message = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}]}
    assert "first" in "\n".join(RouteRequest.of([message]).texts())


def test_what_was_searched_cannot_change_any_more() -> None:
    class Shifty(str):
        def __str__(self) -> str:
            return "another text"

    stop = ["a"]
    request = RouteRequest.of([{"role": "user", "content": Shifty("said")}], sampling=SamplingParams(stop=stop))
    stop.append("b")
    assert request.sampling.stop == ("a",)
    assert type(request.messages[0].content) is str
    assert request.messages[0].content == "said"


@pytest.mark.parametrize("arguments", ["", "{", "9" * 5000, "[" * 100_000, '"\\ud800"', "nul"])
def test_arguments_that_are_no_json_are_searched_as_they_are(arguments: str) -> None:
    message = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}]}
    assert arguments in list(RouteRequest.of([message]).texts())


def test_no_repr_shows_text() -> None:
    call = {"id": "sesame", "function": {"name": "sesame", "arguments": "sesame"}}
    request = RouteRequest.of([{"role": "user", "content": "sesame"}, {"role": "assistant", "content": "sesame", "tool_calls": [call]}])
    shown = repr(request) + repr(request.messages) + repr(request.messages[1].tool_calls)
    assert "sesame" not in shown


def test_tools_are_kept_as_json() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    assert [msgspec.json.decode(text) for text in RouteRequest.of("x", tools=[tool]).tools] == [tool]


@pytest.mark.parametrize("atom", ["\\", "\\u", "\\\\\\u004", "\\n"])
def test_a_reading_of_a_megabyte_is_linear_work(atom: str) -> None:
    """A quadratic one would outlast the suite's limit."""
    text = atom * (1_000_000 // len(atom))
    readings = list(RouteRequest.of(text).readings())
    assert readings == ([] if atom != "\\n" else ["\n" * (len(text) // 2)])
