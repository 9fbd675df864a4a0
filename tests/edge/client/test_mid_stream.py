"""A cloud's stream that is cut, falls silent or turns into nonsense after its first words: what the policy makes of it (row G57)."""

from __future__ import annotations

from typing import Any

import pytest
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.held_tokens import HeldTokens
from hybrid.edge.session import EdgeChunk
from hybrid.shared_protocol import errors
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.openai import ChatCompletionChunk
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.scripted_client import ASK, TO_CLOUD, TO_EDGE, asked, client_of, client_of_several, failing, text_of, tried, well
from hybrid.tests.support.scripted_server import CLOSE, END, FOREVER, chunk, event, sse_head

WORDS = [f"{number} " for number in range(60)]
FORTY = [chunk(word) for word in WORDS[:40]]
FAULTS = {
    "cut": [sse_head(), *FORTY, CLOSE],
    "ended": [sse_head(), *FORTY, END],
    "silent": [sse_head(), *FORTY, FOREVER],
    "malformed": [sse_head(), *FORTY, event("{broken"), *[chunk(word) for word in WORDS[40:]], chunk(finish="stop"), event("[DONE]"), END],
    "error": [sse_head(), *FORTY, event({"error": {"message": "no more", "type": "t", "param": None, "code": "engine_failed"}}), END],
}
MODE = TO_CLOUD + "[fallback]\nmid_stream = "


async def read(client: AsyncHybridClient, **options: object) -> tuple[list[ChatCompletionChunk], errors.HybridError | None]:
    """What came, and the error that ended it."""
    chunks: list[ChatCompletionChunk] = []
    chosen: dict[str, Any] = {"seed": 3, "max_tokens": 60} | options
    try:
        async for part in await client.chat.completions.create(messages=ASK, stream=True, **chosen):
            chunks.append(part)  # noqa: PERF401 (what came before an error is wanted)
    except errors.HybridError as error:
        return chunks, error
    return chunks, None


def split_at(chunks: list[ChatCompletionChunk], mark: str) -> tuple[list[ChatCompletionChunk], list[ChatCompletionChunk]]:
    """Before and after the one chunk that has the mark."""
    places = [place for place, part in enumerate(chunks) if part.hybrid is not None and getattr(part.hybrid, mark)]
    assert len(places) == 1
    assert chunks[places[0]].choices[0].delta.content is None
    return chunks[: places[0]], chunks[places[0] + 1 :]


def check_stream(chunks: list[ChatCompletionChunk]) -> None:
    """One stream: one id, one role, one finish, at its end."""
    assert len({part.id for part in chunks}) == 1
    assert [part.choices[0].delta.role for part in chunks].count("assistant") == 1
    finishes = [part.choices[0].finish_reason for part in chunks]
    assert finishes[-1] is not None and finishes.count(None) == len(chunks) - 1
    assert chunks[-1].usage is not None


@pytest.mark.parametrize("fault", FAULTS)
async def test_error_ends_the_stream_with_a_typed_error_and_nothing_is_repeated(smollm2: Model, fault: str) -> None:
    async with client_of(smollm2, MODE + '"error"', failing(*FAULTS[fault]), stall_s=0.3) as (client, server):
        chunks, error = await read(client)
        assert asked(server) == 1
    assert text_of(chunks) == "".join(WORDS[:40])
    assert isinstance(error, errors.StreamInterrupted if fault != "error" else errors.EngineFailed)


@pytest.mark.parametrize("fault", FAULTS)
async def test_restart_gives_the_whole_answer_again_after_a_mark_from_the_next_target(fault: str) -> None:
    answers = {"a": failing(*FAULTS[fault]), "b": well}
    async with client_of_several(None, MODE + '"restart"', answers, stall_s=0.3) as (client, servers):
        chunks, error = await read(client)
        assert (asked(servers["a"]), asked(servers["b"])) == (1, 1)
    assert error is None
    check_stream(chunks)
    before, after = split_at(chunks, "restarted")
    assert (text_of(before), text_of(after)) == ("".join(WORDS[:40]), "Hi there")
    assert tried(chunks) == [("a", "stream_interrupted" if fault != "error" else "engine_failed"), ("b", "answered")]
    info = chunks[-1].hybrid
    assert info is not None
    assert [(span.origin, span.tokens) for span in info.spans] == [("cloud", 2)]  # of what stands after the mark
    assert not info.restarted


@pytest.mark.parametrize("fault", FAULTS)
async def test_restart_on_the_device_gives_what_the_device_would_have_said(smollm2: Model, fault: str) -> None:
    async with client_of(smollm2, MODE + '"restart"', failing(*FAULTS[fault]), stall_s=0.3) as (client, _):
        chunks, error = await read(client)
    async with client_of(smollm2, TO_EDGE) as (client, _):
        alone, _ = await read(client)
    assert error is None
    check_stream(chunks)
    assert text_of(split_at(chunks, "restarted")[1]) == text_of(alone)
    assert tried(chunks)[-1] == ("edge", "answered")


@pytest.mark.parametrize("fault", ["cut", "silent", "malformed"])
async def test_continue_marked_lets_the_device_go_on_from_the_text_so_far(smollm2: Model, fault: str) -> None:
    known = smollm2.tokenizer.encode("".join(WORDS[:40]), add_bos=False)
    limit = len(known) + 6
    async with client_of(smollm2, MODE + '"continue_marked"', failing(*FAULTS[fault]), stall_s=0.3) as (client, server):
        chunks, error = await read(client, max_tokens=limit)
        assert asked(server) == 1
        # the device, if it had written the same words itself
        device, params = client._services.device, SamplingParams(seed=3, max_tokens=limit)
        assert device is not None
        prompt = smollm2.render_chat(ASK)
        alone = [item.text async for item in device.answer(prompt, params, known) if isinstance(item, EdgeChunk)]
    assert error is None
    check_stream(chunks)
    before, after = split_at(chunks, "continued")
    assert (text_of(before), text_of(after)) == ("".join(WORDS[:40]), "".join(alone))
    info, usage = chunks[-1].hybrid, chunks[-1].usage
    assert info is not None and usage is not None
    assert [(span.origin, span.tokens) for span in info.spans] == [("cloud", len(known)), ("edge", usage.completion_tokens - len(known))]
    assert (info.rule, info.reason) == ("fallback.mid_stream", "cloud_unreachable")
    assert tried(chunks) == [("cloud", "stream_interrupted"), ("edge", "answered")]


async def test_a_continued_answer_of_full_length_is_finished(smollm2: Model) -> None:
    async with client_of(smollm2, MODE + '"continue_marked"', failing(*FAULTS["cut"])) as (client, _):
        chunks, error = await read(client)  # sixty tokens were asked for, and forty words are more
    assert error is None
    assert chunks[-1].choices[0].finish_reason == "length"
    assert text_of(chunks) == "".join(WORDS[:40])


async def test_where_the_device_cannot_go_on_the_error_is_told(smollm2: Model) -> None:
    async with client_of(None, MODE + '"continue_marked"', failing(*FAULTS["cut"])) as (client, _):
        chunks, error = await read(client)
    assert isinstance(error, errors.StreamInterrupted)
    assert text_of(chunks) == "".join(WORDS[:40])
    async with client_of(smollm2, MODE + '"continue_marked"', failing(*FAULTS["cut"])) as (client, _):
        await client.load()
        _, error = await read(client, logprobs=True)  # those of the words so far are not the device's
    assert isinstance(error, errors.StreamInterrupted)


async def test_a_restart_that_nobody_can_give_ends_with_an_error_that_lists_all_and_shows_no_mark() -> None:
    answers = {"a": failing(*FAULTS["cut"]), "b": failing(*FAULTS["cut"][:1], CLOSE)}
    async with client_of_several(None, MODE + '"restart"', answers) as (client, _):
        chunks, error = await read(client)
    assert text_of(chunks) == "".join(WORDS[:40])
    assert all(part.hybrid is None for part in chunks)
    assert isinstance(error, errors.CloudUnreachable)
    assert "a: " in str(error) and "b: " in str(error)


async def test_an_answer_may_break_off_twice_and_only_the_last_part_counts(smollm2: Model) -> None:
    answers = {"a": failing(*FAULTS["cut"]), "b": failing(sse_head(), chunk("half "), CLOSE)}
    async with client_of_several(smollm2, MODE + '"restart"', answers) as (client, _):
        chunks, error = await read(client)
    assert error is None
    check_stream(chunks)
    marks = [place for place, part in enumerate(chunks) if part.hybrid is not None and part.hybrid.restarted]
    assert [text_of(chunks[: marks[0]]), text_of(chunks[marks[0] : marks[1]])] == ["".join(WORDS[:40]), "half "]
    assert [target for target, _ in tried(chunks)] == ["a", "b", "edge"]


async def test_a_device_that_breaks_in_the_middle_of_a_stream_restarts_in_the_cloud_where_the_policy_says_so(
    smollm2: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    extend, calls = HeldTokens.extend, 0

    def breaking(self: HeldTokens, *args: object, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 8:
            raise MemoryError
        return extend(self, *args, **options)  # type: ignore[arg-type]

    async with client_of(smollm2, TO_EDGE + '[fallback]\nmid_stream = "restart"', well) as (client, _):
        await client.load()
        monkeypatch.setattr(HeldTokens, "extend", breaking)
        chunks, error = await read(client)
    assert error is None
    before, after = split_at(chunks, "restarted")
    assert text_of(before)
    assert text_of(after) == "Hi there"
    assert tried(chunks) == [("edge", "engine_failed"), ("cloud", "answered")]
