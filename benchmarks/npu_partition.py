"""Whether a graph is cut between chips at the least cost, and what fusing and cutting do to a model.

    python benchmarks/npu_partition.py [--json] [--graphs 200] [--model FILE] [--preset hexagon-v79] ...

Random graphs of up to 12 operations of every kind, for two chips or three, with random prices, refusals and a host or none: the cost of
the cut beside the cheapest of all assignments, each of which is counted. Prices are whole numbers, so equal means equal. Then, of a
model, a step of decoding and a chunk of a prompt in 8-bit weights and rows: operations and bytes before and after fusion, seconds by the
cost models of the chip and of the processor beside it, and how long the search took.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid.compiler.capture.capture import capture
from hybrid.compiler.chips import chips_of, host_beside, tiling_on
from hybrid.compiler.cut import fuse_and_cut
from hybrid.compiler.fuse.traffic import traffic
from hybrid.compiler.partition.exhaustive import cheapest
from hybrid.compiler.partition.partition import Partition, partition
from hybrid.compiler.partition.pipeline import pipelined_seconds
from hybrid.compiler.partition.prices import computing, launching, moving
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.npu_backends.base import Adapter
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.preset import load_preset
from hybrid.shared_protocol.model import load_model
from hybrid.tests.support.chips import random_chips
from hybrid.tests.support.graphs import random_graph

LARGEST = {2: 12, 3: 8}  # chips -> operations: some thousand assignments
PRESETS = ("ethos-u85-2048", "hexagon-v79", "intel-npu4")
SHAPES = (("decode", 1), ("prefill", 32))
CONTEXT = 512


def random_cuts(count: int) -> Iterator[dict[str, Any]]:
    for seed in range(count):
        source = random.Random(seed)
        chips = source.choice((2, 2, 3))
        graph = random_graph(source, source.randint(1, LARGEST[chips]))
        while len(graph.ops) > LARGEST[chips]:
            graph = random_graph(source, source.randint(1, LARGEST[chips]))
        priced = random_chips(source, graph, ("npu", "dsp", "cpu") if chips == 3 else ("npu", "cpu"))
        host = source.choice((None, "cpu", "npu"))
        found = partition(graph, priced.chips, **priced.how, host=host)
        optimum = cheapest(graph, priced.chips, **priced.how, host=host)
        yield {
            "graph": seed,
            "ops": len(graph.ops),
            "chips": chips,
            "host": host,
            "refused": len(found.refused),
            "segments": len(found.segments),
            "states": found.widest,
            "cost": found.seconds,
            "optimum": optimum,
            "equal": found.seconds == optimum,
            "exact": found.exact,
        }


def model_cuts(path: Path, presets: list[str]) -> Iterator[dict[str, Any]]:
    architecture = load_model(path).architecture
    for preset in presets:
        target = load_preset(preset)
        chips = tuple(chips_of(target, host_beside(target)).values())
        for name, rows in SHAPES:
            captured = capture(architecture, rows=rows, logit_rows=1, context=min(CONTEXT, architecture.context_length), name=name)
            plain = quantise_graph(captured, "w8a8")
            spent = [time.perf_counter()]
            before = _cut(plain, chips)
            spent.append(time.perf_counter())
            joined, after = fuse_and_cut(plain, chips, lambda graph, chips=chips: _cut(graph, chips))
            spent.append(time.perf_counter())
            yield {
                "graph": f"{name} of {rows}, {preset}",
                "ops": len(plain.ops),
                "ops_fused": len(joined.ops),
                "bytes": sum(map(traffic, plain.ops)),
                "bytes_fused": sum(map(traffic, joined.ops)),
                "milliseconds_unfused": 1e3 * before.seconds,
                "milliseconds": 1e3 * after.seconds,
                "milliseconds_pipelined": 1e3 * pipelined_seconds(after, feedback=rows == 1),
                "segments": len(after.segments),
                "on_npu": sum(len(segment.graph.ops) for segment in after.segments if segment.chip == chips[0].name),
                "refused": len(after.refused),
                "states": max(before.widest, after.widest),
                "exact": before.exact and after.exact,
                "cut_seconds": spent[1] - spent[0],
                "fuse_and_cut_seconds": spent[2] - spent[1],
            }


def _cut(graph: Graph, chips: tuple[Adapter, ...]) -> Partition:
    return partition(graph, chips, cost=computing(tiling_on), transfer=moving(graph), launch=launching, host="cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--model", type=Path, help="a GGUF file")
    parser.add_argument("--preset", action="append", help=f"a chip; without it {', '.join(PRESETS)}")
    args = parser.parse_args()
    results = list(random_cuts(args.graphs))
    models = list(model_cuts(args.model, args.preset or list(PRESETS))) if args.model else []
    equal = sum(result["equal"] for result in results)
    if args.json:
        print(json.dumps({"equal": equal, "results": results + models}, indent=2))
        return
    most = max((result["states"] for result in results), default=0)
    print(f"{equal} of {len(results)} random graphs are cut at the least cost of all assignments; {most} states at once at most")
    for result in models:
        print(
            f"{result['graph']}: {result['ops']} operations, {result['ops_fused']} fused, {result['bytes'] / 1e6:.0f} MB moved, "
            f"{result['bytes_fused'] / 1e6:.0f} fused; {result['milliseconds_unfused']:.2f} ms, {result['milliseconds']:.2f} fused, "
            f"{result['milliseconds_pipelined']:.2f} pipelined; {result['segments']} segments, {result['states']} states, "
            f"cut in {result['cut_seconds']:.1f} s, fused and cut in {result['fuse_and_cut_seconds']:.1f} s"
        )


if __name__ == "__main__":
    main()
