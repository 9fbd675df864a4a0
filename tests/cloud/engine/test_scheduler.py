"""Who is served in a step, and with how many tokens."""

import pytest
from hybrid.cloud.engine.request import Progress, resolve_max_tokens
from hybrid.shared_protocol.errors import ContextOverflow, EngineFailed
from hybrid.tests.support.scheduling import add, handed, names, scheduler_of, step


def test_a_step_never_exceeds_its_budget_and_a_long_prompt_its_share() -> None:
    scheduler = scheduler_of(max_num_batched_tokens=20, long_prefill_token_threshold=12)
    add(scheduler, "long", 40)
    add(scheduler, "short", 5, first=100)
    add(scheduler, "next", 5, first=200)
    assert handed(step(scheduler)) == {"long": 12, "short": 5, "next": 3}
    assert handed(step(scheduler)) == {"short": 1, "long": 12, "next": 2}
    assert handed(step(scheduler)) == {"short": 1, "next": 1, "long": 12}
    assert handed(step(scheduler)) == {"short": 1, "next": 1, "long": 4}
    assert handed(step(scheduler)) == {"long": 1, "short": 1, "next": 1}


def test_twenty_short_requests_beside_a_long_prompt_get_their_first_token_in_the_second_step() -> None:
    scheduler = scheduler_of(blocks=4000, max_num_batched_tokens=512, long_prefill_token_threshold=128)
    long = add(scheduler, "long", 8000)
    shorts = [add(scheduler, f"s{i}", 20, first=10_000 * (i + 1)) for i in range(20)]
    step(scheduler)
    assert sum(short.num_output == 1 for short in shorts) >= 19
    step(scheduler)
    assert all(short.num_output for short in shorts)
    steps = 2
    while not long.num_output:
        before = [short.num_output for short in shorts]
        step(scheduler)
        steps += 1
        assert [short.num_output for short in shorts] == [n + 1 for n in before], "the long prompt stalled a reader"
    assert steps == 63  # 8000 / 128, rounded up


def test_no_token_is_drawn_for_a_chunk_that_is_not_the_last() -> None:
    scheduler = scheduler_of(max_num_batched_tokens=4)
    add(scheduler, "r", 9)
    assert [step(scheduler).shares[0].num_rows for _ in range(4)] == [0, 0, 1, 1]


def test_requests_beyond_the_places_wait_in_order() -> None:
    scheduler = scheduler_of(max_num_seqs=2)
    a, *_ = [add(scheduler, name, 4, first=100 * i) for i, name in enumerate("abcd")]
    step(scheduler)
    assert (names(scheduler.running), names(scheduler.waiting)) == (["a", "b"], ["c", "d"])
    scheduler.finish(a)
    step(scheduler)
    assert (names(scheduler.running), names(scheduler.waiting)) == (["b", "c"], ["d"])


def test_a_request_that_waits_or_runs_can_be_finished_at_any_time() -> None:
    scheduler = scheduler_of(blocks=4)
    a, b, c = (add(scheduler, name, 8, first=100 * i) for i, name in enumerate("abc"))
    step(scheduler)
    assert (a.state, b.state, c.state) == ("running", "running", "waiting")
    scheduler.finish(b)
    scheduler.finish(c)
    scheduler.finish(a)
    assert not scheduler.has_work
    counts = scheduler.pool.counts()
    assert (counts.used, counts.free + counts.cached) == (0, counts.total)


def test_a_request_that_can_never_fit_is_refused_with_the_real_limit() -> None:
    assert resolve_max_tokens(10, 23, limit=32) == 23
    with pytest.raises(ContextOverflow) as refused:
        resolve_max_tokens(10, 24, limit=32)
    assert (refused.value.asked, refused.value.limit) == (33, 32)
    assert resolve_max_tokens(10, None, limit=32) == 23
    assert resolve_max_tokens(32, None, limit=32) == 1
    with pytest.raises(ContextOverflow):
        resolve_max_tokens(33, None, limit=32)


def test_a_stuck_request_is_named() -> None:
    scheduler = scheduler_of(blocks=2)
    add(scheduler, "too-large", 9)
    with pytest.raises(EngineFailed, match="too-large"):
        scheduler.schedule()


def test_progress_is_an_inequality() -> None:
    Progress(0, 0, 1)
    for broken in ((1, 0, 2), (0, 3, 2), (-1, 0, 0)):
        with pytest.raises(AssertionError):
            Progress(*broken)
