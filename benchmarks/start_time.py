"""How long `LLM(...)` takes in an interpreter that runs already, and how much memory it takes while it loads.

    python benchmarks/start_time.py --json [--model NAME ...] [--rounds 5]
    {"results": [{"model", "start": "cold" | "warm", "seconds", "memory_over_file", "hashed"}], ...}

Cold: the panels are not on disk yet, the model's file is in the page cache. Warm: a start before has made them. Every start is a process
of its own; medians. `memory_over_file` is the growth of resident memory to its peak, over the size of the model's file. Linux only.
`hashed` says whether the start read the whole file to hash it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from timing import machine, open_model

START = """
import json, sys, time
from pathlib import Path
import hybrid.cloud.engine.llm as llm
import hybrid.shared_protocol.store as store

hashed = []
once = store.sha256_of
store.sha256_of = lambda path: hashed.append(path) or once(path)
memory = lambda: dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew: a process inherits that of the one that started it
before, began = int(memory()["VmRSS"].split()[0]), time.perf_counter()
model = llm.LLM(sys.argv[1], max_model_len=2048)
seconds = time.perf_counter() - began
print(json.dumps([seconds, (int(memory()["VmHWM"].split()[0]) - before) * 1024, bool(hashed)]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    default = os.environ.get("HYBRID_TEST_MODEL", "smollm2-135m")
    parser.add_argument("--model", nargs="+", default=[default], help="models of the store, or GGUF files")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    results = [result for name in options.model for result in starts(open_model(name).path, options.rounds)]
    record = {"results": results, **machine(os.cpu_count() or 1, load_before), "rounds": options.rounds}
    print(json.dumps(record) if options.json else "\n".join(" ".join(f"{key}={value}" for key, value in row.items()) for row in results))


def starts(path: Path, rounds: int) -> list[dict[str, object]]:
    """In a store of their own, so that nothing of the user's is touched; the first start, which hashes the file, is not counted."""
    with tempfile.TemporaryDirectory() as home:
        start(path, home)
        found: dict[str, list[tuple[float, int, bool]]] = {"cold": [], "warm": []}
        for kind, times in found.items():
            for _ in range(rounds):
                if kind == "cold":
                    for kept in (Path(home) / "panels").glob("*"):
                        kept.unlink()
                times.append(start(path, home))
    size = path.stat().st_size
    return [
        {
            "model": path.name,
            "start": kind,
            "seconds": round(statistics.median(seconds for seconds, _, _ in times), 3),
            "memory_over_file": round(statistics.median(grown for _, grown, _ in times) / size, 3),
            "hashed": any(hashed for _, _, hashed in times),
        }
        for kind, times in found.items()
    ]


def start(path: Path, home: str) -> tuple[float, int, bool]:
    done = subprocess.run(
        [sys.executable, "-c", START, str(path)], env={**os.environ, "HYBRID_HOME": home}, capture_output=True, text=True, check=True
    )
    seconds, grown, hashed = json.loads(done.stdout)
    return seconds, grown, hashed


if __name__ == "__main__":
    main()
