"""An independent verifier of the scheduler's books: it walks the pool's arrays itself and keeps a shadow of the KV cache.

The shadow holds, for every slot, the whole sequence up to the position that was written there, as the real K and V depend on it.
"""

from collections import Counter

from hybrid.cloud.engine.request import Request
from hybrid.cloud.engine.scheduler import Scheduler, StepPlan

Shadow = dict[int, tuple[int, ...]]


def compute(plan: StepPlan, shadow: Shadow, block_size: int) -> None:
    """Write what the executor would write, and check that the plan can be computed: slots there, and written by this request only."""
    written: Counter[int] = Counter()
    for share in plan.shares:
        sequence = (*share.request.token_ids, *share.request.draft_ids)
        assert share.count >= 1 and share.start + share.count <= len(sequence)
        assert 0 <= share.num_drafts <= len(share.request.draft_ids)
        assert share.num_rows == (1 + share.num_drafts if share.start + share.count >= len(share.request.token_ids) else 0)
        for position in range(share.start, share.start + share.count):
            slot = share.request.block_ids[position // block_size] * block_size + position % block_size
            written[slot] += 1
            shadow[slot] = sequence[: position + 1]
    assert all(count == 1 for count in written.values()), "two requests write one slot"


def verify(scheduler: Scheduler, alive: list[Request], shadow: Shadow, block_size: int) -> None:
    """Raises AssertionError when any number is wrong."""
    pool = scheduler.pool
    listed, block = [], pool._next[0]
    while block != 0:
        assert pool._previous[pool._next[block]] == block and pool._next[pool._previous[block]] == block
        listed.append(block)
        block = pool._next[block]
    held = Counter(b for request in alive for b in request.block_ids)
    everything = set(range(1, pool.num_blocks))
    assert len(listed) == len(set(listed)) and set(listed) == everything - set(held), "a block is lost or handed out twice"
    for b in everything:
        assert pool.references(b) == held[b]
    cached = [b for b in listed if pool.content(b) is not None]
    counts = pool.counts()
    assert (counts.total, counts.free, counts.cached, counts.used) == (len(everything), len(listed) - len(cached), len(cached), len(held))
    assert counts.total == counts.free + counts.cached + counts.used

    places = Counter(request.state for request in alive)
    assert places["running"] + places["parked"] <= scheduler.limits.max_num_seqs
    assert [r for r in alive if r.state == "waiting"] == sorted(scheduler.waiting, key=lambda r: r.arrival)
    owners: dict[int, tuple[int, ...]] = {}
    for request in alive:
        ids = tuple(request.token_ids)
        assert 0 <= request.progress.num_cached <= request.num_computed <= request.num_tokens == len(ids)
        if request.state in ("waiting", "dormant"):
            assert request.num_computed == 0 and not request.block_ids
        blocks = list(request.block_ids)
        assert len(set(blocks)) == len(blocks) and 0 not in blocks
        assert len(blocks) * block_size >= request.num_computed, "the table does not cover what is computed"
        for position in range(request.num_computed):
            slot = blocks[position // block_size] * block_size + position % block_size
            assert shadow[slot] == ids[: position + 1], "a slot holds something else than this sequence"
        for index, b in enumerate(blocks):
            if held[b] > 1:
                prefix = ids[: (index + 1) * block_size]
                assert len(prefix) == (index + 1) * block_size and owners.setdefault(b, prefix) == prefix, "shared and not equal"
                assert (index + 1) * block_size <= request.num_computed, "shared and still written"
    for key, b in pool._blocks.items():
        content = pool.content(b)
        assert content is not None and content.key == key
        last = shadow[b * block_size + block_size - 1]
        assert b"".join(i.to_bytes(4, "little") for i in last[-block_size:]) == content.tokens, "content and cache differ"
