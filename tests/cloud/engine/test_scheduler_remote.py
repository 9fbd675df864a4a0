"""Remote sessions: drafts, parking, and giving way."""

from array import array

from hybrid.tests.support.scheduling import add, draft, handed, names, scheduler_of, step


def test_a_remote_session_computes_all_but_its_last_token_and_parks() -> None:
    scheduler = scheduler_of(max_num_batched_tokens=4)
    session = add(scheduler, "s", 7, remote=True)
    assert handed(step(scheduler)) == {"s": 4}
    plan = step(scheduler)
    assert (handed(plan), plan.shares[0].num_rows, session.state) == ({"s": 2}, 0, "parked")
    assert not scheduler.has_work


def test_a_remote_session_whose_prompt_is_cached_parks_without_a_step_of_its_own() -> None:
    scheduler = scheduler_of()
    add(scheduler, "a", 9, remote=True)
    step(scheduler)
    session = add(scheduler, "b", 9, remote=True)
    plan = step(scheduler)
    assert (handed(plan), names(plan.parked), session.num_computed) == ({}, ["b"], 8)


def test_a_draft_of_k_computes_one_and_k_positions_and_rolls_back_what_is_rejected() -> None:
    scheduler = scheduler_of()
    session = add(scheduler, "s", 7, remote=True)
    step(scheduler)
    draft(scheduler, session, (50, 51, 52))
    (share,) = scheduler.schedule().shares
    assert (share.start, share.count, share.num_drafts, share.num_rows) == (6, 4, 3, 4)
    assert len(session.block_ids) == 3
    scheduler.commit(share, (50, 99))
    assert (session.num_tokens, session.num_computed, len(session.block_ids)) == (9, 8, 3)
    assert scheduler.pool.content(session.block_ids[1]).tokens == array("i", [4, 5, 6, 50]).tobytes()


def test_rejected_drafts_give_their_blocks_back_and_never_enter_the_prefix_cache() -> None:
    scheduler = scheduler_of()
    session = add(scheduler, "s", 7, remote=True)
    step(scheduler)
    draft(scheduler, session, tuple(range(50, 60)))
    (share,) = scheduler.schedule().shares
    assert len(session.block_ids) == 5
    scheduler.commit(share, (99,))
    assert (session.num_computed, len(session.block_ids)) == (7, 2)
    assert [scheduler.pool.content(block) is not None for block in session.block_ids] == [True, False]


def test_a_window_larger_than_the_step_is_verified_in_pieces() -> None:
    scheduler = scheduler_of(max_num_batched_tokens=3)
    session = add(scheduler, "s", 2, remote=True)
    step(scheduler)
    draft(scheduler, session, (50, 51, 52, 53))
    (share,) = scheduler.schedule().shares
    assert (share.count, share.num_drafts) == (3, 2)


def test_drafts_take_no_slot_from_anyone_and_are_verified_as_far_as_slots_are_free() -> None:
    scheduler = scheduler_of(blocks=3)
    session = add(scheduler, "s", 7, remote=True)
    step(scheduler)
    other = add(scheduler, "other", 1, first=100)
    step(scheduler)
    draft(scheduler, session, (50, 51, 52))
    plan = scheduler.schedule()
    assert {share.request.request_id: share.num_drafts for share in plan.shares} == {"other": 0, "s": 1}
    assert (other.state, session.state, plan.preempted) == ("running", "running", ())


def test_parked_sessions_give_way_before_any_running_request_the_longest_idle_first() -> None:
    scheduler = scheduler_of(blocks=5)
    idle = [add(scheduler, name, 4, first=100 * i, remote=True) for i, name in enumerate("ab")]
    running = add(scheduler, "r", 11, first=300)
    step(scheduler)
    step(scheduler)
    assert [s.state for s in idle] == ["parked", "parked"]
    assert names(step(scheduler).preempted) == ["a"]
    assert ([s.state for s in idle], running.state) == (["dormant", "parked"], "running")


def test_a_dormant_session_is_computed_again_at_its_next_draft() -> None:
    scheduler = scheduler_of(blocks=4)
    session = add(scheduler, "s", 8, remote=True)
    step(scheduler)
    big = add(scheduler, "big", 16, first=100, max_tokens=1)
    assert handed(step(scheduler)) == {"big": 16}
    assert session.state == "dormant"
    scheduler.finish(big)
    draft(scheduler, session, (50, 51))
    plan = step(scheduler)
    assert [(s.start, s.count, s.num_rows) for s in plan.shares] == [(0, 10, 3)]


def test_parked_sessions_give_up_their_places_to_those_who_wait() -> None:
    scheduler = scheduler_of(max_num_seqs=1)
    session = add(scheduler, "s", 3, remote=True)
    step(scheduler)
    add(scheduler, "r", 3, first=100)
    assert handed(step(scheduler)) == {"r": 3}
    assert session.state == "dormant"
