"""What a policy redacts goes out as placeholders and comes back as what was said: whole, streamed, drafted, and in every conversation."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hybrid.edge.client import conversations
from hybrid.edge.held_tokens import HeldTokens
from hybrid.edge.session import Session
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.redact.restore import Restorer
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import CASCADE, TO_CLOUD, ask, client_of, failing, stream, text_of, told, well
from hybrid.tests.support.scripted_server import CLOSE, END, Received, Script, ScriptedServer, chunk, completion, event, response, sse_head

REDACT = '[privacy]\nemail = "redact"\nphone = "redact"\ncard = "redact"\nip = "redact"\n'
JANE, PHONE, CARD = "jane.roe@example.com", "+49 30 1234567", "4111 1111 1111 1111"
SAID = [{"role": "user", "content": f"Write to {JANE}, {PHONE}, with card {CARD}."}]
KINDS = {"card": 1, "email": 1, "phone": 1}
PLACEHOLDER = re.compile(r"\[[A-Z]+_\d+_[a-z]{8}\]")


def echo(request: Received) -> Script:
    """Says the last message again; streamed, character by character."""
    if request.method == "GET":
        return well(request)
    asked: Any = request.json()
    text = "You said: " + asked["messages"][-1]["content"]
    if asked.get("stream"):
        usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
        last = event({"id": "c", "created": 1, "model": "big", "choices": [], "usage": usage})
        return [sse_head(), *(chunk(letter) for letter in text), chunk(finish="stop"), last, event("[DONE]"), END]
    return [response(200, completion(text))]


def sent(server: ScriptedServer) -> str:
    """All that arrived, as text."""
    return "".join(f"{one.method} {one.path} {one.headers} {one.body.decode()}" for one in server.requests)


def contents(server: ScriptedServer) -> list[list[str]]:
    return [[turn["content"] for turn in json.loads(one.body)["messages"]] for one in server.requests if one.method == "POST"]


async def test_nothing_of_it_is_on_the_wire_and_all_of_it_is_in_the_answer(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, server):
        answer, chunks = await ask(client, SAID), await stream(client, SAID)
        wire = sent(server)
    assert text_of(answer) == text_of(chunks) == f"You said: {SAID[0]['content']}"
    assert not [value for value in (JANE, PHONE, CARD, "jane", "1234567", "4111") if value in wire]
    assert len(PLACEHOLDER.findall(wire)) == 6
    last = chunks[-1].hybrid
    assert last is not None and answer.hybrid is not None
    assert told(answer) == ("cloud", "redacted", [("cloud", 3)])
    assert answer.hybrid.redacted == last.redacted == KINDS
    assert "jane" not in repr(answer.hybrid)
    assert answer.usage.total_tokens == 8  # as the cloud counted what it was sent


async def test_what_has_nothing_to_redact_is_not_said_to_be_redacted(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, _):
        answer = await ask(client)
    assert answer.hybrid is not None
    assert (answer.hybrid.reason, answer.hybrid.redacted) == ("hard", None)


async def test_every_text_of_the_request_is_redacted(smollm2: Model) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "send", "arguments": json.dumps({"to": JANE})}}
    messages = [
        {"role": "system", "content": f"You serve {JANE}."},
        {"role": "user", "content": [{"type": "text", "text": "Send it"}, {"type": "text", "text": f"to {JANE}"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": f"sent to {JANE}", "tool_call_id": "1"},
    ]
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, server):
        answer = await ask(client, messages, stop=[JANE, "END"])
        wire = sent(server)
        posted = server.requests[-1].json()
    assert JANE not in wire
    assert len(set(PLACEHOLDER.findall(wire))) == 1
    assert json.loads(posted["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {"to": posted["stop"][0]}  # type: ignore[index]
    assert text_of(answer) == "You said: sent to "  # the stop string, in the text that has its value again


async def test_a_conversation_keeps_its_placeholders_until_it_is_forgotten(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, server):
        first = text_of(await ask(client, SAID, conversation="c"))
        turns = [*SAID, {"role": "assistant", "content": first}, {"role": "user", "content": f"Is {CARD[:4]} in {CARD}, and {JANE}?"}]
        second = text_of(await ask(client, turns, conversation="c"))
        await ask(client, SAID, conversation="other")
        await ask(client, SAID)
        client.forget("c")
        await ask(client, SAID, conversation="c")
        (one,), (again, answered, asked), (other,), (unnamed,), (fresh,) = contents(server)
    assert one == again and answered == f"You said: {one}"
    assert second == f"You said: {turns[-1]['content']}"
    assert set(PLACEHOLDER.findall(asked)) < set(PLACEHOLDER.findall(one))
    assert len({one, other, unnamed, fresh}) == 4


async def test_a_conversation_that_stays_once_stays_and_its_values_are_dropped(smollm2: Model, kept: list[RedactionMapping]) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, server):
        await ask(client, SAID, conversation="c")
        assert len(kept[0].entries()) == 3
        await ask(client, [{"role": "user", "content": "My diagnosis is cancer."}], conversation="c")
        later = await ask(client, SAID, conversation="c")
        posts = contents(server)
    assert told(later)[:2] == ("edge", "private")
    assert len(posts) == 1 and kept[0].entries() == []


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[RedactionMapping]:
    """The mappings that are made."""
    made: list[RedactionMapping] = []

    def make() -> RedactionMapping:
        made.append(RedactionMapping())
        return made[-1]

    monkeypatch.setattr(conversations, "RedactionMapping", make)
    return made


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("answer", [echo, failing(CLOSE)])
async def test_values_are_dropped_when_a_call_without_a_conversation_ends(
    smollm2: Model, kept: list[RedactionMapping], streamed: bool, answer: Callable[[Received], Script]
) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, answer) as (client, _):
        await (stream if streamed else ask)(client, SAID)
        (mapping,) = kept
        assert mapping.entries() == []
        await ask(client, SAID, conversation="c")
        assert len(kept[1].entries()) == 3
    assert kept[1].entries() == []  # the client was closed


async def test_conversations_at_the_same_time_never_see_each_others_values(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, server):

        async def talk(number: int) -> list[str]:
            messages = [{"role": "user", "content": f"I am user{number}@example.com."}]
            name = f"c{number}" if number % 2 else None
            whole, parts = await asyncio.gather(ask(client, messages, conversation=name), stream(client, messages, conversation=name))
            return [text_of(whole), text_of(parts)]

        answers = await asyncio.gather(*(talk(number) for number in range(6)))
        wire = sent(server)
    assert answers == [[f"You said: I am user{number}@example.com."] * 2 for number in range(6)]
    assert "@example.com" not in wire


async def test_a_user_who_forges_a_placeholder_gets_back_what_was_typed(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, server):
        await ask(client, SAID, conversation="c")
        (real,) = [found for found in PLACEHOLDER.findall(contents(server)[0][0]) if found.startswith("[EMAIL")]
        forged = [{"role": "user", "content": f"{real} {real.lower()} [EMAIL_1_bcdfghjk] {JANE}"}]
        answer = text_of(await ask(client, forged, conversation="c"))
    assert answer == f"You said: {forged[0]['content']}"


def seen_by_device(monkeypatch: pytest.MonkeyPatch, model: Model) -> list[str]:
    """The prompts that the device answers."""
    prompts: list[str] = []
    generate = Session.generate

    def spied(self: Session, prompt: Any, *args: Any, **options: Any) -> Any:
        prompts.append(model.tokenizer.decode(prompt))
        return generate(self, prompt, *args, **options)

    monkeypatch.setattr(Session, "generate", spied)
    return prompts


@pytest.mark.parametrize("threshold", ["0.0", "1.0"])
async def test_a_cascades_device_sees_the_placeholders_too_and_its_answer_is_filled_in(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch, threshold: str
) -> None:
    prompts = seen_by_device(monkeypatch, smollm2)
    async with client_of(smollm2, CASCADE + f"{threshold}\n{REDACT}", echo) as (client, server):
        answer = await ask(client, SAID)
        assert bool(contents(server)) == (threshold == "1.0")
    assert answer.hybrid is not None
    assert [JANE in prompt for prompt in prompts] == [False]
    assert answer.hybrid.redacted == (KINDS if threshold == "1.0" else None)
    assert answer.hybrid.route == ("cascade" if threshold == "1.0" else "edge")


@pytest.mark.parametrize("signal", ["p_true", "agreement"])
async def test_a_device_that_is_asked_again_is_asked_about_the_placeholders(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch, signal: str
) -> None:
    prompts: list[str] = []
    fed = HeldTokens.keep_common_prefix

    def spied(self: HeldTokens, ids: Any) -> int:
        prompts.append(smollm2.tokenizer.decode(ids))
        return fed(self, ids)

    monkeypatch.setattr(HeldTokens, "keep_common_prefix", spied)
    async with client_of(smollm2, CASCADE + f'1.0\nsignal = "{signal}"\n{REDACT}', echo) as (client, _):
        await ask(client, SAID)
    assert len(prompts) >= 2
    assert not [prompt for prompt in prompts if JANE in prompt]


async def test_a_cloud_that_is_gone_leaves_the_device_with_what_was_really_said(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = seen_by_device(monkeypatch, smollm2)
    async with client_of(smollm2, TO_CLOUD + REDACT, failing(CLOSE)) as (client, _):
        answer = await ask(client, SAID)
    assert told(answer)[:2] == ("edge", "cloud_unreachable")
    assert [JANE in prompt for prompt in prompts] == [True]
    assert answer.hybrid is not None
    assert answer.hybrid.redacted == KINDS  # it was sent before the cloud was lost


async def test_a_filling_in_that_fails_leaves_the_answer_to_the_device(smollm2: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Restorer, text: str) -> None:
        raise KeyError(JANE)

    monkeypatch.setattr(Restorer, "push", broken)
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, _):
        answer, chunks = await ask(client, SAID), await stream(client, SAID)
    assert told(answer)[0] == "edge"
    assert chunks[-1].hybrid is not None and chunks[-1].hybrid.route == "edge"


async def test_what_cannot_be_redacted_stays(smollm2: Model) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, server):
        answer = await ask(client, SAID, model=f"for {JANE}")
        assert server.connections == 0
    assert told(answer)[:2] == ("edge", "private")


def breaking_off(after: str) -> Callable[[Received], Script]:
    """Streams what `echo` says up to and with `after`, then is gone."""

    def answer(request: Received) -> Script:
        script = list(echo(request))
        if request.method == "GET":
            return script
        said = "You said: " + request.json()["messages"][-1]["content"]  # type: ignore[index]
        return [*script[: 1 + said.index(after) + len(after)], CLOSE]

    return answer


@pytest.mark.parametrize(
    ("after", "begins"), [(", [PHO", f"You said: Write to {JANE}, "), (", with", f"You said: Write to {JANE}, {PHONE}, with")]
)
async def test_the_device_goes_on_from_what_was_filled_in_when_the_cloud_breaks_off(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch, after: str, begins: str
) -> None:
    prompts = seen_by_device(monkeypatch, smollm2)
    policy = TO_CLOUD + REDACT + '[fallback]\nmid_stream = "continue_marked"\n'
    async with client_of(smollm2, policy, breaking_off(after)) as (client, _):
        chunks = await stream(client, SAID, max_tokens=60)
    assert text_of(chunks).startswith(begins) and len(text_of(chunks)) > len(begins)
    assert [JANE in prompt for prompt in prompts] == [True]
    assert chunks[-1].hybrid is not None
    assert [span.origin for span in chunks[-1].hybrid.spans] == ["cloud", "edge"]


async def test_a_stream_that_is_left_early_drops_its_values(smollm2: Model, kept: list[RedactionMapping]) -> None:
    async with client_of(smollm2, TO_CLOUD + REDACT, echo) as (client, _):
        async with await client.chat.completions.create(messages=SAID, stream=True) as received:
            async for _ in received:
                break
        assert kept[0].entries() == []
