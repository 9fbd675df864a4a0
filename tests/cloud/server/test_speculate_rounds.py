"""Rounds that are repeated, lost, out of order or wrong."""

from hybrid.shared_protocol import frames
from hybrid.shared_protocol.frames import pack_ids
from hybrid.shared_protocol.verify import prefix_hash
from hybrid.tests.support.byte_tokenizer import EOS
from hybrid.tests.support.drafting import opening
from hybrid.tests.support.drafting_cloud import PROMPT, Cloud, error_of, started


async def test_a_repeated_round_gets_the_same_verdict() -> None:
    device = await started(Cloud())
    window = device.window(b"Thx")
    verdict = await device.draft(b"Thx")
    assert await device.handler.handle(window) == [verdict]
    assert (await device.draft(b" E")).committed_len == 8


async def test_the_round_that_ended_the_answer_may_be_repeated_until_the_session_is_closed() -> None:
    cloud = Cloud(text=b"Hi")
    device = await started(cloud)
    window = device.window((*b"Hi", EOS))
    verdict = await device.draft((*b"Hi", EOS))
    assert verdict.finish == "stop" and cloud.engine.alive == 0
    assert await device.handler.handle(window) == [verdict]
    assert (await error_of(device.handler, device.window(b"x"))).code == "round_order"
    assert (await error_of(device.handler, device.window(b"x", round=1))).code == "round_conflict"
    await device.handler.handle(frames.Close())
    assert (await error_of(device.handler, window)).code == "unknown_session"


async def test_a_round_with_other_ids_a_wrong_hash_and_a_skipped_round_are_named_and_change_nothing() -> None:
    device = await started(Cloud())
    await device.draft(b"Th")
    before = device.committed
    conflict = await error_of(device.handler, device.window(b"x", round=1))
    assert (conflict.code, conflict.round) == ("round_conflict", 1)
    assert (await error_of(device.handler, device.window(b"x", prefix_hash=b"?" * 16))).code == "prefix_hash"
    assert (await error_of(device.handler, device.window(b"x", round=9))).code == "round_order"
    assert (await error_of(device.handler, device.window(b"x", base_len=60))).code == "base_len"
    await device.draft(b" END")
    assert device.committed == (*before, *b" END ")


async def test_a_device_that_lost_a_verdict_is_told_what_is_committed() -> None:
    device = await started(Cloud())
    await device.draft(b"Th")
    (stale,) = await device.handler.handle(device.window(b"Tx", base_len=2, prefix_hash=prefix_hash(PROMPT)))
    assert isinstance(stale, frames.Stale)
    assert (stale.start, stale.ids, stale.committed_len) == (3, pack_ids(b"he"), 5)


async def test_an_id_outside_the_vocabulary_is_refused() -> None:
    device = await started(Cloud())
    error = await error_of(device.handler, device.window((1, 258)))
    assert (error.code, error.round) == ("token_id", 1)
    error = await error_of(await Cloud().greeted(), opening(ids=pack_ids([1, 258])))
    assert error.code == "token_id"
