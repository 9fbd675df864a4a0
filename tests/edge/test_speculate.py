"""The device's side of speculation against the real session rules over a toy target."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from itertools import count

import msgspec
import pytest
from hybrid.edge.corruptor import Corruptor
from hybrid.edge.drafter import Drafter
from hybrid.edge.piece import Piece
from hybrid.edge.speculate import Speculation
from hybrid.edge.transport.link import LoopbackLink
from hybrid.shared_protocol.errors import FingerprintMismatch, ProtocolError, StreamInterrupted, Unavailable
from hybrid.shared_protocol.frames import Cancel, CloudFrame, CloudHello, DeviceFrame, Draft, Error, Limits, Open, Opened, Stale, Verdict
from hybrid.shared_protocol.openai import Span
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.wire import pack_ids
from hybrid.tests.support.byte_tokenizer import ByteTokenizer
from hybrid.tests.support.toy_cloud import TICKET, ToyCloud
from hybrid.tests.support.toy_runtime import VOCAB, ToyRuntime

PROMPT = [3, 1, 4, 1, 5]
SEED = 11
PARAMS = SamplingParams(temperature=0.8, seed=SEED, max_tokens=20)


async def run(work: Callable[[], object]) -> object:
    return work()


def speculation_of(
    params: SamplingParams = PARAMS, p: float = 0.0, context: int = 64, end_ids: frozenset[int] = frozenset()
) -> Speculation:
    mutate = Corruptor(p, 5, VOCAB)
    drafter = Drafter(ToyRuntime(context), PROMPT, params, SEED, end_ids=end_ids, mutate=mutate)
    opening = Open("toy", "toy", params, SEED, 0, len(PROMPT), ids=pack_ids(PROMPT))
    return Speculation(drafter, ByteTokenizer(), opening)  # type: ignore[arg-type]


async def pieces_of(speculation: Speculation, cloud: ToyCloud, k: int) -> list[Piece]:
    return [piece async for piece in speculation.pieces(LoopbackLink(cloud.handle), k, run)]


def text(ids: list[int]) -> str:
    return bytes(ids).decode()


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("k", [0, 1, 4, 8])
@pytest.mark.parametrize("model", [0, 1])
async def test_the_text_is_the_cloud_s_own_whatever_was_drafted(p: float, k: int, model: int) -> None:
    cloud, speculation = ToyCloud(model), speculation_of(p=p)
    pieces = await pieces_of(speculation, cloud, k)
    expected = cloud.plain(PROMPT, PARAMS, SEED)
    assert speculation.output_ids == expected
    assert "".join(piece.text for piece in pieces) == text(expected)
    last = pieces[-1]
    assert last.finish_reason == "length"
    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (5, 20)
    assert sum(span.tokens for span in last.spans) == 20
    rounds = sum(isinstance(frame, Draft) for frame in cloud.frames)
    if p == 0 and model == 0:
        assert rounds == -(-20 // (k + 1))
    if p == 1 and model == 0:
        assert last.spans == (Span("cloud", 20),)
    assert not cloud.cancelled


async def test_the_origin_of_every_token_is_told() -> None:
    pieces = await pieces_of(speculation_of(SamplingParams(temperature=0.8, seed=SEED, max_tokens=7)), ToyCloud(), 2)
    assert pieces[-1].spans == (Span("drafted", 2), Span("cloud", 1), Span("drafted", 2), Span("cloud", 2))


async def test_an_end_token_inside_the_accepted_run_ends_the_answer() -> None:
    whole = ToyCloud().plain(PROMPT, PARAMS, SEED)
    ends = frozenset([whole[4]])
    first = whole.index(whole[4])
    cloud, speculation = ToyCloud(end_ids=ends), speculation_of(end_ids=ends)
    pieces = await pieces_of(speculation, cloud, 8)
    assert speculation.output_ids == whole[: first + 1]
    assert "".join(piece.text for piece in pieces) == text(whole[:first])
    assert pieces[-1].finish_reason == "stop"


async def test_nothing_is_shown_before_the_cloud_lets_it_be_seen() -> None:
    def hold(frame: CloudFrame) -> CloudFrame:
        if isinstance(frame, Verdict) and not frame.finish:
            return msgspec.structs.replace(frame, visible_len=min(frame.visible_len, 3))
        return frame

    pieces = await pieces_of(speculation_of(), ToyCloud(tamper=hold), 4)
    assert [len(piece.text) for piece in pieces] == [3, 17]


async def test_a_stale_answer_puts_the_device_right() -> None:
    rounds = count(1)

    def lie_once(frame: CloudFrame) -> CloudFrame:
        """The second verdict's token arrives as another one: from there the device's prefix is wrong."""
        if isinstance(frame, Verdict) and next(rounds) == 2:
            assert frame.token is not None
            return msgspec.structs.replace(frame, token=(frame.token + 1) % VOCAB, visible_len=4)
        return frame

    cloud, speculation = ToyCloud(tamper=lie_once), speculation_of()
    with pytest.raises(ProtocolError) as refused:  # no prefix of an earlier window explains it
        await pieces_of(speculation, cloud, 3)
    assert refused.value.code == "prefix_hash"


async def test_a_correction_within_the_window_is_taken() -> None:
    """The cloud committed tokens of which the device has not heard: it says which, and the answer is the same."""
    expected = ToyCloud().plain(PROMPT, PARAMS, SEED)
    stale = iter([Stale(1, len(PROMPT) + 2, pack_ids(expected[2:5]), len(PROMPT) + 5, TICKET, 0)])

    class Ahead(ToyCloud):
        def _verify(self, frame: Draft) -> CloudFrame:
            for correction in stale:
                self._session.last_round = 1
                self._session.committed += expected[:5]
                return correction
            return super()._verify(frame)

    cloud, speculation = Ahead(), speculation_of()
    pieces = await pieces_of(speculation, cloud, 2)
    assert speculation.output_ids == expected
    assert "".join(piece.text for piece in pieces) == text(expected)
    assert pieces[-1].spans[:2] == (Span("drafted", 2), Span("cloud", 3))


async def test_a_cloud_that_only_corrects_is_not_followed_for_ever() -> None:
    class Stubborn(ToyCloud):
        def _verify(self, frame: Draft) -> CloudFrame:
            more = self.more * frame.round
            return Stale(frame.round, frame.base_len, pack_ids([1] * more), frame.base_len + more, TICKET, 0)

    for more in (0, 1):
        cloud = Stubborn()
        cloud.more = more
        with pytest.raises(ProtocolError, match="just corrected"):
            await pieces_of(speculation_of(), cloud, 2)
        assert cloud.cancelled


@pytest.mark.parametrize("k", [0, 3])
async def test_a_cloud_that_does_not_stop_at_the_limit_is_not_followed(k: int) -> None:
    def on_and_on(frame: CloudFrame) -> CloudFrame:
        return msgspec.structs.replace(frame, finish=None) if isinstance(frame, Verdict) else frame

    speculation = speculation_of()
    with pytest.raises(ProtocolError, match="goes on after 20 tokens"):
        await pieces_of(speculation, ToyCloud(tamper=on_and_on), k)
    assert len(speculation.output_ids) == 20


async def test_a_cancellation_while_the_link_says_goodbye_still_closes_it() -> None:
    class Slow(LoopbackLink):
        closed = False

        async def send(self, frame: DeviceFrame) -> None:
            if isinstance(frame, Cancel):
                raise asyncio.CancelledError
            await super().send(frame)

        async def close(self) -> None:
            self.closed = True

    link = Slow(ToyCloud().handle)
    pieces = speculation_of().pieces(link, 2, run)
    await anext(pieces)
    with pytest.raises(asyncio.CancelledError):
        await pieces.aclose()
    assert link.closed


async def test_when_the_device_is_full_the_cloud_goes_on_alone() -> None:
    cloud, speculation = ToyCloud(), speculation_of(context=12)
    await pieces_of(speculation, cloud, 4)
    assert speculation.output_ids == cloud.plain(PROMPT, PARAMS, SEED)
    assert [len(frame.ids) // 3 for frame in cloud.frames if isinstance(frame, Draft)][-3:] == [0, 0, 0]


async def test_when_too_many_drafts_were_wrong_plain_steps_finish_the_answer() -> None:
    class Strict(ToyCloud):
        def _verify(self, frame: Draft) -> CloudFrame:
            return Error("quota_exceeded", "too many", frame.round, 1.0) if frame.round > 2 and frame.ids else super()._verify(frame)

    cloud, speculation = Strict(), speculation_of(p=1.0)
    await pieces_of(speculation, cloud, 4)
    assert speculation.output_ids == cloud.plain(PROMPT, PARAMS, SEED)
    assert [len(frame.ids) // 3 for frame in cloud.frames if isinstance(frame, Draft)] == [4, 4, 4] + [0] * 18


async def test_a_session_that_the_cloud_has_ended_is_a_link_that_is_lost() -> None:
    class Gone(ToyCloud):
        def _verify(self, frame: Draft) -> CloudFrame:
            return Error("lease_expired", "idle") if frame.round > 2 else super()._verify(frame)

    speculation = speculation_of()
    with pytest.raises(StreamInterrupted):
        await pieces_of(speculation, Gone(), 4)
    assert len(speculation.output_ids) == 10


async def test_leaving_early_cancels_the_answer() -> None:
    cloud, speculation = ToyCloud(), speculation_of()
    async with aclosing(speculation.pieces(LoopbackLink(cloud.handle), 2, run)) as pieces:
        await anext(pieces)
    assert cloud.cancelled


async def test_a_lost_link_leaves_what_was_committed() -> None:
    cloud, speculation = ToyCloud(dies_at_round=3), speculation_of()
    with pytest.raises(StreamInterrupted):
        await pieces_of(speculation, cloud, 3)
    assert speculation.output_ids == cloud.plain(PROMPT, PARAMS, SEED)[:8]
    assert len(speculation.origins) == 8
    assert speculation.text.shown == text(speculation.output_ids)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Error("fingerprint_mismatch", "toy here, other there"), FingerprintMismatch),
        (Error("unavailable", "full", retry_after_s=3.0), Unavailable),
        (Error("round_order", "no", 1), ProtocolError),
    ],
)
async def test_an_error_frame_is_the_error_it_says(error: Error, kind: type[Exception]) -> None:
    def refuse(frame: CloudFrame) -> CloudFrame:
        return error if isinstance(frame, Opened) else frame

    with pytest.raises(kind):
        await pieces_of(speculation_of(), ToyCloud(tamper=refuse), 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"round": 9},
        {"n_accepted": 3},
        {"committed_len": 99},
        {"visible_len": 99},
        {"token": None, "n_accepted": 0},
        {"token": 2**24 - 1},
    ],
)
async def test_a_verdict_that_does_not_add_up_is_a_protocol_error(changes: dict[str, object]) -> None:
    def forge(frame: CloudFrame) -> CloudFrame:
        return msgspec.structs.replace(frame, **changes) if isinstance(frame, Verdict) else frame

    cloud = ToyCloud(tamper=forge)
    with pytest.raises(ProtocolError):
        await pieces_of(speculation_of(), cloud, 2)
    assert cloud.cancelled


async def test_nothing_is_learned_of_a_verdict_that_keeps_more_than_was_drafted() -> None:
    def boast(frame: CloudFrame) -> CloudFrame:
        return msgspec.structs.replace(frame, n_accepted=1_000_000) if isinstance(frame, Verdict) else frame

    speculation = speculation_of()
    with pytest.raises(ProtocolError, match="1000000 of 2"):
        await pieces_of(speculation, ToyCloud(tamper=boast), 2)
    assert speculation.rounds == [] and speculation.drafts.accepted == 0


async def test_another_version_is_refused_before_anything_is_drafted() -> None:
    def younger(frame: CloudFrame) -> CloudFrame:
        return CloudHello(99, Limits()) if isinstance(frame, CloudHello) else frame

    cloud = ToyCloud(tamper=younger)
    with pytest.raises(ProtocolError, match="version"):
        await pieces_of(speculation_of(), cloud, 2)
    assert not any(isinstance(frame, Draft) for frame in cloud.frames)
