"""Who holds which block of the KV cache.

Every block is in one of three states; block 0, the null block, is in none: it is never handed out and anchors the list.

    used      referenced by at least one request
    cached    no reference, content still findable      \\ both in the free list, and both may be handed out
    free      no reference, no content                  /

    0 ⇄ free ⇄ ... ⇄ free ⇄ cached, released first ⇄ ... ⇄ cached, released last ⇄ 0
        └ handed out from this end                          released to this end ┘
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NULL_BLOCK = 0


@dataclass(frozen=True, slots=True)
class Content:
    """What a full block holds: its key, its parent's key, and its ids (int32, as bytes)."""

    key: bytes
    parent: bytes
    tokens: bytes


@dataclass(frozen=True, slots=True)
class PoolCounts:
    total: int  # without the null block
    free: int
    cached: int
    used: int


class BlockPool:
    """Reference counts, a doubly linked list of what may be handed out, and an index of contents. All operations O(1) per block."""

    def __init__(self, num_blocks: int) -> None:
        assert num_blocks >= 2, "a pool needs the null block and one more"
        self.num_blocks = num_blocks
        self._references = array("i", [0]) * num_blocks
        self._next = array("i", [*range(1, num_blocks), NULL_BLOCK])
        self._previous = array("i", [num_blocks - 1, *range(num_blocks - 1)])
        self._contents: list[Content | None] = [None] * num_blocks
        self._blocks: dict[bytes, int] = {}  # key -> block
        self._num_allocatable = num_blocks - 1
        self._num_cached = 0

    @property
    def num_allocatable(self) -> int:
        return self._num_allocatable

    def counts(self) -> PoolCounts:
        total = self.num_blocks - 1
        return PoolCounts(total, self._num_allocatable - self._num_cached, self._num_cached, total - self._num_allocatable)

    def references(self, block: int) -> int:
        return self._references[block]

    def content(self, block: int) -> Content | None:
        return self._contents[block]

    def find(self, key: bytes) -> int | None:
        return self._blocks.get(key)

    def allocate(self, count: int) -> array[int]:
        """Hand out `count` blocks, the longest unused first; what they held is forgotten. The caller has checked that they are there."""
        assert count <= self._num_allocatable, f"asked {count} blocks of {self._num_allocatable}"
        blocks = array("i")
        for _ in range(count):
            block = self._next[NULL_BLOCK]
            self._forget(block)
            self._take(block)
            blocks.append(block)
        return blocks

    def touch(self, blocks: Iterable[int]) -> None:
        """Reference blocks whose content is wanted; those without a reference leave the middle of the list."""
        for block in blocks:
            if self._references[block]:
                self._references[block] += 1
            else:
                self._num_cached -= 1
                self._take(block)

    def release(self, blocks: Sequence[int]) -> None:
        """Give up one reference to each, in reverse, so that the tail of a chain is forgotten before its head."""
        for block in reversed(blocks):
            assert block != NULL_BLOCK and self._references[block] > 0, f"block {block} released without a reference"
            self._references[block] -= 1
            if self._references[block] == 0:
                self._num_allocatable += 1
                if self._contents[block] is None:
                    self._link(block, NULL_BLOCK, self._next[NULL_BLOCK])
                else:
                    self._num_cached += 1
                    self._link(block, self._previous[NULL_BLOCK], NULL_BLOCK)

    def publish(self, block: int, content: Content) -> bool:
        """Make a used block findable. False when another block holds this content already: tables only grow, so two may coexist."""
        assert self._references[block] > 0, f"block {block} published without a reference"
        assert self._contents[block] is None, f"block {block} published twice"
        if content.key in self._blocks:
            return False
        self._contents[block] = content
        self._blocks[content.key] = block
        return True

    def forget_unused(self) -> None:
        """Forget all content that no request holds."""
        for block in list(self._blocks.values()):
            if self._references[block] == 0:
                self._forget(block)

    def _take(self, block: int) -> None:
        before, after = self._previous[block], self._next[block]
        self._next[before], self._previous[after] = after, before
        self._references[block] = 1
        self._num_allocatable -= 1

    def _link(self, block: int, before: int, after: int) -> None:
        self._previous[block], self._next[block] = before, after
        self._next[before] = self._previous[after] = block

    def _forget(self, block: int) -> None:
        content = self._contents[block]
        if content is not None:
            self._contents[block] = None
            del self._blocks[content.key]
            self._num_cached -= 1
