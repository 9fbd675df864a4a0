"""The scheduler's books under any sequence of events."""

from hybrid.cloud.engine.request import Request
from hybrid.tests.cloud.engine.accounting import Shadow, compute, verify
from hybrid.tests.support.scheduling import SIZE, draft, request_of, scheduler_of
from hypothesis import given, settings
from hypothesis import strategies as st

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
