"""The client without an event loop."""

from __future__ import annotations

import inspect
import os
import signal
import threading
from pathlib import Path

import hybrid
import pytest
from hybrid.edge.client import HybridClient
from hybrid.edge.device_state import SimulatedDevice
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import ClientClosed, ConfigError, InvalidRequest, RouteRefused, Unavailable
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.openai import ChatCompletionChunk

ASK = [{"role": "user", "content": "Say hello."}]
TO_EDGE = Policy.parse("[complexity]\ncascade_from = 1.0\nhard_from = 1.0\n")


def client_of(model: Model) -> HybridClient:
    return HybridClient(model, policy=TO_EDGE, context=256, device_state=SimulatedDevice())


def test_it_answers_and_streams_the_same(smollm2: Model) -> None:
    with client_of(smollm2) as client:
        whole = client.chat.completions.create(messages=ASK, max_tokens=5, seed=1)
        with client.chat.completions.create(messages=ASK, max_tokens=5, seed=1, stream=True) as stream:
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        assert text == whole.choices[0].message.content
        assert whole.hybrid is not None
        assert whole.hybrid.route == "edge"
        with pytest.raises(InvalidRequest):
            client.chat.completions.create(messages=[])
        with pytest.raises(TypeError):
            client.chat.completions.create(messages=ASK, temprature=1)


def test_a_policy_may_be_a_path(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("[complexity]\ncascade_form = 1.0\n")
    with pytest.raises(ConfigError, match=r"ours\.toml:2: unknown key complexity\.cascade_form"):
        HybridClient(None, "http://127.0.0.1:9", policy=file)
    file.write_text('[privacy]\nemail = "block"\n')
    with HybridClient(None, "http://127.0.0.1:9", policy=str(file)) as client, pytest.raises(RouteRefused) as refused:
        client.chat.completions.create(messages="write to jane.roe@example.com")
    assert refused.value.code == "blocked"


def test_a_stream_left_early_frees_the_device(smollm2: Model) -> None:
    with client_of(smollm2) as client:
        with client.chat.completions.create(messages=ASK, max_tokens=200, stream=True) as stream:
            next(stream)
        assert client.chat.completions.create(messages=ASK, max_tokens=2).usage.completion_tokens == 2


def test_threads_may_share_a_client(smollm2: Model) -> None:
    texts: list[str | None] = []
    with client_of(smollm2) as client:

        def ask() -> None:
            texts.append(client.chat.completions.create(messages=ASK, max_tokens=4, seed=1).choices[0].message.content)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(texts) == 3
    assert len(set(texts)) == 1


def test_closing_twice_is_closing_once_and_a_closed_client_says_so(smollm2: Model) -> None:
    client = client_of(smollm2)
    stream = client.chat.completions.create(messages=ASK, max_tokens=200, stream=True)
    client.close()
    client.close()
    stream.close()
    with pytest.raises(Unavailable, match="closed"):
        client.chat.completions.create(messages=ASK)


def test_after_a_fork_the_child_is_told_and_does_not_wait_for_ever(smollm2: Model) -> None:
    with client_of(smollm2) as client:
        client.chat.completions.create(messages=ASK, max_tokens=1)
        child = os.fork()
        if not child:
            signal.alarm(30)
            code = 1
            try:
                client.chat.completions.create(messages=ASK, max_tokens=1)
            except Unavailable:
                client.close()
                code = 7
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert client.chat.completions.create(messages=ASK, max_tokens=1).choices


@pytest.mark.parametrize("stream", [False, True])
def test_closing_ends_what_other_threads_wait_for(smollm2: Model, stream: bool) -> None:
    client, begun, ends = client_of(smollm2), threading.Barrier(4), []

    def ask() -> None:
        begun.wait()
        try:
            answer = client.chat.completions.create(messages=ASK, max_tokens=200, stream=stream)
            ends.append(len(list(answer)) if stream else answer)
        except Exception as error:
            ends.append(type(error))

    client.chat.completions.create(messages=ASK, max_tokens=1)
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    client.close()
    for thread in threads:
        thread.join()
    assert ends == [ClientClosed] * 3


def test_a_stream_may_be_closed_by_another_thread_than_its_reader_s(smollm2: Model) -> None:
    with client_of(smollm2) as client:
        stream = client.chat.completions.create(messages=ASK, max_tokens=200, stream=True)
        read: list[ChatCompletionChunk] = []
        reader = threading.Thread(target=lambda: read.extend(stream))
        reader.start()
        stream.close()
        reader.join()
        assert len(read) < 200
        assert list(stream) == []


def test_who_turns_away_from_a_stream_may_ask_something_else(smollm2: Model) -> None:
    with client_of(smollm2) as client:
        for _ in client.chat.completions.create(messages=ASK, max_tokens=5, stream=True):
            assert client.chat.completions.create(messages=ASK, max_tokens=2).usage.completion_tokens == 2
        left = client.chat.completions.create(messages=ASK, max_tokens=5, seed=1, stream=True)
        next(left)
        assert client.chat.completions.create(messages=ASK, max_tokens=2).usage.completion_tokens == 2
        *_, last = left
        assert last.choices[0].finish_reason is not None


def test_help_and_completion_show_what_there_is_to_use() -> None:
    assert set(hybrid.__all__) <= set(dir(hybrid))
    assert {"edge", "cloud", "policy", "runtime"} <= set(inspect.signature(hybrid.HybridClient).parameters)
