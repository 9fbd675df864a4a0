"""A property that is worked out when it is first asked for, and then kept in its object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class once(Generic[S, T]):
    """functools.cached_property as of Python 3.12, also before it: without the lock, which takes longer than most of what it guards.

    Two threads that ask at once may both work it out; the value of either is kept.
    """

    def __init__(self, work: Callable[[S], T]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    def __get__(self, owner: S, kind: type[S]) -> T:
        value = owner.__dict__[self._name] = self._work(owner)
        return value
