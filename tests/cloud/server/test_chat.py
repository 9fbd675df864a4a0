"""Chat completions, whole and streamed, over a scripted engine."""

import pytest
from hybrid.cloud.engine.scripted import Script
from hybrid.tests.cloud.server.conftest import USER, Start
from hybrid.tests.support.byte_model import rendered


async def test_an_answer_has_openai_shape(start: Start) -> None:
    bench = await start(b"Hi!")
    answer = await bench.chat(seed=7)
    assert answer.status == 200
    body = answer.json
    assert body["id"].startswith("chatcmpl-")
    assert body["object"] == "chat.completion"
    assert body["model"] == "bytes/test"
    (choice,) = body["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hi!", "refusal": None}
    assert choice["finish_reason"] == "stop"
    prompt = len(rendered("Hello"))
    assert body["usage"] == {
        "prompt_tokens": prompt,
        "completion_tokens": 3,
        "total_tokens": prompt + 3,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert body["hybrid"]["seed"] == 7


async def test_a_stream_says_role_then_text_then_end_then_done(start: Start) -> None:
    bench = await start(b"Hi")
    answer = await bench.chat(stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    deltas = [event["choices"][0]["delta"] for event in answer.events]
    assert deltas == [{"role": "assistant", "content": ""}, {"content": "H"}, {"content": "i"}, {}]
    assert [event["choices"][0]["finish_reason"] for event in answer.events] == [None, None, None, "stop"]
    assert len({(event["id"], event["created"], event["model"]) for event in answer.events}) == 1
    assert answer.lines[-1] == "[DONE]"


async def test_every_choice_of_a_stream_has_its_own_role_and_end(start: Start) -> None:
    bench = await start(b"Hi")
    events = (await bench.chat(stream=True, n=3)).events
    for index in range(3):
        own = [event["choices"][0] for event in events if event["choices"][0]["index"] == index]
        assert [choice["delta"].get("role") for choice in own] == ["assistant", None, None, None]
        assert [choice["finish_reason"] for choice in own] == [None, None, None, "stop"]
        assert "".join(choice["delta"].get("content", "") for choice in own) == "Hi"


@pytest.mark.parametrize("options", [{}, None, {"include_usage": False}])
async def test_usage_is_streamed_only_when_asked_for(start: Start, options: object) -> None:
    bench = await start(b"Hi")
    events = (await bench.chat(stream=True, stream_options=options)).events
    assert all(event["usage"] is None for event in events)
    assert all(event["choices"] for event in events)


async def test_usage_comes_once_and_last_with_no_choices(start: Start) -> None:
    bench = await start(b"Hi")
    events = (await bench.chat(stream=True, n=2, stream_options={"include_usage": True})).events
    assert [event["usage"] for event in events[:-1]] == [None] * (len(events) - 1)
    assert events[-1]["choices"] == []
    prompt = len(rendered("Hello"))
    assert events[-1]["usage"]["prompt_tokens"] == prompt, "a prompt counts once, whatever n is"
    assert events[-1]["usage"]["completion_tokens"] == 4
    assert events[-1]["usage"]["total_tokens"] == prompt + 4


async def test_text_before_a_stop_string_is_the_same_whole_and_streamed(start: Start) -> None:
    bench = await start(Script([b"?", b"\n", b"never"]))
    whole = await bench.chat(stop=["\n"])
    streamed = await bench.chat(stop=["\n"], stream=True)
    assert whole.json["choices"][0]["message"]["content"] == streamed.streamed_text == "?"
    assert whole.json["choices"][0]["finish_reason"] == streamed.events[-1]["choices"][0]["finish_reason"] == "stop"


async def test_a_stop_string_over_several_tokens_never_reaches_the_reader(start: Start) -> None:
    bench = await start(b"A B C O P Q R")
    whole = await bench.chat(stop=["O P Q"])
    streamed = await bench.chat(stop=["O P Q"], stream=True)
    assert whole.json["choices"][0]["message"]["content"] == streamed.streamed_text == "A B C "
    assert whole.json["choices"][0]["finish_reason"] == "stop"
    assert bench.engine.tokens == 2 * len("A B C O P Q"), "the engine stopped there, both times"


@pytest.mark.parametrize("text", ["\N{SMILING CAT FACE WITH OPEN MOUTH}", "e\N{COMBINING ACUTE ACCENT}", "\U0001f468‍\U0001f469‍\U0001f467"])
async def test_a_character_split_over_tokens_arrives_whole(start: Start, text: str) -> None:
    raw = text.encode()
    bench = await start(Script([raw[:2], raw[2:]]))
    answer = await bench.chat(stream=True)
    assert answer.streamed_text == text
    assert "\N{REPLACEMENT CHARACTER}" not in answer.raw.decode()
    if len(text) == 1:
        assert [event["choices"][0]["delta"].get("content") for event in answer.events] == ["", text, None]


async def test_max_tokens_ends_with_length_and_the_newer_name_wins(start: Start) -> None:
    bench = await start(b"abcdef")
    answer = await bench.chat(max_tokens=5, max_completion_tokens=2)
    assert answer.json["choices"][0]["message"]["content"] == "ab"
    assert answer.json["choices"][0]["finish_reason"] == "length"


async def test_parts_of_text_are_joined_by_line_ends(start: Start) -> None:
    bench = await start()
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    await bench.chat(messages=[{"role": "user", "content": parts}])
    assert bytes(bench.engine.added[0].prompt_ids).decode() == rendered("one\ntwo")


async def test_an_unseeded_answer_reports_the_seed_that_was_drawn(start: Start) -> None:
    bench = await start()
    whole = await bench.chat()
    streamed = await bench.chat(stream=True)
    assert whole.json["hybrid"]["seed"] == bench.engine.added[0].seed
    seeds = {event["hybrid"]["seed"] for event in streamed.events if event["hybrid"]}
    assert seeds == {bench.engine.added[1].seed}


async def test_a_fault_of_the_engine_is_told_inside_the_stream_and_the_stream_ends_properly(start: Start) -> None:
    bench = await start(Script([b"H", b"i"], finish="error", error="kernel 7 failed"))
    whole = await bench.chat()
    assert whole.status == 500
    assert whole.error["code"] == "engine_failed"
    streamed = await bench.chat(stream=True)
    assert streamed.status == 200
    assert streamed.events[-1]["error"]["code"] == "engine_failed"
    assert streamed.lines[-1] == "[DONE]"


async def test_a_silent_stream_is_kept_alive_by_comments(start: Start) -> None:
    bench = await start(b"Hi", automatic=False, ping_s=0.005)
    async with bench.http.post(bench.url + "/v1/chat/completions", json={"messages": USER, "stream": True}) as response:
        assert response.status == 200
        assert await response.content.readline() == b": ping\n"
        await bench.engine.advance(2)
        rest = (await response.content.read()).decode()
    assert rest.endswith("data: [DONE]\n\n")


async def test_messages_that_the_template_refuses_are_a_400_with_the_rule(start: Start) -> None:
    bench = await start()
    answer = await bench.chat(messages=USER + USER)
    assert answer.status == 400
    assert answer.error["code"] == "template_error"
    assert "roles must alternate" in answer.error["message"]
    assert "retry-after" not in answer.headers
    assert bench.engine.added == []


async def test_a_prompt_is_never_cut(start: Start) -> None:
    bench = await start(b"Hi", max_model_len=64)
    frame = len(rendered(""))
    for length, status in ((54, 200), (64, 200), (65, 400)):
        answer = await bench.chat(messages=[{"role": "user", "content": "needle" + "x" * (length - frame - 6)}], max_tokens=1)
        assert answer.status == status
        if status == 200:
            assert answer.json["usage"]["prompt_tokens"] == length
        else:
            assert answer.error["code"] == "context_length_exceeded"
            assert "65" in answer.error["message"]
            assert "64" in answer.error["message"]
    assert [len(add.prompt_ids) for add in bench.engine.added] == [54, 64]


async def test_an_answer_longer_than_the_context_leaves_is_refused_not_shortened(start: Start) -> None:
    bench = await start(max_model_len=64)
    answer = await bench.chat(max_tokens=64)
    assert answer.status == 400
    assert answer.error["code"] == "context_length_exceeded"
