"""What it costs to verify k drafted tokens: one sequence, k + 1 positions in one step, logits for all, beside llama.cpp's in the same run.

    python benchmarks/verify_cost.py --json [--model NAME ...] [--threads 2]
    {"results": [{"model", "rows", "ours_ms", "peer_ms", "own_curve", "cpu_ratio", "wall_ratio"}], ...}

`own_curve` is our time over our time of one row, `peer_curve` llama.cpp's over its own; ratio = ours / theirs, below 1 we are faster.
"""

from __future__ import annotations

import argparse

from beside_peer import arguments, compared
from hybrid.shared_protocol.model import Model
from sequences import Ours, Theirs, Work
from timing import Spent, open_model, taking_turns

COLUMNS = {
    "model": "{model:<40}",
    "rows": "{rows}",
    "llama.cpp": "{peer_ms:.2f} ms",
    "ours": "{ours_ms:.2f} ms",
    "own curve": "{own_curve:.2f}",
    "cpu ratio": "{cpu_ratio:.2f}",
    "wall ratio": "{wall_ratio:.2f}",
}


def main() -> None:
    parser = arguments(__doc__, context=128, threads=2, rounds=9)
    parser.add_argument("--drafted", type=int, nargs="+", default=list(range(17)), help="k; default 0 to 16")
    compared(parser, lambda options: [row for name in options.model for row in curve(open_model(name), options)], COLUMNS)


def curve(model: Model, options: argparse.Namespace) -> list[dict[str, object]]:
    """A row per k. A row is relative to k = 0, which is measured first whatever was asked for."""
    results: list[dict[str, object]] = []
    one: dict[str, Spent] = {}
    for drafted in sorted({0, *options.drafted}):
        work = Work(1, options.context, drafted + 1)
        engines = {"ours": Ours(model, work, options.threads), "peer": Theirs(model, model.path, work, options.threads)}
        spent = taking_turns(engines, options.rounds)
        for engine in engines.values():
            engine.close()
        one = one or spent
        ours, peer = spent["ours"], spent["peer"]
        results.append(
            {
                "model": model.path.name,
                "rows": drafted + 1,
                "ours_ms": round(ours.wall * 1e3, 3),
                "peer_ms": round(peer.wall * 1e3, 3),
                "own_curve": round(ours.wall / one["ours"].wall, 3),
                "own_curve_cpu": round(ours.cpu / one["ours"].cpu, 3),
                "peer_curve": round(peer.wall / one["peer"].wall, 3),
                "cpu_ratio": round(ours.cpu / peer.cpu, 3),
                "wall_ratio": round(ours.wall / peer.wall, 3),
                "kernel_id": engines["ours"].kernel_id,
            }
        )
    return results


if __name__ == "__main__":
    main()
