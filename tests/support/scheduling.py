"""A scheduler without an engine: requests of given ids, and steps whose draws are given."""

from array import array

from hybrid.cloud.engine.block_pool import BlockPool
from hybrid.cloud.engine.prefix_cache import Chain, PrefixCache
from hybrid.cloud.engine.request import Request, Round
from hybrid.cloud.engine.scheduler import Limits, Scheduler, StepPlan
from hybrid.cloud.engine.session import RemoteSession

SIZE = 4  # tokens of a block


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


def draft(scheduler: Scheduler, session: Request, ids: tuple[int, ...]) -> None:
    session.round = Round(ids)
    scheduler.resume(session)
