"""What the scheduler makes of blocks that are computed already."""

from hybrid.tests.support.scheduling import add, handed, scheduler_of, step


def test_a_request_waits_for_another_that_computes_its_prefix_and_then_shares_it() -> None:
    scheduler = scheduler_of()
    first = add(scheduler, "first", 9)
    second = add(scheduler, "second", 10)
    third = add(scheduler, "third", 9, first=100)
    assert handed(step(scheduler)) == {"first": 9, "third": 9}
    assert handed(step(scheduler)) == {"first": 1, "third": 1, "second": 2}
    assert (second.progress.num_cached, third.progress.num_cached) == (8, 0)
    assert second.block_ids[:2] == first.block_ids[:2]
    assert (scheduler.cache.num_queried, scheduler.cache.num_hit) == (9 + 9 + 10, 8)


def test_a_hit_is_not_evicted_by_the_request_that_hits() -> None:
    scheduler = scheduler_of(blocks=3)
    first = add(scheduler, "first", 8)
    step(scheduler)
    scheduler.finish(first)
    second = add(scheduler, "second", 12)
    plan = step(scheduler)
    assert (plan.shares[0].start, second.progress.num_cached, len(set(second.block_ids))) == (8, 8, 3)


def test_blocks_of_a_hit_do_not_count_as_room_for_the_rest() -> None:
    scheduler = scheduler_of(blocks=3)
    first = add(scheduler, "first", 8)
    step(scheduler)
    scheduler.finish(first)
    other = add(scheduler, "other", 1, first=100)
    step(scheduler)
    second = add(scheduler, "second", 12)
    assert handed(step(scheduler)) == {"other": 1}
    scheduler.finish(other)
    step(scheduler)
    assert second.progress.num_cached == 8
