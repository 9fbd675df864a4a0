"""Device and cloud write one answer: the device's half, the wire, the service and the engine, on the real model."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hybrid.cloud.engine.frontend import Frontend
from hybrid.cloud.server.speculate.handler import SpeculateService
from hybrid.edge.client import AsyncHybridClient
from hybrid.edge.corruptor import Corruptor
from hybrid.edge.device_state import SimulatedDevice
from hybrid.edge.drafter import Drafter
from hybrid.edge.native import NativeRuntime
from hybrid.edge.session import Session
from hybrid.edge.speculate import Speculation
from hybrid.edge.transport.link import LoopbackLink
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.errors import FingerprintMismatch, StreamInterrupted
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.shared_protocol.wire import pack_ids
from hybrid.tests.support.real_cloud import cut_server, real_frontend

ASK = [{"role": "user", "content": "Name three rivers."}]
PATIENT: dict[str, Any] = {"context": 256, "device_state": SimulatedDevice(), "probe_timeout_s": 60}
TOGETHER = Policy.parse('[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n[speculation]\nmode = "always"\ndraft_below = 1.0\n')
SEED = 7


async def run(work: Any) -> Any:
    return work()


async def plain(frontend: Frontend, prompt: list[int], params: SamplingParams) -> tuple[list[int], str]:
    chunks = [chunk async for chunk in frontend.generate(prompt, params, "plain")]
    return [i for chunk in chunks for i in chunk.token_ids], "".join(chunk.text for chunk in chunks)


async def idle(frontend: Frontend) -> None:
    """The engine hears of an end at its next step: give it some, then nothing may be left."""
    for _ in range(200):
        stats = frontend.client.stats()
        if stats.running == stats.waiting == stats.parked == stats.used == 0:
            break
        await asyncio.sleep(0.01)
    assert (stats.running, stats.waiting, stats.parked, stats.used) == (0, 0, 0, 0)
    assert stats.free + stats.cached == stats.total


def opening_of(session: Session, prompt: list[int], params: SamplingParams, fingerprint: str | None = None) -> frames.Open:
    card = session.model.card
    return frames.Open(card.name, fingerprint or card.fingerprint, params, SEED, 0, len(prompt), ids=pack_ids(prompt))


ALL = ((1, 0.0), (4, 0.0), (8, 0.0), (1, 0.3), (4, 0.3), (8, 0.3), (1, 1.0), (4, 1.0), (8, 1.0))  # drafted per round, corrupted share


@pytest.mark.parametrize(
    ("temperature", "stop", "runs"),
    [(0.0, (), ALL[::4]), (0.8, (), ALL[::2]), (0.8, (".",), ALL[2:6:3])],
    ids=["greedy", "sampled", "stopped"],
)
async def test_the_text_is_the_cloud_s_whatever_the_device_drafts(
    smollm2: Model, temperature: float, stop: tuple[str, ...], runs: tuple[tuple[int, float], ...]
) -> None:
    params = SamplingParams(temperature=temperature, seed=SEED, max_tokens=14, stop=stop)
    session = Session(NativeRuntime(smollm2, context=256), smollm2)
    prompt = smollm2.render_chat(ASK)
    async with real_frontend(smollm2) as frontend:
        expected_ids, expected_text = await plain(frontend, prompt, params)
        service = SpeculateService(frontend, secret=b"s" * 16)
        for k, p in runs:
            drafter = session.drafter(prompt, params, SEED, Corruptor(p, 1, smollm2.card.vocab_size))
            speculation = Speculation(drafter, smollm2.tokenizer, opening_of(session, prompt, params))
            link = LoopbackLink(service.connect("key").handle)
            pieces = [piece async for piece in speculation.pieces(link, k, run)]
            assert speculation.output_ids == expected_ids, (k, p)
            assert "".join(piece.text for piece in pieces) == expected_text, (k, p)
            assert pieces[-1].usage is not None
            assert pieces[-1].usage.completion_tokens == len(expected_ids)
            drafted = speculation.origins.count("drafted")
            if p == 0:
                assert drafted >= len(expected_ids) * k // (k + 1) - k
            if p == 1:
                assert drafted == 0
        await idle(frontend)
    session.held.close()


async def test_repeats_conflicts_and_wrong_prefixes_are_told_apart(smollm2: Model) -> None:
    params = SamplingParams(temperature=0.8, seed=SEED, max_tokens=12)
    runtime, prompt = NativeRuntime(smollm2, context=256), smollm2.render_chat(ASK)
    drafter = Drafter(runtime, prompt, params, SEED)
    drafter.prefill()
    async with real_frontend(smollm2) as frontend:
        link = LoopbackLink(SpeculateService(frontend, secret=b"s" * 16).connect("key").handle)
        await link.send(frames.Hello((frames.VERSION,), frames.Limits()))
        await link.send(opening_of(Session(runtime, smollm2), prompt, params))
        assert isinstance(await link.receive(), frames.CloudHello)
        opened = await link.receive()
        assert isinstance(opened, frames.Opened)
        drafter = Drafter(runtime, prompt, params, SEED)
        drafter.prefill()
        ids = drafter.draft(3)
        digest = prefix_hash(prompt)
        for draft, answer in (
            (frames.Draft(opened.session, 1, len(prompt), b"x" * 16, pack_ids(ids)), "prefix_hash"),
            (frames.Draft(opened.session, 1, len(prompt), digest, pack_ids(ids)), frames.Verdict),
            (frames.Draft(opened.session, 1, len(prompt), digest, pack_ids(ids)), frames.Verdict),
            (frames.Draft(opened.session, 1, len(prompt), digest, pack_ids(ids[:2])), "round_conflict"),
            (frames.Draft(opened.session, 3, len(prompt), digest, pack_ids(ids)), "round_order"),
        ):
            await link.send(draft)
            received = await link.receive()
            if isinstance(answer, str):
                assert isinstance(received, frames.Error)
                assert received.code == answer
            else:
                assert isinstance(received, answer)
                assert received.n_accepted == 3
    runtime.close()


async def test_another_vocabulary_is_refused_with_both_fingerprints(smollm2: Model) -> None:
    params = SamplingParams(temperature=0.0, seed=SEED, max_tokens=4)
    session, prompt = Session(NativeRuntime(smollm2, context=128), smollm2), smollm2.render_chat(ASK)
    async with real_frontend(smollm2) as frontend:
        link = LoopbackLink(SpeculateService(frontend, secret=b"s" * 16).connect("key").handle)
        drafter = session.drafter(prompt, params, SEED)
        speculation = Speculation(drafter, smollm2.tokenizer, opening_of(session, prompt, params, "other"))
        with pytest.raises(FingerprintMismatch) as refused:
            async for _ in speculation.pieces(link, 4, run):
                pass
    assert "other" in str(refused.value)
    assert smollm2.card.fingerprint in str(refused.value)
    session.held.close()


@pytest.mark.parametrize("streamed", [False, True])
async def test_when_the_link_is_lost_the_device_finishes_and_the_spans_say_where(smollm2: Model, streamed: bool) -> None:
    params = SamplingParams(temperature=0.8, seed=SEED, max_tokens=16)
    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend, dies_at_round=3) as server,
        AsyncHybridClient(smollm2, server.url, policy=TOGETHER, **PATIENT, draft_len=2) as client,
    ):
        _, expected = await plain(frontend, smollm2.render_chat(ASK), params)
        request: dict[str, Any] = {"messages": ASK, "temperature": 0.8, "seed": SEED, "max_tokens": 16}
        if streamed:
            chunks = [chunk async for chunk in await client.chat.completions.create(stream=True, **request)]
            text, info = "".join(chunk.choices[0].delta.content or "" for chunk in chunks), chunks[-1].hybrid
        else:
            answer = await client.chat.completions.create(**request)
            text, info = answer.choices[0].message.content or "", answer.hybrid
    assert text == expected  # one model on both sides: even the device's own part is the same
    assert info is not None
    assert (info.route, info.reason) == ("speculative", "cloud_unreachable")
    origins = [(span.origin, span.tokens) for span in info.spans]
    assert origins == [("drafted", 2), ("cloud", 1), ("drafted", 2), ("cloud", 1), ("edge", 10)]


async def test_it_fails_instead_when_the_application_wants_that(smollm2: Model) -> None:
    options: dict[str, Any] = PATIENT | {"policy": TOGETHER, "on_link_loss": "fail"}
    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend, dies_at_round=2) as server,
        AsyncHybridClient(smollm2, server.url, **options) as client,
    ):
        with pytest.raises(StreamInterrupted):
            await client.chat.completions.create(messages=ASK, max_tokens=16)


async def test_a_link_that_is_lost_before_the_first_token_leaves_all_to_the_device(smollm2: Model) -> None:
    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend, dies_at_round=1) as server,
        AsyncHybridClient(smollm2, server.url, policy=TOGETHER, **PATIENT) as client,
    ):
        answer = await client.chat.completions.create(messages=ASK, max_tokens=4)
    assert answer.hybrid is not None
    assert (answer.hybrid.route, answer.hybrid.reason) == ("edge", "cloud_unreachable")


async def test_a_link_that_is_lost_beyond_what_the_device_can_hold_is_told_as_that(smollm2: Model) -> None:
    prompt = len(smollm2.render_chat(ASK))
    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend, dies_at_round=4) as server,
        AsyncHybridClient(smollm2, server.url, policy=TOGETHER, **PATIENT | {"context": prompt + 4}, draft_len=2) as client,
    ):
        with pytest.raises(StreamInterrupted):
            await client.chat.completions.create(messages=ASK, temperature=0)


async def test_a_cloud_that_breaks_the_protocol_at_once_is_asked_to_answer_alone(smollm2: Model) -> None:
    def confused(frame: frames.CloudFrame) -> frames.CloudFrame:
        return frames.Pong() if isinstance(frame, frames.Opened) else frame

    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend) as server,
        AsyncHybridClient(smollm2, server.url, policy=TOGETHER, **PATIENT) as client,
    ):
        server.tamper = confused
        answer = await client.chat.completions.create(messages=ASK, max_tokens=4)
        server.tamper = lambda frame: frame
        again = await client.chat.completions.create(messages=ASK, max_tokens=4)
        await idle(frontend)
    assert answer.choices[0].message.content == "from afar alone"
    assert answer.hybrid is not None
    assert (answer.hybrid.route, answer.hybrid.reason) == ("cloud", "hard")
    assert again.hybrid is not None
    assert again.hybrid.route == "speculative"


async def test_a_cloud_that_shows_what_a_stop_string_hides_is_not_continued(smollm2: Model) -> None:
    session = Session(NativeRuntime(smollm2, context=256), smollm2)
    texts = [chunk.text for chunk in session.chat(ASK, SamplingParams(temperature=0, max_tokens=16))]
    session.held.close()
    before, stop = "".join(texts[:5]), "".join(texts[5:8])  # it begins at the sixth token, the last of the second round

    def reveal(frame: frames.CloudFrame) -> frames.CloudFrame:
        if isinstance(frame, frames.Verdict) and frame.round == 2:
            return msgspec.structs.replace(frame, visible_len=len((before + stop[0]).encode()))
        return frame

    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend, dies_at_round=3) as server,
        AsyncHybridClient(smollm2, server.url, policy=TOGETHER, **PATIENT, draft_len=2) as client,
    ):
        server.tamper = reveal
        with pytest.raises(StreamInterrupted):
            await client.chat.completions.create(messages=ASK, temperature=0, max_tokens=16, stop=[stop])


async def test_leaving_a_drafted_stream_cancels_it_in_the_cloud(smollm2: Model) -> None:
    async with (
        real_frontend(smollm2) as frontend,
        cut_server(frontend, dies_at_round=99) as server,
        AsyncHybridClient(smollm2, server.url, policy=TOGETHER, **PATIENT, draft_len=1) as client,
    ):
        async with await client.chat.completions.create(messages=ASK, max_tokens=60, stream=True) as stream:
            await anext(stream)
        answer = await client.chat.completions.create(messages=ASK, max_tokens=3)
        assert answer.hybrid is not None
        assert answer.hybrid.route == "speculative"
        assert any(isinstance(frame, frames.Cancel) for frame in server.received)
        await idle(frontend)
