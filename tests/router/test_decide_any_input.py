"""Any input is decided, and from nothing but the input."""

import ast
from pathlib import Path

import pytest
from hybrid.router.message import Message
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.errors import InvalidRequest
from hybrid.tests.support.deciding import DRAFTED, HARD, PRIVATE, PRIVATE_AND_HARD, SIMPLE, UNCERTAIN, run
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
