import asyncio
import gc

import pytest
from hybrid.cloud.engine.messages import Add, StepOutput
from hybrid.cloud.engine.scripted import Script, ScriptedEngine
from hybrid.shared_protocol.errors import ContextOverflow, Unavailable
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.byte_tokenizer import ByteTokenizer


def add(name: str, **params) -> Add:
    return Add(name, (1, 2, 3), SamplingParams(**params), seed=0)


async def text_of(stream) -> tuple[bytes, StepOutput]:
    outputs = [output async for output in stream]
    return bytes(token for output in outputs for token in output.new_ids), outputs[-1]


async def test_it_says_its_pieces_one_per_step_and_ends_with_the_last() -> None:
    engine = ScriptedEngine(Script([b"Hel", b"lo", b"!"]))
    text, last = await text_of(engine.add(add("r")))
    assert (text, last.finish_reason, engine.steps) == (b"Hello!", "stop", 3)


async def test_under_control_of_the_test_a_step_waits_for_advance() -> None:
    engine = ScriptedEngine(Script([b"a", b"b"]), automatic=False)
    seen = []

    async def read() -> None:
        async for output in engine.add(add("r")):
            seen.append((engine.steps, bytes(output.new_ids)))  # noqa: PERF401

    reader = asyncio.create_task(read())
    await asyncio.sleep(0)
    assert seen == []
    await engine.advance()
    assert seen == [(1, b"a")]
    await engine.advance()
    await reader
    assert seen == [(1, b"a"), (2, b"b")]


async def test_an_empty_piece_is_a_step_without_output() -> None:
    engine = ScriptedEngine(Script([b"", b"", b"x"]))
    outputs = [output async for output in engine.add(add("r"))]
    assert [o.new_ids for o in outputs] == [(120,)]
    assert engine.steps == 3


@pytest.mark.parametrize(
    ("params", "text", "finish", "stop_id"),
    [
        ({"max_tokens": 4}, b"abcd", "length", None),
        ({"max_tokens": 6}, b"abcdef", "stop", None),
        ({"stop_token_ids": (ord("d"),)}, b"abcd", "stop", ord("d")),
        ({"stop_token_ids": (ord("d"),), "max_tokens": 3}, b"abc", "length", None),
    ],
)
async def test_limits_and_stop_ids_cut_a_piece(params, text, finish, stop_id) -> None:
    said, last = await text_of(ScriptedEngine(Script([b"abc", b"def"])).add(add("r", **params)))
    assert (said, last.finish_reason, last.stop_token_id) == (text, finish, stop_id)


async def test_a_silent_script_runs_until_it_is_aborted() -> None:
    engine = ScriptedEngine(Script([b"a"], finish=None), automatic=False)
    stream = engine.add(add("r"))
    await engine.advance(5)
    assert engine.stats().running == 1
    await stream.aclose()
    assert (engine.stats().running, engine.aborted) == (0, ["r"])


async def test_leaving_an_iterator_in_any_way_aborts_its_request() -> None:
    engine = ScriptedEngine(Script([b"a"] * 9, finish=None))
    async for _ in engine.add(add("closed")):
        break
    gc.collect()
    assert engine.aborted == ["closed"]
    reader = asyncio.create_task(anext(ScriptedEngine.add(engine, add("cancelled", max_tokens=99))))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert engine.aborted == ["closed", "cancelled"]


async def test_a_request_beyond_the_slots_waits_and_never_runs_once_aborted() -> None:
    engine = ScriptedEngine(Script([b"a", b"b"]), automatic=False, slots=1, max_queue=2)
    streams = [engine.add(add(f"r{i}")) for i in range(3)]
    with pytest.raises(Unavailable) as refused:
        engine.add(add("r3"))
    assert refused.value.retry_after_s is not None
    assert (engine.stats().running, engine.stats().waiting) == (1, 2)
    await streams[1].aclose()
    await engine.advance(4)
    assert [s.unread for s in streams] == [2, 0, 2]
    assert engine.tokens == 4


async def test_logprobs_are_given_when_asked() -> None:
    engine = ScriptedEngine(Script([b"a"], logprob=-0.25))
    outputs = [o async for o in engine.add(add("r", logprobs=2))]
    assert outputs[0].logprobs[0].top == ((97, -0.25), (96, -1.25))


async def test_errors_end_a_request_and_a_failed_engine_takes_no_more() -> None:
    engine = ScriptedEngine(Script([b"a", b""], finish="error", error="kernel failed"))
    text, last = await text_of(engine.add(add("r")))
    assert (text, last.finish_reason, last.error) == (b"a", "error", "kernel failed")
    held = engine.add(add("held"))
    engine.fail("out of memory")
    _, last = await text_of(held)
    assert (last.finish_reason, last.error) == ("error", "out of memory")
    with pytest.raises(Unavailable):
        engine.add(add("late"))


async def test_an_over_long_prompt_is_refused_at_once() -> None:
    with pytest.raises(ContextOverflow) as refused:
        ScriptedEngine(Script([b"a"]), max_model_len=2).add(add("r"))
    assert (refused.value.asked, refused.value.limit) == (3, 2)


async def test_closing_ends_what_runs() -> None:
    engine = ScriptedEngine(Script([b"a"], finish=None), automatic=False)
    stream = engine.add(add("r"))
    await engine.close()
    assert [o.finish_reason async for o in stream] == ["abort"]


async def test_the_byte_tokenizer_reads_scripted_bytes_back() -> None:
    tokenizer = ByteTokenizer()
    text, _ = await text_of(ScriptedEngine(Script(["é".encode()])).add(add("r")))
    assert tokenizer.decode(text) == "é" and tokenizer.encode("é") == list(text)
