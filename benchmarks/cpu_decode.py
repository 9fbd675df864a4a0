"""A decode step of our kernels against llama.cpp's `llama_decode`: same file, same tokens, logits of every row, one thread each.

    python benchmarks/cpu_decode.py --json
    {"results": [{"model", "rows", "cpu_ratio", "wall_ratio", ...}], ...}      ratio = theirs / ours, above 1 we are faster

The two take turns inside every round, in one process. Medians over the rounds; the first step of each is dropped. The clock of
`cpu_ratio` is the whole process's CPU time, so that other load on the machine counts little.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hybrid.npu_backends.cpu.executor import CpuExecutor
from hybrid.npu_backends.step import StepBatch
from hybrid.shared_protocol.errors import ModelNotFound
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.pull import pull
from hybrid.shared_protocol.store import Store
from peer_llama_cpp import LlamaCpp

BLOCK = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--model", default=os.environ.get("HYBRID_TEST_MODEL", "smollm2-135m"), help="a model of the store, or a GGUF file")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 32], help="sequences decoded together")
    parser.add_argument("--context", type=int, default=64, help="tokens before the one that is decoded")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15, help="at least 9")
    options = parser.parse_args()
    if options.rounds < 9:
        parser.error("--rounds must be at least 9")
    load_before = os.getloadavg()[0]
    model = open_model(options.model)
    record: dict[str, object] = {
        "results": [compare(model, rows, options.context, options.threads, options.rounds) for rows in options.rows]
    }
    record |= {
        "machine": cpu_name(),
        "cpus": os.cpu_count(),
        "threads": options.threads,
        "context": options.context,
        "rounds": options.rounds,
        "load_before": load_before,
        "bars_read_on": "wall_ratio" if load_before < 0.3 else "cpu_ratio",
    }
    print(json.dumps(record) if options.json else table(record))


def open_model(name: str) -> Model:
    """Load `name`; a model of the catalogue that is not in the store yet is pulled."""
    try:
        return load_model(name)
    except ModelNotFound:
        pull(name, Store())
        return load_model(name)


def compare(model: Model, rows: int, context: int, threads: int, rounds: int) -> dict[str, object]:
    """Time one decode step of `rows` sequences after `context` tokens."""
    prompt = [(i * 7919 + 11) % model.architecture.vocab_size for i in range(context)]
    nexts = [(i * 104729 + 5) % model.architecture.vocab_size for i in range(rows)]

    peer = LlamaCpp(model.path, rows=rows, context=context + 1, threads=threads)
    peer.fill([prompt], 0)
    peer.decode()
    peer.share(rows)
    peer.fill([[token] for token in nexts], context)

    blocks = (context + BLOCK) // BLOCK
    ours = CpuExecutor(model, num_blocks=1 + rows * blocks, block_size=BLOCK, threads=threads)
    tables = np.arange(1, 1 + rows * blocks, dtype=np.int32).reshape(rows, blocks)
    for line in tables:
        ours.step(step_batch([prompt], 0, line[None], logits=False))
    batch = step_batch([[token] for token in nexts], context, tables)

    times: dict[str, list[tuple[float, float]]] = {"peer": [], "ours": []}
    for _ in range(rounds + 1):
        times["peer"].append(clocked(peer.decode))
        theirs = peer.logits()
        peer.truncate(rows, context)
        times["ours"].append(clocked(lambda: ours.step(batch)))
    mine = ours.step(batch)
    cpu, wall = ({who: statistics.median(pair[clock] for pair in pairs[1:]) for who, pairs in times.items()} for clock in (0, 1))
    result = {
        "model": model.path.name,
        "rows": rows,
        "cpu_ratio": round(cpu["peer"] / cpu["ours"], 3),
        "wall_ratio": round(wall["peer"] / wall["ours"], 3),
        "ours_cpu_ms": round(cpu["ours"] * 1e3, 3),
        "peer_cpu_ms": round(cpu["peer"] * 1e3, 3),
        "kernel_id": ours.kernel_id,
        "peer": f"xllamacpp {peer.version}",
        "peer_features": peer.features,
        "argmax_equal": f"{int((mine.argmax(1) == theirs.argmax(1)).sum())}/{rows}",  # both did the same work
    }
    ours.close()
    peer.close()
    return result


def step_batch(tokens: list[list[int]], first: int, tables: np.ndarray, logits: bool = True) -> StepBatch:
    """Sequences of equal length, each from position `first` on."""
    length = len(tokens[0])
    return StepBatch(
        np.array([token for ids in tokens for token in ids], np.int32),
        np.tile(np.arange(first, first + length, dtype=np.int32), len(tokens)),
        np.arange(0, len(tokens) * length + 1, length, dtype=np.int32),
        np.ascontiguousarray(tables),
        np.arange(len(tokens) * length if logits else 0, dtype=np.int32),
    )


def clocked(call: Callable[[], object]) -> tuple[float, float]:
    """(CPU seconds of the process, wall seconds) of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.process_time() - cpu, time.perf_counter() - wall


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return f"{facts.get('model name', platform.machine())} (family {facts.get('cpu family', '?')}, model {facts.get('model', '?')})"


def table(record: dict[str, object]) -> str:
    lines = [f"{'rows':>4}  {'llama.cpp':>12}  {'ours':>10}  {'cpu ratio':>9}  {'wall ratio':>10}"]
    lines += [
        f"{result['rows']:>4}  {result['peer_cpu_ms']:>9.2f} ms  {result['ours_cpu_ms']:>7.2f} ms"
        f"  {result['cpu_ratio']:>9.2f}  {result['wall_ratio']:>10.2f}"
        for result in record["results"]  # type: ignore[attr-defined]
    ]
    lines.append(f"{record['machine']}, {record['threads']} thread(s), load before {record['load_before']}; read {record['bars_read_on']}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
