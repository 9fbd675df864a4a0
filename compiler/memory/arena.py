"""The memories of a chip, and what wants to lie in them."""

from __future__ import annotations

from dataclasses import dataclass

from .buffer import Buffer
from .errors import InvalidBuffers


@dataclass(frozen=True, slots=True)
class Arena:
    """One memory. Whatever lies in it begins at a multiple of `alignment` bytes, as its transfers need."""

    name: str
    capacity: int  # bytes
    alignment: int = 1

    def __post_init__(self) -> None:
        if self.capacity < 0 or self.alignment < 1:
            raise InvalidBuffers(
                f"arena {self.name} has {self.capacity} bytes with alignment {self.alignment}", hint="needs capacity >= 0, alignment >= 1"
            )


@dataclass(frozen=True, slots=True)
class Wanted:
    """A buffer, the arenas it may lie in (the best first), and what a worse one costs.

    Its bytes are touched `reuse` times each, so it moves size x reuse bytes over the wires of wherever it lies. What is `kept` shares its
    bytes with nobody at any step: the ring of keys and values, inputs and outputs that the host reads and writes when it likes.
    """

    buffer: Buffer
    arenas: tuple[str, ...]
    reuse: float = 1.0
    kept: bool = False

    def __post_init__(self) -> None:
        if not self.arenas or len(set(self.arenas)) < len(self.arenas) or self.reuse < 0:
            raise InvalidBuffers(
                f"buffer {self.buffer.id} may lie in ({', '.join(self.arenas)}) and is touched {self.reuse} times a byte",
                ids=(self.buffer.id,),
                hint="needs at least one arena, none twice, and reuse >= 0",
            )

    @property
    def traffic(self) -> float:
        """Bytes that move when it is used."""
        return self.buffer.size * self.reuse


def page(id: str, size: int, prefetch: int, last_use: int, pool: str, alignment: int = 1) -> Wanted:
    """A page of weights in a fixed pool: its place is taken from the step of its prefetch, and free after its last use."""
    return Wanted(Buffer(id, prefetch, last_use + 1, size, alignment), (pool,))


def ring(id: str, bytes_per_token: int, window: int, arena: str, alignment: int = 1) -> Wanted:
    """Keys and values of the last `window` tokens: there before the first step and after the last one."""
    return Wanted(Buffer(id, 0, 1, bytes_per_token * window, alignment), (arena,), kept=True)
