"""Fuse and cut together: what pays to fuse depends on the chip it will run on, which is chosen by what it costs once fused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..npu_backends.base import Adapter
from ..npu_backends.ir.graph import Graph
from .fuse.fuse import fuse
from .fuse.on_chip import fits_on, seconds_on
from .partition.partition import Partition


def fuse_and_cut(graph: Graph, chips: Sequence[Adapter], cut: Callable[[Graph], Partition]) -> tuple[Graph, Partition]:
    """Of the ways to fuse a graph the one whose cut takes least, of equals the one with fewest operations.

    `chips`: the preferred one first. `cut` is partition() with its prices. Raises what it raises when no way can be cut.
    """
    cuts = [(joined, cut(joined)) for joined in ways(graph, chips).values()]
    return min(cuts, key=lambda way: (way[1].seconds, len(way[0].ops)))


def ways(graph: Graph, chips: Sequence[Adapter]) -> Mapping[str, Graph]:
    """The graph as it is; with the fewest bytes moved that the first chip allows; fastest on the first chip; fastest on any."""
    first = chips[0]
    return {
        "apart": graph,
        "bytes": fuse(graph, fits_on(first)),
        "first": fuse(graph, fits_on(first), seconds_on(first)),
        "any": fuse(graph, fits_on(*chips), seconds_on(*chips)),
    }
