"""What it costs to verify k drafted tokens: one sequence, k + 1 positions in one step, logits for all, beside llama.cpp's in the same run.

    python benchmarks/verify_cost.py --json [--model NAME ...] [--threads 2]
    {"results": [{"model", "rows", "ours_ms", "peer_ms", "own_curve", "cpu_ratio", "wall_ratio"}], ...}

`own_curve` is our time over our time of one row, `peer_curve` llama.cpp's over its own; ratio = ours / theirs, below 1 we are faster.
"""

from __future__ import annotations

import argparse
import json
import os

from hybrid.shared_protocol.model import Model
from sequences import Ours, Theirs, Work
from timing import Spent, machine, open_model, taking_turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    default = os.environ.get("HYBRID_TEST_MODEL", "smollm2-135m")
    parser.add_argument("--model", nargs="+", default=[default], help="models of the store, or GGUF files")
    parser.add_argument("--drafted", type=int, nargs="+", default=list(range(17)), help="k; default 0 to 16")
    parser.add_argument("--context", type=int, default=128, help="tokens before")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9, help="at least 9")
    options = parser.parse_args()
    if options.rounds < 9:
        parser.error("--rounds must be at least 9")
    load_before = os.getloadavg()[0]
    results = [row for name in options.model for row in curve(open_model(name), options)]
    record = {"results": results, **machine(options.threads, load_before), "context": options.context, "rounds": options.rounds}
    print(json.dumps(record) if options.json else table(record))


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


def table(record: dict[str, object]) -> str:
    lines = [f"{'model':<40}  {'rows':>4}  {'llama.cpp':>13}  {'ours':>11}  {'own curve':>9}  {'cpu ratio':>9}  {'wall ratio':>10}"]
    lines += [
        f"{result['model']:<40}  {result['rows']:>4}  {result['peer_ms']:>10.2f} ms  {result['ours_ms']:>8.2f} ms"
        f"  {result['own_curve']:>9.2f}  {result['cpu_ratio']:>9.2f}  {result['wall_ratio']:>10.2f}"
        for result in record["results"]  # type: ignore[attr-defined]
    ]
    lines.append(f"{record['machine']}, {record['threads']} threads, load before {record['load_before']}; read {record['bars_read_on']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
