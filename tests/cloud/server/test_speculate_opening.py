"""Greeting a device and opening its session."""

import pytest
from hybrid.shared_protocol import frames
from hybrid.shared_protocol.frames import pack_ids
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.drafting import Device, opening
from hybrid.tests.support.drafting_cloud import Cloud, error_of, started


async def test_differing_vocabularies_are_refused_at_the_start_with_both_fingerprints() -> None:
    cloud = Cloud()
    for frame in (opening(fingerprint="swapped"), opening(fingerprint="swapped", ids=None, messages=(frames.ChatMessage("user", "x"),))):
        error = await error_of(await cloud.greeted(), frame)
        assert error.code == "fingerprint_mismatch"
        assert "swapped" in error.message and "bytes" in error.message
    assert not cloud.engine.added


async def test_messages_are_rendered_by_the_cloud_when_the_vocabularies_are_equal() -> None:
    cloud = Cloud()
    messages = (frames.ChatMessage("Q", ""),)
    (opened,) = await (await cloud.greeted()).handle(opening(ids=None, messages=messages))
    assert isinstance(opened, frames.Opened) and cloud.engine.added[0].prompt_ids == tuple(b"Q:")
    error = await error_of(await cloud.greeted(), opening(ids=None, messages=messages, prompt_len=3))
    assert error.code == "invalid_request" and "2 tokens" in error.message


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"model": "other"}, "model_not_found"),
        ({"sampling": SamplingParams(n=2)}, "invalid_request"),
        ({"sampling": SamplingParams(seed=8)}, "invalid_request"),
        ({"ids": b"", "prompt_len": 0}, "invalid_request"),
        ({"ids": pack_ids(bytes(65)), "prompt_len": 65}, "context_length_exceeded"),
        ({"sampling": SamplingParams(max_tokens=64)}, "context_length_exceeded"),
    ],
)
async def test_an_open_that_cannot_be_served_is_refused_before_the_engine_sees_it(changes: dict[str, object], code: str) -> None:
    cloud = Cloud()
    error = await error_of(await cloud.greeted(), opening(**changes))
    assert error.code == code and not cloud.engine.added
    if code == "context_length_exceeded":
        assert "65" in error.message and "64" in error.message


async def test_nothing_is_served_before_hello_but_ping() -> None:
    handler = Cloud().service.connect("key")
    assert await handler.handle(frames.Ping(5)) == [frames.Pong(5)]
    assert (await error_of(handler, opening())).code == "protocol_error"


async def test_a_device_of_another_version_is_refused_with_ours_and_the_connection_ends() -> None:
    handler = Cloud().service.connect("key")
    error = await error_of(handler, frames.Hello((2, 3), frames.Limits()))
    assert error.code == "unsupported_version" and "1" in error.message
    assert handler.closed and await handler.handle(frames.Ping()) == []


async def test_what_is_not_served_yet_says_so_and_the_session_stands() -> None:
    device = await started(Cloud())
    resume = frames.Resume(device.session, b"t" * 16, 2**31, 2, b"h" * 16)
    tree = device.window(b"xy", parents=b"\0\0")
    for frame in (resume, frames.Mode("plain"), frames.Mode("pipelined"), tree):
        assert (await error_of(device.handler, frame)).code == "unsupported"
    assert await device.handler.handle(frames.Mode("sync")) == []
    assert (await device.draft(b"The")).n_accepted == 3


async def test_one_connection_has_one_session_at_a_time_and_another_may_follow() -> None:
    cloud = Cloud()
    device = await started(cloud)
    assert (await error_of(device.handler, opening())).code == "protocol_error"
    await device.handler.handle(frames.Close())
    assert cloud.engine.alive == 0
    second = Device(device.handler, opening())
    await second.open()
    assert second.session != device.session
    assert (await error_of(device.handler, device.window(b"x"))).code == "unknown_session"


async def test_a_session_belongs_to_its_connection() -> None:
    cloud = Cloud()
    device = await started(cloud)
    stranger = await cloud.greeted("another key")
    assert (await error_of(stranger, device.window(b"x"))).code == "unknown_session"
