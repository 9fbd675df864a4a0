import os
import subprocess
import sys
from array import array
from hashlib import sha256

import pytest
from hybrid.cloud.engine.block_pool import BlockPool, Content
from hybrid.cloud.engine.prefix_cache import BlockKey, Chain, Extra, PrefixCache, Scope, chain_key
from hybrid.shared_protocol.errors import InvalidRequest
from hypothesis import given
from hypothesis import strategies as st

SCOPE = Scope("0" * 64, "f16", 4, "avx2-1", "base=10000")


def cache_of(ids: list[int], blocks: int = 8, salt: str = "") -> tuple[PrefixCache, BlockPool]:
    """A cache in which a sequence of `ids` has just ended; blocks of 4."""
    pool = BlockPool(blocks)
    cache = PrefixCache(pool, 4)
    held = pool.allocate(len(ids) // 4)
    cache.publish(chain_of(ids, salt), array("i", ids), held, 0, len(held))
    pool.release(held)
    return cache, pool


def chain_of(ids: list[int], salt: str = "", scope: Scope = SCOPE) -> Chain:
    chain = Chain(bytes(scope), 4, (Extra("salt", salt),) if salt else ())
    chain.extend(ids)
    return chain


def hit(cache: PrefixCache, ids: list[int], **kw) -> int:
    return len(cache.match(chain_of(ids, **kw), array("i", ids)))


def test_the_longest_run_of_equal_full_blocks_is_found() -> None:
    cache, _ = cache_of(list(range(12)))
    assert hit(cache, [*range(12), 99]) == 3
    assert hit(cache, [*range(11), 99, 99]) == 2
    assert hit(cache, [99, *range(1, 12), 99]) == 0


@pytest.mark.parametrize(("length", "blocks"), [(3, 0), (4, 0), (5, 1), (8, 1), (9, 2), (12, 2), (13, 3)])
def test_at_least_one_token_is_always_computed(length: int, blocks: int) -> None:
    cache, _ = cache_of(list(range(16)))
    assert hit(cache, list(range(length))) == blocks


def test_another_salt_or_another_model_sees_nothing() -> None:
    ids = list(range(9))
    cache, _ = cache_of(ids, salt="key-1")
    assert hit(cache, ids, salt="key-1") == 2
    assert hit(cache, ids, salt="key-2") == 0
    assert hit(cache, ids) == 0
    for other in (
        Scope("1" * 64, "f16", 4, "avx2-1", "base=10000"),
        Scope("0" * 64, "f32", 4, "avx2-1", "base=10000"),
        Scope("0" * 64, "f16", 4, "avx2-2", "base=10000"),
        Scope("0" * 64, "f16", 4, "avx2-1", "base=20000"),
    ):
        assert hit(cache, ids, salt="key-1", scope=other) == 0


def test_a_key_depends_on_the_kind_of_an_extra_and_not_only_on_its_text() -> None:
    keys = {chain_key(b"", (1, 2), (Extra(kind, "x"),)) for kind in ("salt", "adapter", "image")}
    assert len(keys | {chain_key(b"", (1, 2))}) == 4
    assert chain_key(b"", (1,), (Extra("salt", "ab"),)) != chain_key(b"", (1,), (Extra("salt", "a"), Extra("salt", "b")))


def test_tokens_are_compared_when_keys_collide() -> None:
    ids = [1, 2, 3, 4, 5]
    pool = BlockPool(4)
    (block,) = pool.allocate(1)
    chain = chain_of(ids)
    pool.publish(block, Content(chain.keys[0], chain.root, array("i", [1, 2, 3, 9]).tobytes()))
    assert PrefixCache(pool, 4).match(chain, array("i", ids)) == []


def test_a_key_is_what_the_page_says_it_is() -> None:
    root = sha256(b"0" * 64 + b":f16:4:avx2-1:base%3D10000").digest()
    tokens = b"".join(i.to_bytes(4, "little") for i in (4, 7, 8, 9, 65535))
    salt = b"salt\0\0\0\0" + (5).to_bytes(4, "little") + b"key-1"
    first = sha256(root + tokens + salt).digest()
    second = sha256(first + b"".join(i.to_bytes(4, "little") for i in (4, 1, 2, 3, 4))).digest()
    assert chain_of([7, 8, 9, 65535, 1, 2, 3, 4, 5], salt="key-1").keys == [first, second]


def test_a_chain_that_grows_names_blocks_like_one_made_at_once() -> None:
    chain = Chain(bytes(SCOPE), 4)
    for length in range(20):
        chain.extend(list(range(length)))
    assert chain.keys == chain_of(list(range(19))).keys


def test_two_processes_with_other_hash_seeds_name_a_block_alike() -> None:
    code = "from hybrid.cloud.engine.prefix_cache import *; c = Chain(b'', 2, (Extra('salt', 'ü'),)); c.extend([1, 2, 3]); print(c.keys)"
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1 and said.pop().startswith("[b")


names = st.text(st.one_of(st.sampled_from("/@:%;= \n"), st.characters(exclude_categories=["Cs"])), max_size=12)


@given(names, names, st.integers(1, 1024), names, names, st.binary(min_size=32, max_size=32))
def test_the_text_of_a_key_parses_back(model: str, kv_type: str, block_size: int, kernel: str, rope: str, digest: bytes) -> None:
    key = BlockKey(Scope(model, kv_type, block_size, kernel, rope), digest)
    assert BlockKey.parse(str(key)) == key
    assert "\n" not in str(key)


@pytest.mark.parametrize("text", ["", "kv1", "kv2:a:f16:16:k:r:" + "00" * 32, "kv1:a:f16:x:k:r:" + "00" * 32, "kv1:a:f16:16:k:r:00"])
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        BlockKey.parse(text)
