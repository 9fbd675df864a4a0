"""Giving up while the engine works, and an engine that fails."""

import asyncio

import pytest
from hybrid.shared_protocol import frames
from hybrid.tests.support.drafting import opening
from hybrid.tests.support.drafting_cloud import Cloud, error_of, pending, started


@pytest.mark.parametrize("how", [lambda h: h.handle(frames.Cancel()), lambda h: h.handle(frames.Close()), lambda h: asyncio.to_thread(int)])
async def test_giving_up_while_the_engine_works_drops_the_answer_and_aborts(how) -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.engine.hold()
    waiting = await pending(cloud, device.handler.handle(device.window(b"The")))
    queued = await pending(cloud, device.handler.handle(device.window(b"The", round=2)))
    assert await how(device.handler) in ([], 0)
    if not waiting.done():
        device.handler.close()  # the socket is gone
    assert await waiting == [] and await queued == []
    assert len(cloud.engine.aborted) == 1 and cloud.engine.alive == 0


async def test_giving_up_before_the_prompt_is_computed_aborts_it() -> None:
    cloud = Cloud(held=True)
    handler = await cloud.greeted()
    waiting = await pending(cloud, handler.handle(opening()))
    await handler.handle(frames.Cancel())
    assert await waiting == []
    assert len(cloud.engine.aborted) == 1
    cloud.engine.release()
    assert isinstance((await handler.handle(opening()))[0], frames.Opened)


async def test_giving_up_while_messages_are_rendered_opens_nothing() -> None:
    cloud = Cloud()
    handler = await cloud.greeted()
    waiting = asyncio.ensure_future(handler.handle(opening(ids=None, messages=(frames.ChatMessage("Q", ""),))))
    await asyncio.sleep(0)
    handler.close()
    assert await waiting == [] and not cloud.engine.added


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    cloud = Cloud(held=True)
    handler = await cloud.greeted()
    waiting = await pending(cloud, handler.handle(opening()))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert cloud.engine.alive == 0


async def test_ping_is_answered_while_the_engine_works() -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.engine.hold()
    waiting = await pending(cloud, device.handler.handle(device.window(b"The")))
    assert await device.handler.handle(frames.Ping(3)) == [frames.Pong(3)]
    cloud.engine.release()
    assert (await waiting)[0].n_accepted == 3


async def test_an_engine_that_fails_is_reported_and_the_session_is_gone() -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.engine.fail("a kernel failed")
    error = await error_of(device.handler, device.window(b"T"))
    assert (error.code, error.message, error.round) == ("engine_failed", "a kernel failed", 1)
    assert (await error_of(device.handler, device.window(b"T"))).code == "unknown_session"
