"""The official `openai` client, with strict validation of every answer, against the real small model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import openai
import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.engine.open_engine import open_engine
from hybrid.cloud.engine.thread_client import ThreadEngineClient
from hybrid.cloud.server.keys import KeyRing
from hybrid.cloud.server.settings import ServerSettings
from hybrid.cloud.server.threaded import serve_on_thread
from hybrid.shared_protocol.model import Model
from openai.types.chat import ChatCompletionMessageParam

MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Name three colours."}]
KEY = "a-key-for-this-test"


@pytest.fixture(scope="module")
def url(smollm2: Model) -> Iterator[str]:
    async def open_frontend() -> Frontend:
        return Frontend(smollm2, ThreadEngineClient(open_engine(smollm2, threads=1, max_model_len=1024)))

    with serve_on_thread(open_frontend, ServerSettings(keys=KeyRing({"test": KEY}), model_id="smol")) as server:
        yield server.url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0, _strict_response_validation=True) as client:
        yield client


@pytest.fixture
async def async_client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0, _strict_response_validation=True) as client:
        yield client


def test_models_are_listed_and_shown(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["smol"]
    assert client.models.retrieve("smol").owned_by == "hybrid"


def test_a_chat_is_answered(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="smol", messages=MESSAGES, max_tokens=12, temperature=0)
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 12
    assert answer._request_id is not None


def test_a_streamed_chat_is_the_whole_one(client: openai.OpenAI) -> None:
    asked = {"model": "smol", "messages": MESSAGES, "max_tokens": 16, "seed": 5, "temperature": 0.8}
    whole = client.chat.completions.create(**asked)
    chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage is not None
    assert whole.usage is not None
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == whole.choices[0].finish_reason


def test_the_stream_helper_sees_the_same_message(client: openai.OpenAI) -> None:
    asked = {"model": "smol", "messages": MESSAGES, "max_tokens": 16, "seed": 3}
    text = client.chat.completions.create(**asked).choices[0].message.content or ""
    stop = text[len(text) // 2 :][:3]  # the helper raises on an answer that was cut by its length
    with client.chat.completions.stream(**asked, stop=stop) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == text[: text.index(stop)]


def test_the_same_seed_gives_the_same_text_and_another_another(client: openai.OpenAI) -> None:
    def text(seed: int) -> str | None:
        answer = client.chat.completions.create(model="smol", messages=MESSAGES, max_tokens=16, seed=seed, temperature=1.0)
        return answer.choices[0].message.content

    assert text(1) == text(1)
    assert text(1) != text(2)


def test_an_unseeded_answer_can_be_had_again_by_the_seed_it_reports(client: openai.OpenAI) -> None:
    first = client.chat.completions.create(model="smol", messages=MESSAGES, max_tokens=16)
    seed = (first.model_extra or {})["hybrid"]["seed"]
    again = client.chat.completions.create(model="smol", messages=MESSAGES, max_tokens=16, seed=seed)
    assert again.choices[0].message.content == first.choices[0].message.content


@pytest.mark.parametrize("stream", [False, True])
def test_log_probabilities_have_the_tokens_of_the_text(client: openai.OpenAI, stream: bool) -> None:
    asked = {"model": "smol", "messages": MESSAGES, "max_tokens": 10, "temperature": 0, "logprobs": True, "top_logprobs": 3}
    if stream:
        choices = [chunk.choices[0] for chunk in client.chat.completions.create(**asked, stream=True)]
        text = "".join(choice.delta.content or "" for choice in choices)
    else:
        choices = client.chat.completions.create(**asked).choices
        text = choices[0].message.content
    tokens = [token for choice in choices if choice.logprobs for token in choice.logprobs.content or ()]
    assert "".join(token.token for token in tokens) == text
    assert len(tokens) == 10
    for token in tokens:
        assert token.logprob <= 0
        assert len(token.top_logprobs) == 3
        assert token.top_logprobs[0].logprob == token.logprob, "greedy: the token is the most likely one"
        assert bytes(token.bytes or ()).decode() == token.token


def test_n_choices_differ_and_the_first_is_the_one_alone(client: openai.OpenAI) -> None:
    asked = {"model": "smol", "messages": MESSAGES, "max_tokens": 12, "seed": 9, "temperature": 1.0}
    both = client.chat.completions.create(**asked, n=2)
    assert [choice.index for choice in both.choices] == [0, 1]
    texts = [choice.message.content for choice in both.choices]
    assert texts[0] != texts[1]
    assert texts[0] == client.chat.completions.create(**asked).choices[0].message.content


def test_a_stop_string_ends_the_text_before_it(client: openai.OpenAI) -> None:
    asked = {"model": "smol", "messages": MESSAGES, "max_tokens": 24, "temperature": 0}
    text = client.chat.completions.create(**asked).choices[0].message.content or ""
    stop = text[len(text) // 2 :][:3]
    cut = client.chat.completions.create(**asked, stop=stop)
    assert cut.choices[0].message.content == text[: text.index(stop)]
    assert cut.choices[0].finish_reason == "stop"


def test_completions_continue_texts_and_ids_alone_and_many(client: openai.OpenAI, smollm2: Model) -> None:
    asked = {"model": "smol", "max_tokens": 8, "temperature": 0}
    one = client.completions.create(**asked, prompt="Once upon a time").choices[0].text
    many = client.completions.create(**asked, prompt=["The sky is", "Once upon a time"])
    assert many.choices[1].text == one
    # strict validation would refuse OpenAI's own streams here: its type has no null for the finish_reason of an unfinished choice
    lenient = client.with_options(_extra_kwargs={"_strict_response_validation": False})
    streamed = lenient.completions.create(**asked, prompt="Once upon a time", stream=True)
    assert "".join(chunk.choices[0].text for chunk in streamed) == one
    ids = smollm2.tokenizer.encode("Once upon a time")
    assert client.completions.create(**asked, prompt=ids).choices[0].text == one


def test_completions_have_log_probabilities_of_their_own_shape(client: openai.OpenAI) -> None:
    choice = client.completions.create(model="smol", prompt="a", max_tokens=1, logprobs=1).choices[0]
    assert choice.logprobs is not None
    assert choice.logprobs.tokens == [choice.text]
    assert choice.logprobs.text_offset == [0]
    assert len(choice.logprobs.token_logprobs or ()) == len(choice.logprobs.top_logprobs or ()) == 1


async def test_the_asynchronous_client_streams_and_leaves(async_client: openai.AsyncOpenAI) -> None:
    stream = await async_client.chat.completions.create(model="smol", messages=MESSAGES, max_tokens=900, stream=True, seed=1)
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    await stream.close()
    answer = await async_client.chat.completions.create(model="smol", messages=MESSAGES, max_tokens=1)
    assert answer.choices[0].finish_reason == "length"


def test_errors_arrive_as_the_clients_own_exceptions(client: openai.OpenAI, url: str) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-9", messages=MESSAGES)
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(model="smol", messages=[{"role": "user", "content": "word " * 2000}])
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError) as wrong:
        client.chat.completions.create(model="smol", messages=MESSAGES, temperature=9)
    assert (wrong.value.param, wrong.value.type) == ("temperature", "invalid_request_error")
    with pytest.raises(openai.AuthenticationError), openai.OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0) as stranger:
        stranger.models.list()
