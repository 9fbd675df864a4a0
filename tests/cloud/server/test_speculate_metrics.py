"""What devices draft is counted beside what clients ask for."""

from hybrid.cloud.engine.messages import EngineStats
from hybrid.cloud.server.metrics import Metrics
from hybrid.shared_protocol import frames
from hybrid.tests.support.drafting_cloud import Cloud, error_of, started


def counting(text: bytes) -> Cloud:
    cloud = Cloud(text)
    cloud.service.metrics = Metrics(lambda: EngineStats(*[0] * 11), "toy")  # this cloud's engine keeps no books
    return cloud


def counts(cloud: Cloud) -> dict[str, float]:
    """Name of a counter, with its reason where it has one -> its value."""
    found = {}
    for family in cloud.service.metrics.registry.collect():
        for sample in family.samples:
            reason = sample.labels.get("finished_reason", "")
            found[sample.name.removeprefix("hybrid:") + (f" {reason}" if reason else "")] = sample.value
    return found


async def test_prompts_answers_drafts_and_ends_of_sessions_are_counted() -> None:
    cloud = counting(b"The END")
    device = await started(cloud)  # a prompt of two tokens
    assert counts(cloud)["prompt_tokens_total"] == 2
    assert (await device.draft(b"Thx")).n_accepted == 2  # and the cloud's own token
    window = device.window(b" EN")
    (verdict,) = await device.handler.handle(window)
    assert isinstance(verdict, frames.Verdict) and verdict.n_accepted == 3
    assert await device.handler.handle(window) == [verdict]  # a repeat is no second draft
    found = counts(cloud)
    assert found["spec_decode_num_drafts_total"] == 2
    assert found["spec_decode_num_draft_tokens_total"] == 6
    assert found["spec_decode_num_accepted_tokens_total"] == 5
    assert found["generation_tokens_total"] == 7  # "The END"
    assert not [name for name in found if name.startswith("request_success_total")]
    device.round, device.committed = 2, tuple(b"Q:The END")
    assert (await device.draft()).finish == "stop"
    assert counts(cloud)["request_success_total stop"] == 1


async def test_a_device_that_leaves_is_counted_once_as_abort() -> None:
    cloud = counting(b"The END")
    device = await started(cloud)
    device.handler.close()
    device.handler.close()
    assert counts(cloud)["request_success_total abort"] == 1


async def test_an_engine_that_fails_is_counted_as_error() -> None:
    cloud = counting(b"The END")
    device = await started(cloud)
    cloud.engine.fail("a kernel failed")
    assert (await error_of(device.handler, device.window(b"T"))).code == "engine_failed"
    assert counts(cloud)["request_success_total error"] == 1
