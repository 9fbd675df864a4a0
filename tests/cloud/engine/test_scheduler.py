from array import array

import pytest
from hybrid.cloud.engine.block_pool import BlockPool
from hybrid.cloud.engine.prefix_cache import Chain, PrefixCache
from hybrid.cloud.engine.request import Progress, Request, Round, resolve_max_tokens
from hybrid.cloud.engine.scheduler import Limits, Scheduler, StepPlan
from hybrid.cloud.engine.session import RemoteSession
from hybrid.shared_protocol.errors import ContextOverflow, EngineFailed
from hybrid.tests.cloud.engine.accounting import Shadow, compute, verify
from hypothesis import given, settings
from hypothesis import strategies as st

SIZE = 4  # tokens of a block, in all tests here


def scheduler_of(blocks: int = 64, **limits: int) -> Scheduler:
    """`blocks` besides the null block."""
    pool = BlockPool(blocks + 1)
    return Scheduler(pool, PrefixCache(pool, SIZE), SIZE, Limits(**limits))


def request_of(name: str, ids, *, max_tokens: int = 100, remote: bool = False) -> Request:
    ids = array("i", ids)
    return Request(name, ids, len(ids), max_tokens, Chain(b"", SIZE), session=RemoteSession(list(ids)) if remote else None)


def add(scheduler: Scheduler, name: str, length: int, *, first: int = 0, **kw) -> Request:
    request = request_of(name, range(first, first + length), **kw)
    scheduler.add(request)
    return request


def step(scheduler: Scheduler, token: int = 7) -> StepPlan:
    """One step in which every draw gives `token` and no draft is accepted."""
    plan = scheduler.schedule()
    for share in plan.shares:
        scheduler.commit(share, (token,) if share.num_rows else ())
        if share.request.session and share.request.state == "running" and share.request.num_computed == share.request.num_tokens - 1:
            share.request.round = None
            scheduler.park(share.request)
    return plan


def handed(plan: StepPlan) -> dict[str, int]:
    return {share.request.request_id: share.count for share in plan.shares}


def names(requests) -> list[str]:
    return [request.request_id for request in requests]


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
    scheduler = scheduler_of(blocks=4000, max_num_batched_tokens=512)
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


def draft(scheduler: Scheduler, session: Request, ids: tuple[int, ...]) -> None:
    session.round = Round(ids)
    scheduler.resume(session)


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


def test_progress_is_an_inequality() -> None:
    Progress(0, 0, 1)
    for broken in ((1, 0, 2), (0, 3, 2), (-1, 0, 0)):
        with pytest.raises(AssertionError):
            Progress(*broken)


events = st.one_of(
    st.tuples(st.just("add"), st.lists(st.integers(0, 1), min_size=1, max_size=14), st.booleans(), st.integers(1, 16)),
    st.tuples(st.just("abort"), st.integers(0, 9)),
    st.tuples(st.just("draft"), st.integers(0, 9), st.lists(st.integers(0, 1), max_size=9)),
    st.tuples(st.just("draft"), st.integers(0, 9), st.lists(st.integers(0, 1), max_size=9)),
    st.tuples(st.just("step"), st.lists(st.integers(0, 1), min_size=1, max_size=5), st.integers(0, 6)),
    st.tuples(st.just("step"), st.lists(st.integers(0, 1), min_size=1, max_size=5), st.integers(0, 6)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(events, min_size=5, max_size=60), st.integers(4, 9), st.sampled_from([1, 3, 8, 64]), st.integers(1, 4), st.integers(1, 9))
def test_the_books_balance_after_every_step_whatever_happens(script, blocks, tokens, seqs, threshold) -> None:
    scheduler = scheduler_of(blocks, max_num_batched_tokens=tokens, max_num_seqs=seqs, long_prefill_token_threshold=threshold)
    alive: dict[str, Request] = {}
    shadow: Shadow = {}

    def one_step(draws: list[int], accept: int) -> None:
        plan = scheduler.schedule()
        assert sum(share.count for share in plan.shares) <= tokens
        assert len({share.request.request_id for share in plan.shares}) == len(plan.shares)
        compute(plan, shadow, SIZE)
        for i, share in enumerate(plan.shares):
            request, num = share.request, min(accept, share.num_drafts)
            new_ids = (*request.draft_ids[:num], draws[i % len(draws)]) if share.num_rows else ()
            new_ids = new_ids[: request.max_tokens - request.num_output]
            scheduler.commit(share, new_ids)
            if request.num_output == request.max_tokens:
                scheduler.finish(request)
                del alive[request.request_id]
            elif request.session and request.num_computed == request.num_tokens - 1:
                request.round = None
                scheduler.park(request)

    for number, event in enumerate(script):
        match event:
            case ("add", ids, remote, max_tokens):
                request = request_of(f"r{number}", ids, max_tokens=max_tokens, remote=remote)
                if len(ids) + max_tokens - 1 <= blocks * SIZE:
                    scheduler.add(request)
                    alive[request.request_id] = request
            case ("abort", which) if alive:
                request = list(alive.values())[which % len(alive)]
                scheduler.finish(request)
                del alive[request.request_id]
            case ("draft", which, ids) if idle := [r for r in alive.values() if r.state in ("parked", "dormant")]:
                session = idle[which % len(idle)]
                draft(scheduler, session, tuple(ids)[: session.max_tokens - session.num_output - 1])
            case ("step", draws, accept):
                one_step(draws, accept)
        verify(scheduler, list(alive.values()), shadow, SIZE)

    for _ in range(400):
        if not scheduler.has_work:
            break
        one_step([0], 0)
        verify(scheduler, list(alive.values()), shadow, SIZE)
    assert not scheduler.has_work, "somebody never got on"
    for request in list(alive.values()):
        scheduler.finish(request)
    counts = scheduler.pool.counts()
    assert (counts.used, counts.free + counts.cached) == (0, counts.total)
