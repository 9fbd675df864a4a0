"""A graph and its chips as numbers: what every operation costs on every chip, and every value on its way between two.

An assignment (a chip for each operation, in the graph's order) costs
    the price of each operation on its chip,
  + the launch of each segment, a run of operations on one chip,
  + the price of each value's way from the chip it is on to every other chip that reads it, once for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...npu_backends.base import Adapter
from ...npu_backends.ir.graph import Graph
from ...npu_backends.ir.op import Op
from ...npu_backends.ir.value import Value
from ...shared_protocol.compile_errors import CompileError, DoesNotFit, OperationRefused

OpCost = Callable[[Adapter, Op], float]  # seconds; raises DoesNotFit where the chip has no room
TransferCost = Callable[[Value, Adapter, Adapter], float]  # seconds from the one to the other
LaunchCost = Callable[[Adapter], float]  # seconds to start a segment and hear that it has ended


@dataclass(frozen=True, slots=True)
class Refusal:
    """An operation that a chip does not take, and why not."""

    op: str
    kind: str
    chip: str
    reason: str


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value that may be read on another chip than it is on. Chips and operations are numbers.

    It is on the chip of operation `maker`, or on chip `host` where no operation makes it. What a run overwrites, a state, is all the
    time on the chip that overwrites it: its maker comes after readers.
    """

    value: Value
    maker: int | None
    host: int
    readers: tuple[int, ...]
    wanted: bool  # on the host, in the end
    prices: tuple[tuple[float, ...], ...]  # seconds, [from][to]; 0 to itself


@dataclass(frozen=True, slots=True)
class Problem:
    prices: tuple[tuple[float | None, ...], ...]  # seconds, [operation][chip]; None: refused
    launches: tuple[float, ...]  # seconds, [chip]
    crossings: tuple[Crossing, ...]


def state_problem(
    graph: Graph, chips: Sequence[Adapter], *, cost: OpCost, transfer: TransferCost, launch: LaunchCost, host: str | None
) -> tuple[Problem, tuple[Refusal, ...]]:
    """Ask the chips. `host` has the inputs and wants the outputs; without one they are everywhere, at no price.

    Raises OperationRefused for an operation that no chip takes, and CompileError for a price that is none.
    """
    names = [chip.name for chip in chips]
    if not names or len(set(names)) < len(names) or (host is not None and host not in names):
        raise CompileError(f"there are chips named {', '.join(names) or 'nothing'} and the host is {host}", hint="name each chip once")
    prices, refusals = [], []
    for op in graph.ops:
        asked = [_ask(chip, op, cost) for chip in chips]
        refused = [Refusal(op.name, op.kind, name, price) for name, price in zip(names, asked, strict=True) if isinstance(price, str)]
        if len(refused) == len(chips):
            raise OperationRefused(op.kind, op.name, {refusal.chip: refusal.reason for refusal in refused})
        prices.append(tuple(None if isinstance(price, str) else price for price in asked))
        refusals += refused
    launches = tuple(_checked(launch(chip), f"launching a segment on {chip.name}") for chip in chips)
    crossings = tuple(_crossings(graph, chips, transfer, None if host is None else names.index(host)))
    return Problem(tuple(prices), launches, crossings), tuple(refusals)


def _ask(chip: Adapter, op: Op, cost: OpCost) -> float | str:
    """Seconds, or why not."""
    reason = chip.supports(op)
    if reason is not None:
        return reason
    try:
        return _checked(cost(chip, op), f"{op.kind} {op.name} on {chip.name}")
    except DoesNotFit as error:
        return error.message


def _checked(seconds: float, what: str) -> float:
    if not (math.isfinite(seconds) and seconds >= 0):
        raise CompileError(f"{what} is said to take {seconds} seconds", hint="a price is finite and not negative")
    return seconds


def _crossings(graph: Graph, chips: Sequence[Adapter], transfer: TransferCost, host: int | None) -> list[Crossing]:
    makers = {value.name: number for number, op in enumerate(graph.ops) for value in op.outputs}
    readers: dict[str, list[int]] = {}
    for number, op in enumerate(graph.ops):
        for name in {value.name for value in op.inputs}:
            readers.setdefault(name, []).append(number)
    kept = {before: makers[after] for before, after in graph.states if after in makers}
    wanted = {value.name for value in graph.outputs} - {name for pair in graph.states for name in pair} if host is not None else set()
    found = []
    for value in (*graph.inputs, *(value for op in graph.ops for value in op.outputs)):
        maker = makers.get(value.name, kept.get(value.name))
        if maker is None and host is None:
            continue
        elsewhere = tuple(number for number in readers.get(value.name, ()) if number != maker)
        if elsewhere or (value.name in wanted and maker is not None):
            prices = tuple(
                tuple(0.0 if one is other else _checked(transfer(value, one, other), f"moving {value.name}") for other in chips)
                for one in chips
            )
            found.append(Crossing(value, maker, host or 0, elsewhere, value.name in wanted and maker is not None, prices))
    return found
