"""How long a routing decision takes, over real prompts, and proof that it opens no socket.

    python benchmarks/route_latency.py [--json] [--rounds 9] [--shared ../shared]

Every turn of every prompt of `data/prompts/*.jsonl` there, or else of tests/data/prompts.jsonl, is one conversation of its own; the
default policy; all privacy detectors on.
A decision is one call of `decide` on a request that is already parsed. Rounds run over all prompts in turn; the first is dropped.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from hybrid.router.decide import decide
from hybrid.router.request import RouteContext, RouteRequest
from hybrid.shared_protocol.runtime import LinkState

OURS = Path(__file__).resolve().parents[1] / "tests" / "data" / "prompts.jsonl"


def prompts(shared: Path) -> list[str]:
    """All turns of the prompts below `shared`, or of our own."""
    found: list[str] = []
    for file in sorted((shared / "data" / "prompts").glob("*.jsonl")) or [OURS]:
        for line in file.read_text(encoding="utf-8").splitlines():
            found += json.loads(line)["turns"]
    return found


def percentiles(decide_one: Callable[[RouteRequest], object], requests: list[RouteRequest], rounds: int) -> dict[str, float]:
    """Milliseconds of wall and CPU time."""
    wall: list[float] = []
    cpu: list[float] = []
    gc.collect()
    for number in range(rounds + 1):
        for request in requests:
            started, started_cpu = time.perf_counter(), time.thread_time()
            decide_one(request)
            if number:
                wall.append((time.perf_counter() - started) * 1e3)
                cpu.append((time.thread_time() - started_cpu) * 1e3)
    wall.sort()
    cpu.sort()
    pick = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)]
    results = {f"{name}_ms": wall[min(len(wall) - 1, int(len(wall) * share))] for name, share in pick}
    return results | {f"{name}_cpu_ms": cpu[min(len(cpu) - 1, int(len(cpu) * share))] for name, share in pick}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--shared", type=Path, default=Path(os.environ.get("HYBRID_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    )
    options = parser.parse_args()
    texts = prompts(options.shared)
    requests = [RouteRequest.of(text) for text in texts]
    context = RouteContext(link=LinkState(reachable=True))
    load = os.getloadavg()[0]
    with patch("socket.socket", side_effect=OSError("a routing decision must not open a socket")) as sockets:
        found = percentiles(lambda request: decide(request, context), requests, options.rounds)
    result = {
        "name": "decide, default policy",
        "prompts": len(requests),
        "longest_characters": max(map(len, texts)),
        **{key: round(value, 4) for key, value in found.items()},
        "sockets": sockets.call_count,
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
        "load_before": round(load, 2),
    }
    if options.json:
        print(json.dumps({"results": [result]}))
    else:
        print("\n".join(f"{key:<20}{value}" for key, value in result.items()))


if __name__ == "__main__":
    main()
