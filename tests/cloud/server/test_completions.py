"""Completions of raw prompts, and the token routes."""

import pytest
from hybrid.cloud.engine.messages import Add
from hybrid.cloud.engine.scripted import Script
from hybrid.tests.cloud.server.conftest import Start


def echo_prompt(add: Add) -> Script:
    """Say the prompt in brackets."""
    return Script([b"[", *(bytes([token]) for token in add.prompt_ids), b"]"])


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        ("abc", ["[abc]"]),
        (["abc", "de"], ["[abc]", "[de]"]),
        ([97, 98], ["[ab]"]),
        ([[97, 98], [99]], ["[ab]", "[c]"]),
    ],
)
async def test_prompts_come_as_text_or_ids_alone_or_many(start: Start, prompt: object, texts: list[str]) -> None:
    bench = await start(echo_prompt)
    whole = (await bench.complete(prompt=prompt)).json
    assert whole["object"] == "text_completion"
    assert [choice["text"] for choice in whole["choices"]] == texts
    assert [choice["index"] for choice in whole["choices"]] == list(range(len(texts)))
    assert whole["usage"]["prompt_tokens"] == sum(len(text) - 2 for text in texts)
    streamed = (await bench.complete(prompt=prompt, stream=True)).events
    for index, text in enumerate(texts):
        own = [event["choices"][0] for event in streamed if event["choices"][0]["index"] == index]
        assert "".join(choice["text"] for choice in own) == text
        assert [choice["finish_reason"] for choice in own][-1] == "stop"
        assert {choice["finish_reason"] for choice in own[:-1]} <= {None}


async def test_n_choices_of_each_prompt_are_numbered_prompt_by_prompt(start: Start) -> None:
    bench = await start(echo_prompt)
    body = (await bench.complete(prompt=["a", "bb"], n=2)).json
    assert [(choice["index"], choice["text"]) for choice in body["choices"]] == [(0, "[a]"), (1, "[a]"), (2, "[bb]"), (3, "[bb]")]
    assert body["usage"]["prompt_tokens"] == 3
    assert body["usage"]["completion_tokens"] == 3 + 3 + 4 + 4


async def test_usage_of_a_stream_has_no_choices_and_comes_before_done(start: Start) -> None:
    bench = await start(b"Hi")
    events = (await bench.complete(stream=True, stream_options={"include_usage": True})).events
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["total_tokens"] == 3
    assert all(event["usage"] is None for event in events[:-1])


async def test_sixteen_tokens_are_the_default(start: Start) -> None:
    bench = await start(b"x" * 40)
    body = (await bench.complete()).json
    assert (body["choices"][0]["text"], body["choices"][0]["finish_reason"]) == ("x" * 16, "length")


async def test_the_default_refuses_no_prompt_that_fits(start: Start) -> None:
    bench = await start(b"x" * 40, max_model_len=30)
    for length, left in ((14, 16), (15, 16), (16, 15), (29, 2), (30, 1)):
        body = (await bench.complete(prompt="p" * length)).json
        assert (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]) == (length, left)
    answer = await bench.complete(prompt="p" * 31)
    assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "context_length_exceeded", "prompt")


async def test_a_prompt_that_is_none_is_refused(start: Start) -> None:
    bench = await start()
    for prompt in ([], "", [""], [[]], [["a"]], ["a", 1], [1.5], [-1], [258], None, {}):
        answer = await bench.complete(prompt=prompt)
        assert answer.status == 400
        assert answer.error["param"].startswith("prompt")
        assert len(answer.raw) < 1_000


async def test_fields_not_served_yet_are_refused(start: Start) -> None:
    bench = await start()
    for name, value in (("best_of", 2), ("suffix", "end"), ("logit_bias", {"1": 1}), ("echo", True)):
        answer = await bench.complete(**{name: value})
        assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "unsupported_parameter", name)


async def test_too_many_choices_are_refused_with_the_limit(start: Start) -> None:
    bench = await start(max_choices=8)
    assert (await bench.complete(prompt=["a"] * 9)).error["param"] == "prompt"
    answer = await bench.complete(prompt=["a"] * 5, n=2)
    assert answer.error["param"] == "n"
    assert "8" in answer.error["message"]


async def test_text_goes_to_ids_and_back(start: Start) -> None:
    bench = await start(max_model_len=100)
    answer = await bench.post("/tokenize", {"prompt": "né", "return_token_strs": True})
    assert answer.json["tokens"] == [110, 195, 169]
    assert answer.json["count"] == 3
    assert answer.json["max_model_len"] == 100
    assert len(answer.json["token_strs"]) == 3
    back = await bench.post("/detokenize", {"tokens": answer.json["tokens"]})
    assert back.json == {"prompt": "né"}


async def test_messages_are_tokenised_as_a_chat_would_be(start: Start) -> None:
    bench = await start()
    messages = [{"role": "user", "content": "Hello"}]
    ids = (await bench.post("/tokenize", {"messages": messages})).json["tokens"]
    await bench.chat(messages=messages)
    assert tuple(ids) == bench.engine.added[0].prompt_ids


@pytest.mark.parametrize("body", [{}, {"prompt": "a", "messages": [{"role": "user", "content": "x"}]}, {"prompt": 5}])
async def test_tokenize_needs_one_of_text_and_messages(start: Start, body: object) -> None:
    assert (await (await start()).post("/tokenize", body)).status == 400


async def test_detokenize_refuses_ids_that_the_vocabulary_does_not_have(start: Start) -> None:
    bench = await start()
    answer = await bench.post("/detokenize", {"tokens": [1, 258]})
    assert (answer.status, answer.error["param"]) == (400, "tokens")


async def test_the_tokenizer_says_what_a_client_needs_to_render_and_to_draft_by_itself(start: Start) -> None:
    bench = await start()
    told = (await bench.get("/tokenizer_info")).json
    model = bench.server.app.service.frontend.model
    assert (told["vocab_size"], told["bos_token"], told["pad_token"]) == (258, "<bos>", None)
    assert (told["eos_token"], told["end_token_ids"], told["add_bos_token"]) == ("<eos>", [256], False)
    assert told["chat_template"] == model.template
    assert told["fingerprint"] == model.card.fingerprint


async def test_what_one_choice_computes_for_the_next_was_not_cached_for_the_client(start: Start) -> None:
    bench = await start(lambda add: Script([b"x"], num_cached=0 if add.request_id.endswith("-0") else 16))
    for prompt in ("p" * 40, ["p" * 40, "q" * 40]):
        usage = (await bench.complete(prompt=prompt, n=3)).json["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == 0
