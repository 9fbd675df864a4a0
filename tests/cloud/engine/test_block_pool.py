from hybrid.cloud.engine.block_pool import BlockPool, Content, PoolCounts


def content(name: str) -> Content:
    return Content(name.encode(), b"", b"")


def publish(pool: BlockPool, block: int, name: str) -> bool:
    return pool.publish(block, content(name))


def test_the_null_block_is_never_handed_out() -> None:
    pool = BlockPool(4)
    assert sorted(pool.allocate(3)) == [1, 2, 3]
    assert pool.counts() == PoolCounts(total=3, free=0, cached=0, used=3)


def test_every_block_is_free_cached_or_used() -> None:
    pool = BlockPool(6)
    blocks = pool.allocate(3)
    publish(pool, blocks[0], "a")
    assert pool.counts() == PoolCounts(total=5, free=2, cached=0, used=3)
    pool.release(blocks)
    assert pool.counts() == PoolCounts(total=5, free=4, cached=1, used=0)
    pool.touch([blocks[0]])
    assert pool.counts() == PoolCounts(total=5, free=4, cached=0, used=1)


def test_a_block_without_content_is_handed_out_before_any_cached_one() -> None:
    pool = BlockPool(4)
    first, second, third = pool.allocate(3)
    publish(pool, first, "a")
    pool.release([first])
    pool.release([second, third])
    assert list(pool.allocate(3)) == [second, third, first]
    assert pool.find(b"a") is None


def test_the_tail_of_a_chain_is_forgotten_before_its_head() -> None:
    pool = BlockPool(4)
    chain = pool.allocate(3)
    for block, name in zip(chain, "abc", strict=True):
        publish(pool, block, name)
    pool.release(chain)
    pool.allocate(1)
    assert [pool.find(key) is None for key in (b"a", b"b", b"c")] == [False, False, True]


def test_the_longest_unused_content_is_forgotten_first() -> None:
    pool = BlockPool(3)
    old, new = pool.allocate(2)
    publish(pool, old, "old")
    publish(pool, new, "new")
    pool.release([old])
    pool.release([new])
    pool.touch([old])
    pool.release([old])
    assert list(pool.allocate(1)) == [new]


def test_a_touched_block_leaves_the_middle_of_the_list_and_is_not_handed_out() -> None:
    pool = BlockPool(6)
    blocks = pool.allocate(5)
    for block in blocks:
        publish(pool, block, str(block))
    for block in blocks:
        pool.release([block])
    pool.touch([blocks[2]])
    assert list(pool.allocate(4)) == [blocks[0], blocks[1], blocks[3], blocks[4]]


def test_a_block_shared_by_two_is_freed_by_the_second_release() -> None:
    pool = BlockPool(3)
    (block,) = pool.allocate(1)
    publish(pool, block, "a")
    pool.touch([block])
    pool.release([block])
    assert pool.counts().used == 1
    pool.release([block])
    assert pool.counts() == PoolCounts(total=2, free=1, cached=1, used=0)


def test_of_two_blocks_with_one_content_the_first_stays_findable() -> None:
    pool = BlockPool(4)
    first, second = pool.allocate(2)
    assert publish(pool, first, "a")
    assert not publish(pool, second, "a")
    pool.release([first, second])
    assert pool.find(b"a") == first
    assert pool.counts() == PoolCounts(total=3, free=2, cached=1, used=0)


def test_forgetting_leaves_what_is_in_use() -> None:
    pool = BlockPool(4)
    first, second = pool.allocate(2)
    publish(pool, first, "a")
    publish(pool, second, "b")
    pool.release([second])
    pool.forget_unused()
    assert (pool.find(b"a"), pool.find(b"b")) == (first, None)
    assert pool.counts() == PoolCounts(total=3, free=2, cached=0, used=1)
