"""What a chat template may spend. Templates come with untrusted files, so work is counted, never timed.

One unit buys a loop round, a call, a filter, an item of a container, or 16 characters. Whatever costs time in proportion to its
operands pays for them first, and whatever could build something large says so before it builds it.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from jinja2 import Undefined
from jinja2.exceptions import SecurityError

MAX_ITEMS = 100_000  # of one container
MAX_DEPTH = 64  # of containers in containers: Python's own hash of nested tuples has no limit
MAX_BITS = 4096  # of an integer
CHARACTERS_PER_UNIT = 16

_SCALARS = (int, float, type(None), Undefined)
_SEQUENCES = (list, tuple, range, KeysView, ValuesView, ItemsView)


@dataclass(frozen=True, slots=True)
class RenderLimits:
    fuel: int = 1_000_000  # units, see above
    max_output: int = 4_000_000  # characters of the result, and of any one string on the way
    max_template: int = 262_144  # characters of the template


class OutOfFuel(Exception):
    """The template wanted more than its limits; the message says of what."""


class Meter:
    """The fuel of one rendering. Once empty, every further expense raises again."""

    __slots__ = ("left", "limits")

    def __init__(self, limits: RenderLimits) -> None:
        self.limits = limits
        self.left = limits.fuel

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise OutOfFuel(f"it needs more than {self.limits.fuel} steps")

    def text(self, characters: int) -> None:
        """Pay for reading or building a string; call it before building."""
        if characters > self.limits.max_output:
            raise OutOfFuel(f"it builds a text of more than {self.limits.max_output} characters")
        self.spend(1 + characters // CHARACTERS_PER_UNIT)

    def items(self, count: int) -> None:
        """Pay for a container; call it before building."""
        if count > MAX_ITEMS:
            raise OutOfFuel(f"it builds a list of more than {MAX_ITEMS} items")
        self.spend(1 + count)

    def number(self, bits: int) -> None:
        if bits > MAX_BITS:
            raise OutOfFuel(f"it computes with a number of more than {MAX_BITS} bits")

    def weigh(self, *values: object) -> int:
        """Pay for all that `values` hold, however deep, counting a shared part as often as it is reached. Returns the characters."""
        characters = 0
        stack: list[tuple[object, int]] = [(value, 0) for value in values]
        while stack:
            value, depth = stack.pop()
            if isinstance(value, str):
                characters += len(value)
                self.text(characters if characters > self.limits.max_output else len(value))
                continue
            self.spend(1)
            if isinstance(value, int):
                self.number(value.bit_length())
            if isinstance(value, _SCALARS):
                continue
            if depth >= MAX_DEPTH:
                raise OutOfFuel(f"it nests containers deeper than {MAX_DEPTH}")
            if isinstance(value, dict):
                self.spend(2 * len(value))
                stack.extend((part, depth + 1) for pair in value.items() for part in pair)
            elif isinstance(value, _SEQUENCES):
                self.spend(len(value))
                stack.extend((part, depth + 1) for part in value)
            else:
                raise SecurityError(f"a {type(value).__name__} is not data")
        return characters

    def glance(self, value: object) -> None:
        """Pay for the outermost layer of a result."""
        if isinstance(value, str):
            self.text(len(value))
        elif isinstance(value, list | tuple | dict | range):
            self.items(len(value))

    def collect(self, values: Iterable[object]) -> list[object]:
        """Run an iterator to its end, paying for each item."""
        collected: list[object] = []
        for value in values:
            self.items(1)
            if len(collected) >= MAX_ITEMS:
                self.items(MAX_ITEMS + 1)
            collected.append(value)
        return collected


_METER: ContextVar[Meter] = ContextVar("hybrid_template_meter")


def meter() -> Meter:
    """The meter of the rendering that runs. LookupError outside one, which keeps the compiler from computing constants."""
    return _METER.get()


@contextmanager
def metered(limits: RenderLimits) -> Iterator[Meter]:
    current = Meter(limits)
    token = _METER.set(current)
    try:
        yield current
    finally:
        _METER.reset(token)
