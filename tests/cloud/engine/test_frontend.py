import asyncio
import threading
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from hybrid.cloud.engine.frontend import LONG_CHARACTERS, Frontend
from hybrid.cloud.engine.messages import Add
from hybrid.cloud.engine.scripted import Script, ScriptedEngine
from hybrid.shared_protocol.errors import ContextOverflow, InvalidRequest, Unavailable
from hybrid.shared_protocol.noise import child_seed
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.byte_tokenizer import ByteTokenizer


def frontend_of(script, **engine) -> tuple[Frontend, ScriptedEngine]:
    client = ScriptedEngine(script, **engine)
    return Frontend(SimpleNamespace(tokenizer=ByteTokenizer()), client), client


async def texts(chunks) -> dict[int, tuple[str, str]]:
    said: dict[int, tuple[str, str]] = {}
    async for chunk in chunks:
        before, _ = said.get(chunk.index, ("", None))
        said[chunk.index] = before + chunk.text, chunk.finish_reason
    return said


async def test_an_answer_comes_as_chunks_and_ends_with_a_reason() -> None:
    frontend, _ = frontend_of(Script([b"Hel", b"lo"], num_cached=2))
    chunks = [chunk async for chunk in frontend.generate([1, 2, 3], SamplingParams(), "r")]
    assert [(c.text, c.finish_reason, c.num_cached) for c in chunks] == [("Hel", None, 2), ("lo", "stop", 2)]


async def test_a_stop_string_ends_the_answer_and_aborts_the_request_in_the_same_step() -> None:
    frontend, client = frontend_of(Script([b"ab", b"cd", b"ef"]), automatic=False)
    reader = asyncio.create_task(texts(frontend.generate([1], SamplingParams(stop=("bc",)), "r")))
    await asyncio.sleep(0)
    await client.advance(2)
    assert await reader == {0: ("a", "stop")}
    assert (client.aborted, client.stats().running, client.steps) == (["r"], 0, 2)


async def test_choices_have_seeds_of_their_own_and_each_ends() -> None:
    def script(add: Add) -> Script:
        return Script([add.request_id[-1].encode()] * 2)

    frontend, client = frontend_of(script)
    said = await texts(frontend.generate([1, 2], SamplingParams(n=3, seed=7), "r"))
    assert said == {0: ("00", "stop"), 1: ("11", "stop"), 2: ("22", "stop")}
    assert [add.seed for add in client.added] == [7, child_seed(7, 1), child_seed(7, 2)]
    assert len({add.prompt_ids for add in client.added}) == 1


async def test_an_unseeded_request_gets_a_seed() -> None:
    frontend, client = frontend_of(Script([b"x"]))
    for name in "ab":
        await texts(frontend.generate([1], SamplingParams(), name))
    assert client.added[0].seed != client.added[1].seed


@pytest.mark.parametrize("n", [1, 4])
async def test_leaving_an_answer_aborts_all_its_choices_within_the_step(n: int) -> None:
    frontend, client = frontend_of(Script([b"x"] * 3, finish=None), automatic=False)
    answer = frontend.generate([1], SamplingParams(n=n), "r")
    first = asyncio.create_task(anext(answer))
    await asyncio.sleep(0.0)
    await asyncio.sleep(0.0)
    await client.advance()
    await first
    assert client.stats().running == n
    await answer.aclose()
    assert (client.stats().running, client.stats().used, len(client.aborted)) == (0, 0, n)


@pytest.mark.parametrize("n", [1, 4])
async def test_a_cancelled_reader_aborts_all_its_choices_even_before_the_first_token(n: int) -> None:
    frontend, client = frontend_of(Script([b"", b"", b"x"]), automatic=False)
    reader = asyncio.create_task(texts(frontend.generate([1], SamplingParams(n=n), "r")))
    for _ in range(5):
        await asyncio.sleep(0)
    await client.advance()
    assert client.stats().running == n
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert (client.stats().running, len(client.aborted), client.tokens) == (0, n, 0)


async def test_of_six_requests_on_one_slot_those_whose_readers_left_never_run() -> None:
    frontend, client = frontend_of(Script([b"x"] * 3), automatic=False, slots=1)
    readers = [asyncio.create_task(texts(frontend.generate([1], SamplingParams(), f"r{i}"))) for i in range(6)]
    await asyncio.sleep(0)
    for gone in readers[1:4]:
        gone.cancel()
    await asyncio.gather(*readers[1:4], return_exceptions=True)
    await client.advance(9)
    assert [await readers[i] for i in (0, 4, 5)] == [{0: ("xxx", "stop")}] * 3
    assert client.tokens == 9


async def test_when_one_choice_finds_no_place_the_others_are_aborted() -> None:
    frontend, client = frontend_of(Script([b"x"], finish=None), slots=2, max_queue=0)
    with pytest.raises(Unavailable):
        await texts(frontend.generate([1], SamplingParams(n=3), "r"))
    assert client.stats().running == 0


@pytest.mark.parametrize("prompt", [[], [-1], [5, 258]])
def test_what_is_no_prompt_is_refused_at_once(prompt: list[int]) -> None:
    frontend, _ = frontend_of(Script([b"x"]))
    with pytest.raises(InvalidRequest):
        frontend.generate(prompt, SamplingParams(), "r")


def test_prompt_and_answer_must_fit_and_the_numbers_are_said() -> None:
    frontend, _ = frontend_of(Script([b"x"]), max_model_len=10)
    frontend.generate([1] * 10, SamplingParams(), "r")
    frontend.generate([1] * 10, SamplingParams(max_tokens=1), "r")
    with pytest.raises(ContextOverflow) as refused:
        frontend.generate([1] * 11, SamplingParams(), "r")
    assert (refused.value.asked, refused.value.limit) == (11, 10)
    with pytest.raises(ContextOverflow) as refused:
        frontend.generate([1] * 8, SamplingParams(max_tokens=5), "r")
    assert (refused.value.asked, refused.value.limit) == (12, 10)


async def test_a_failed_engine_ends_the_answer_with_an_error_that_says_so() -> None:
    frontend, client = frontend_of(Script([b"x"], finish=None))
    answer = frontend.generate([1], SamplingParams(), "r")
    assert (await anext(answer)).text == "x"
    client.fail("a kernel failed")
    last = await anext(answer)
    assert (last.finish_reason, last.error) == ("error", "a kernel failed")


async def test_texts_become_ids_off_the_event_loop() -> None:
    frontend, _ = frontend_of(Script([b"x"]))
    assert await frontend.tokenize("é") == [0xC3, 0xA9]


async def test_a_short_text_waits_for_no_long_one() -> None:
    go_on = threading.Event()

    class Slow(ByteTokenizer):
        def encode(self, text: str, literal_spans: Sequence[tuple[int, int]] = (), *, limit: int | None = None) -> list[int]:
            if len(text) > 1:
                assert go_on.wait(60)
            return super().encode(text)

    frontend = Frontend(SimpleNamespace(tokenizer=Slow()), ScriptedEngine(Script([b"x"])))
    long = [asyncio.ensure_future(frontend.tokenize("a" * LONG_CHARACTERS)) for _ in range(40)]  # more than threads for all
    assert await asyncio.wait_for(frontend.tokenize("b"), 30) == [98]
    assert not any(text.done() for text in long)
    go_on.set()
    assert all(len(ids) == LONG_CHARACTERS for ids in await asyncio.gather(*long))
