"""Who gives way when blocks run out, and when it is served again."""

from hybrid.tests.support.scheduling import add, handed, names, scheduler_of, step


def test_when_blocks_run_out_the_newest_gives_way_and_keeps_its_output() -> None:
    scheduler = scheduler_of(blocks=4)
    add(scheduler, "old", 7)
    new = add(scheduler, "new", 7, first=100)
    step(scheduler)
    assert handed(step(scheduler)) == {"old": 1, "new": 1}
    plan = step(scheduler)
    assert (names(plan.preempted), handed(plan)) == (["new"], {"old": 1})
    assert (new.state, new.num_computed, list(new.token_ids)[-2:]) == ("waiting", 0, [7, 7])


def test_nothing_is_admitted_in_a_step_that_took_blocks_away() -> None:
    scheduler = scheduler_of(blocks=5)
    add(scheduler, "idle", 12, remote=True)
    add(scheduler, "r", 8, first=100)
    step(scheduler)
    add(scheduler, "tiny", 1, first=200)
    plan = step(scheduler)
    assert (names(plan.preempted), handed(plan), names(scheduler.waiting)) == (["idle"], {"r": 1}, ["tiny"])
    assert handed(step(scheduler)) == {"r": 1, "tiny": 1}


def test_a_preempted_request_is_served_before_those_that_never_ran() -> None:
    scheduler = scheduler_of(blocks=4)
    old = add(scheduler, "old", 7)
    add(scheduler, "new", 7, first=100)
    step(scheduler)
    add(scheduler, "later", 4, first=200)
    step(scheduler)
    step(scheduler)
    scheduler.finish(old)
    plan = step(scheduler)
    assert names(share.request for share in plan.shares) == ["new", "later"]
    assert plan.shares[0].start == 4, "its first block was still in the prefix cache, its second was forgotten"
