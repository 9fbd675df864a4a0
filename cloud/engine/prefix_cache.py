"""Which blocks already hold the beginning of a sequence.

A full block is named by a chain of SHA-256: what the numbers in it depend on, what came before it, its ids, and what else went in.

    root = H(scope)        key 0 = H(root, ids 0..15, salt)      key 1 = H(key 0, ids 16..31)      ...

The hash has no seed: two processes, and two machines with the same kernel, name the same content alike.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal
from urllib.parse import quote, unquote

from ...shared_protocol.errors import InvalidRequest
from .block_pool import BlockPool, Content


@dataclass(frozen=True, slots=True)
class Scope:
    """Everything besides tokens that the numbers in a block depend on."""

    model_hash: str  # SHA-256 of the model file
    kv_type: str
    block_size: int
    kernel_id: str
    network: str  # what is computed with the weights: rotary frequencies, windows, scales

    def __bytes__(self) -> bytes:
        return str(self).encode()

    def __str__(self) -> str:
        parts = (self.model_hash, self.kv_type, str(self.block_size), self.kernel_id, self.network)
        return ":".join(quote(part, safe="") for part in parts)


@dataclass(frozen=True, slots=True)
class BlockKey:
    """The name of a block's content outside the process. `parse(str(key)) == key`, whatever the names in the scope."""

    scope: Scope
    digest: bytes

    def __str__(self) -> str:
        return f"kv1:{self.scope}:{self.digest.hex()}"

    @classmethod
    def parse(cls, text: str) -> BlockKey:
        """Raises InvalidRequest when `text` is not the text form of a key."""
        try:
            version, model_hash, kv_type, block_size, kernel_id, network, digest = text.split(":")
            scope = Scope(unquote(model_hash), unquote(kv_type), int(block_size), unquote(kernel_id), unquote(network))
            key = cls(scope, bytes.fromhex(digest))
        except ValueError:
            version, key = "", None
        if version != "kv1" or key is None or len(key.digest) != 32 or str(key) != text:
            raise InvalidRequest(f"not a block key: {text[:80]!r}", hint="kv1:model:kv type:block size:kernel:network:digest")
        return key


@dataclass(frozen=True, slots=True)
class Extra:
    """Something besides tokens that went into a request: its salt now, adapters and images when they come."""

    kind: Literal["salt", "adapter", "image"]
    value: str


def chain_key(parent: bytes, tokens: Sequence[int], extras: Sequence[Extra] = ()) -> bytes:
    """The key of a block: lengths precede all that varies, so no two inputs give the same bytes."""
    digest = sha256(parent)
    digest.update(struct.pack(f"<I{len(tokens)}I", len(tokens), *tokens))
    for extra in extras:
        value = extra.value.encode()
        digest.update(struct.pack("<8sI", extra.kind.encode(), len(value)) + value)
    return digest.digest()


class Chain:
    """The keys of one sequence's full blocks, computed once as the sequence grows; the salt goes into the first and so into all."""

    __slots__ = ("_block_size", "_extras", "keys", "root")

    def __init__(self, scope: bytes, block_size: int, extras: tuple[Extra, ...] = ()) -> None:
        self.root = sha256(scope).digest()
        self.keys: list[bytes] = []
        self._block_size = block_size
        self._extras = extras

    def extend(self, token_ids: Sequence[int]) -> None:
        """Name all full blocks of `token_ids`, of which earlier calls have seen a prefix."""
        size = self._block_size
        for index in range(len(self.keys), len(token_ids) // size):
            tokens = token_ids[index * size : (index + 1) * size]
            self.keys.append(chain_key(self.parent(index), tokens, () if index else self._extras))

    def parent(self, index: int) -> bytes:
        return self.keys[index - 1] if index else self.root


class PrefixCache:
    """Finds and publishes full blocks of committed tokens in a pool. `num_queried` and `num_hit` count tokens of admitted requests."""

    def __init__(self, pool: BlockPool, block_size: int) -> None:
        self._pool = pool
        self._block_size = block_size
        self.num_queried = 0
        self.num_hit = 0

    def match(self, chain: Chain, token_ids: array[int]) -> list[int]:
        """Blocks that hold the beginning of `token_ids`, never the last token: its logits are always computed. Changes nothing.

        Keys name, tokens decide: a block is a hit when its ids and its parent are equal, not only its hash.
        """
        size, blocks = self._block_size, []
        for index in range((len(token_ids) - 1) // size):
            block = self._pool.find(chain.keys[index])
            if block is None or self._pool.content(block) != _content(chain, token_ids, index, size):
                break
            blocks.append(block)
        return blocks

    def publish(self, chain: Chain, token_ids: array[int], block_ids: Sequence[int], first: int, last: int) -> None:
        """Make blocks `first` .. `last` - 1 of a sequence findable; all their tokens are committed and computed."""
        for index in range(first, last):
            block = block_ids[index]
            if self._pool.content(block) is None:
                self._pool.publish(block, _content(chain, token_ids, index, self._block_size))


def _content(chain: Chain, token_ids: array[int], index: int, size: int) -> Content:
    return Content(chain.keys[index], chain.parent(index), token_ids[index * size : (index + 1) * size].tobytes())
