"""What one key may hold and send."""

from collections.abc import Iterator
from contextlib import contextmanager

from hybrid.cloud.server.speculate.limits import SpeculateLimits
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.errors import Unavailable
from hybrid.tests.support.drafting import opening
from hybrid.tests.support.drafting_cloud import Cloud, error_of, started


async def test_a_key_has_a_limited_number_of_sessions_and_gets_them_back() -> None:
    cloud = Cloud(text=b"", limits=SpeculateLimits(sessions=2))
    first, second = await started(cloud), await started(cloud)
    assert (await error_of(await cloud.greeted(), opening())).code == "quota_exceeded"
    assert isinstance((await (await cloud.greeted("another key")).handle(opening()))[0], frames.Opened)
    first.handler.close()
    first.handler.close()
    third = await started(cloud)
    assert (await error_of(await cloud.greeted(), opening())).code == "quota_exceeded"
    assert (await third.draft()).finish == "stop"  # a finished answer holds no session
    await started(cloud)
    second.handler.close()


async def test_a_session_holds_a_place_in_the_server_until_its_answer_has_ended() -> None:
    inside = []

    @contextmanager
    def admit() -> Iterator[None]:
        if inside:
            raise Unavailable("the server is shutting down", retry_after_s=5)
        inside.append(1)
        yield
        inside.clear()

    cloud = Cloud(text=b"")
    cloud.service.admit = admit
    device = await started(cloud)
    error = await error_of(await cloud.greeted(), opening())
    assert (error.code, error.retry_after_s) == ("unavailable", 5)
    assert (await device.draft()).finish == "stop" and not inside
    await started(cloud)


async def test_frames_are_limited_per_key_and_say_when_to_come_again() -> None:
    cloud = Cloud(limits=SpeculateLimits(frames_per_s=2, frames_burst=4))
    device = await started(cloud)  # two frames
    await device.handler.handle(frames.Ping())
    await cloud.service.connect("key").handle(frames.Ping())  # another connection, the same key
    error = await error_of(device.handler, frames.Ping())
    assert (error.code, error.retry_after_s) == ("quota_exceeded", 0.5)
    cloud.clock.now += 0.5
    assert await device.handler.handle(frames.Ping(1)) == [frames.Pong(1)]


async def test_rejected_drafts_are_limited_per_key_while_plain_steps_go_on() -> None:
    cloud = Cloud(text=b"The END of it, or so it seems", limits=SpeculateLimits(wasted_per_s=1, wasted_burst=10))
    device = await started(cloud)
    assert (await device.draft(b"xxxxxxxx")).n_accepted == 0  # 8 wasted, 2 left
    error = await error_of(device.handler, device.window(b"he E"))
    assert (error.code, error.retry_after_s, error.round) == ("quota_exceeded", 2.0, 2)
    assert (await device.draft()).token == ord("h")
    cloud.clock.now += 2
    assert (await device.draft(b"e EN")).n_accepted == 4  # accepted drafts cost nothing
    assert (await device.draft(b" of ")).n_accepted == 4
    assert (await device.draft(b"t, o")).n_accepted == 4
