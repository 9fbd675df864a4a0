"""How long a routing decision takes, over real prompts, and proof that it opens no socket.

    python benchmarks/route_latency.py [--json] [--rounds 9] [--shared ../shared]

Every turn of every prompt of `data/prompts/*.jsonl` there, or else of tests/data/prompts.jsonl, is one conversation of its own; all
privacy detectors on. Three policies: the default one; one of twenty rules, of which the last decides, over every variable there is;
and, where there are outcomes in `data/routing`, one with a router that was trained on them.
Then all detectors of privacy alone, those of public kinds too, on texts of 2,000 characters: of prompts, and full of private values.
A decision is one call of `decide` on a request that is already parsed. Rounds run over all prompts in turn; the first is dropped.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hybrid.router.costs import CostModel
from hybrid.router.decide import decide
from hybrid.router.detect.search import search
from hybrid.router.evaluate.outcomes import read_outcomes
from hybrid.router.learned.store import save
from hybrid.router.learned.train import train
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import PERSONAL
from hybrid.router.quota import QuotaView
from hybrid.router.request import Moment, RouteContext, RouteRequest
from hybrid.shared_protocol.runtime import DeviceState, LinkState
from privacy_made import SENTENCES, VALUES

# Twenty rules that no prompt meets, so that all are asked: what needs the text (task, language, code) as well as what is at hand.
CONDITIONS = (
    "tokens > 100000 && !code",
    "task == 'translate' && language == 'xx'",
    "language == 'zz' || turns > 500",
    "code && tokens > 50000",
    "tools > 20 || images > 20",
    "max_tokens > 9000 && complexity < 0.1",
    "context_left < 0 && edge_available",
    "user == 'nobody' && tenant == 'acme'",
    "user.endsWith('@nowhere.example')",
    "user.matches('^bot-[0-9]+$')",
    "hour >= 22 && weekday == 8",
    "battery < 0.01 || thermal_headroom < 0.01",
    "memory_mb < 1.0 && load > 64.0",
    "rtt_ms > 9000.0",
    "!reachable",
    "price_in > 500.0 || price_out > 500.0",
    "cost > 1000.0",
    "quota_left < -1000.0",
    "complexity > 0.999 && task in ['write', 'summarise']",
    "tenant.startsWith('t') && hour < 3 && user.contains('zz')",
)
OURS = Path(__file__).resolve().parents[1] / "tests" / "data" / "prompts.jsonl"


def prompts(shared: Path) -> list[str]:
    """All turns of the prompts below `shared`, or of our own."""
    found: list[str] = []
    for file in sorted((shared / "data" / "prompts").glob("*.jsonl")) or [OURS]:
        for line in file.read_text(encoding="utf-8").splitlines():
            found += json.loads(line)["turns"]
    return found


def rules_policy() -> Policy:
    return Policy.parse("".join(f'[[rule]]\nname = "r{n}"\nwhen = "{when}"\nroute = "edge"\n' for n, when in enumerate(CONDITIONS)))


def learned_policy(outcomes: Path) -> Policy:
    """With a router trained on these outcomes, as `hybrid route train` does."""
    with tempfile.TemporaryDirectory() as folder:
        save(train(read_outcomes(outcomes)), Path(folder) / "ours.hybrid")
        return Policy.parse('[learned]\nmodel = "ours.hybrid"', folder=Path(folder))


def of_2000_characters(texts: list[str]) -> list[str]:
    """The texts one after the other, cut into pieces of 2,000 characters."""
    joined = "\n".join(texts)
    return [joined[at : at + 2000] for at in range(0, len(joined) - 2000, 2000)]


def private_texts(count: int) -> list[str]:
    """Sentences with a value each, twenty to fifty in 2,000 characters."""
    source = random.Random(15)
    kinds = list(VALUES.values())
    said = [source.choice(SENTENCES).format(source.choice(kinds)(source)) for _ in range(60 * count)]
    return of_2000_characters(said)[:count]


def percentiles(decide_one: Callable[[Any], object], requests: Sequence[object], rounds: int) -> dict[str, float]:
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
    requests = [RouteRequest.of(text, tenant="acme") for text in texts]
    facts = {
        "device": DeviceState(8_000_000_000, 0.8, 0.7, load=0.4),
        "link": LinkState(reachable=True, rtt_s=0.04),
        "quota": QuotaView(90_000, 100_000),
        "costs": CostModel(0.001, 0.02, 0.0001, 0.01, 1e-6, 3e-6),
        "moment": Moment(12, 3),
    }
    results = []
    policies = [("decide, default policy", Policy.default()), ("decide, 20 rules", rules_policy())]
    if (outcomes := options.shared / "data" / "routing" / "mixed_8b_51b.jsonl").exists():
        policies.append(("decide, learned router", learned_policy(outcomes)))
    for name, policy in policies:
        context = RouteContext(policy=policy, **facts)
        load = os.getloadavg()[0]
        with patch("socket.socket", side_effect=OSError("a routing decision must not open a socket")) as sockets:
            found = percentiles(lambda request, context=context: decide(request, context), requests, options.rounds)
        results.append(
            {
                "name": name,
                "prompts": len(requests),
                "rules_asked": len(decide(requests[0], context).rules),
                "longest_characters": max(map(len, texts)),
                **{key: round(value, 4) for key, value in found.items()},
                "sockets": sockets.call_count,
                "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}",
                "load_before": round(load, 2),
            }
        )
    everything = Policy.parse("[privacy]\n" + "\n".join(f'{kind} = "local_only"' for kind in PERSONAL)).privacy
    for name, pieces in (("of prompts", of_2000_characters(texts)), ("full of private values", private_texts(200))):
        load = os.getloadavg()[0]
        found = percentiles(lambda text: search([text], everything), pieces, options.rounds)
        results.append(
            {
                "name": f"all detectors, 2,000 characters {name}",
                "texts": len(pieces),
                **{key: round(value, 4) for key, value in found.items()},
                "load_before": round(load, 2),
            }
        )
    if options.json:
        print(json.dumps({"results": results}))
    else:
        print("\n\n".join("\n".join(f"{key:<20}{value}" for key, value in result.items()) for result in results))


if __name__ == "__main__":
    main()
