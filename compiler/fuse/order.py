"""Which operation must wait for which: for what it reads, and for those that still read the memory that it overwrites."""

from __future__ import annotations

from collections.abc import Sequence

from ...npu_backends.ir.kinds import KINDS
from ...npu_backends.ir.op import Op, flat


def predecessors(ops: Sequence[Op]) -> list[frozenset[int]]:
    """For each operation, the numbers of those that must run before it whatever the order of the rest."""
    maker: dict[str, int] = {}
    memory: dict[str, str] = {}  # of a view or an overwritten value, the value whose memory it stands in
    readers: dict[str, set[int]] = {}  # by memory
    result = []
    for number, op in enumerate(ops):
        needed = {maker[value.name] for value in op.inputs if value.name in maker}
        for inner in flat((op,)):
            kind = KINDS[inner.kind]
            if kind.overwrites is not None:
                needed |= readers.get(memory.get(inner.inputs[kind.overwrites].name, inner.inputs[kind.overwrites].name), set())
            source = 0 if kind.view else kind.overwrites
            if source is not None:
                under = inner.inputs[source].name
                memory[inner.outputs[0].name] = memory.get(under, under)
        for value in op.inputs:
            readers.setdefault(memory.get(value.name, value.name), set()).add(number)
        maker |= {value.name: number for value in op.outputs}
        result.append(frozenset(needed - {number}))
    return result
