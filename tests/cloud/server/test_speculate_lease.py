"""How long a session lasts of which nothing is heard."""

import pytest
from hybrid.shared_protocol import frames
from hybrid.tests.support.drafting import opening
from hybrid.tests.support.drafting_cloud import Cloud, pending, started


async def test_an_idle_session_is_closed_when_its_lease_is_over() -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.clock.now += 29.9
    await device.handler.handle(frames.Ping())  # keeps the connection, not the lease
    assert device.handler.expire() == []
    assert device.handler.lease_left() == pytest.approx(0.1)
    cloud.clock.now += 0.1
    assert [error.code for error in device.handler.expire()] == ["lease_expired"]
    assert device.handler.closed and cloud.engine.alive == 0
    assert device.handler.expire() == []


async def test_a_draft_renews_the_lease_and_a_waiting_one_holds_it() -> None:
    cloud = Cloud()
    device = await started(cloud)
    cloud.clock.now += 20
    await device.draft(b"T")
    cloud.clock.now += 20
    assert device.handler.expire() == []
    cloud.engine.hold()
    waiting = await pending(cloud, device.handler.handle(device.window(b"h")))
    cloud.clock.now += 100
    assert device.handler.expire() == [] and device.handler.lease_left() == 30
    cloud.engine.release()
    await waiting
    assert device.handler.lease_left() == 30


async def test_a_device_may_ask_for_another_lease_within_limits() -> None:
    cloud = Cloud()
    for asked, given in ((5, 5), (0, 30), (10**6, 300)):
        handler = await cloud.greeted()
        (opened,) = await handler.handle(opening(lease_s=asked))
        assert opened.lease_s == given == handler.lease_left()


async def test_a_connection_that_opens_nothing_is_closed_too() -> None:
    cloud = Cloud()
    handler = cloud.service.connect("key")
    cloud.clock.now += 30
    assert [error.code for error in handler.expire()] == ["lease_expired"]
