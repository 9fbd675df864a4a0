"""How much of this CPU a decode step uses: of its memory bandwidth at one row, of its dot products at 32.

    python benchmarks/roofline.py --json [--model NAME] [--rounds 9]
    {"results": [{"rows", "step_ms", "share", "of", "ceiling_g_per_s", "reached_g_per_s", ...}], ...}

One thread, CPU time, x86 only. Own steps run back to back; the ceilings are read before and after them and the mean counts. One row: bytes
of weights, KV and logits per second over the rate of reading memory. 32 rows: multiply-adds of the matrices per second over the rate at
which 4-bit weights in the first-level cache meet 8-bit activations, unpacking included, scales left out, same instruction set.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hybrid.npu_backends.cpu.library import load
from hybrid.quant.repack import packed_bytes
from hybrid.shared_protocol.model import Model
from sequences import Ours, Work
from timing import clocked, machine, open_model

GROUPS = 64  # 16 KiB of codes, with their activations inside the first-level cache
TIMES = 2000
ROWS = {"avx2": 4, "avx512": 8}  # of a tile in roofline.cpp
BIG = 512 << 20  # bytes, past every cache


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--model", default=os.environ.get("HYBRID_TEST_MODEL", "smollm2-135m"), help="a model of the store, or a GGUF file")
    parser.add_argument("--context", type=int, default=64, help="tokens before the one that is decoded")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    model, isa = open_model(options.model), load().isa
    if isa not in ROWS:
        raise SystemExit(f"no ceiling is known for the instruction set {isa}")
    with tempfile.TemporaryDirectory() as scratch:
        probe = build(Path(scratch))
        results = [
            measure(model, Work(1, options.context), options.rounds, lambda: bandwidth(probe), moved_bytes(model, options.context)),
            measure(model, Work(32, options.context), options.rounds, lambda: dot_rate(probe, isa), 32 * multiply_adds(model)),
        ]
    record = {"results": results, **machine(1, load_before), "isa": isa, "context": options.context, "rounds": options.rounds}
    print(json.dumps(record) if options.json else "\n".join(" ".join(f"{key}={value}" for key, value in row.items()) for row in results))


def measure(model: Model, work: Work, rounds: int, ceiling: Callable[[], float], amount: int) -> dict[str, object]:
    """Share of the ceiling (units per second) at which a step moves `amount` units."""
    engine = Ours(model, work, threads=1)
    engine.decode()
    shares, steps, ceilings = [], [], []
    for _ in range(rounds):
        before = ceiling()
        times = [clocked(engine.decode)[0] for _ in range(20 // work.rows + 3)]
        limit = (before + ceiling()) / 2
        step = statistics.median(times)
        shares.append(amount / step / limit)
        steps.append(step)
        ceilings.append(limit)
    engine.close()
    step = statistics.median(steps)
    return {
        "model": model.path.name,
        "rows": work.rows,
        "step_ms": round(step * 1e3, 3),
        "of": "bytes read" if work.rows == 1 else "u4 x s8",
        "share": round(statistics.median(shares), 3),
        "ceiling_g_per_s": round(statistics.median(ceilings) / 1e9, 2),
        "reached_g_per_s": round(amount / step / 1e9, 2),
        "kernel_id": engine.kernel_id,
    }


def moved_bytes(model: Model, context: int) -> int:
    """Bytes that a step of one row must move: each matrix once, K and V of the context, the logits."""
    arch = model.architecture
    weights = sum(packed_bytes(tensor) for name, tensor in model.tensors.items() if len(tensor.shape) == 2 and _multiplied(model, name))
    cache = context * arch.num_layers * arch.num_kv_heads * arch.head_dim * 2 * 2
    return weights + cache + 4 * arch.vocab_size


def multiply_adds(model: Model) -> int:
    """Multiply-adds of the matrices, per row."""
    return sum(math.prod(tensor.shape) for name, tensor in model.tensors.items() if len(tensor.shape) == 2 and _multiplied(model, name))


def _multiplied(model: Model, name: str) -> bool:
    return name != "token_embd.weight" or model.architecture.tied_embeddings


def build(folder: Path) -> ctypes.CDLL:
    library = folder / "roofline.so"
    source = Path(__file__).with_name("roofline.cpp")
    subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-O3", "-fPIC", "-shared", str(source), "-o", str(library)], check=True)
    probe = ctypes.CDLL(str(library))
    probe.read_all.restype, probe.read_all.argtypes = ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_int64]
    for isa in ROWS:
        function = getattr(probe, f"dots_{isa}")
        function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
    return probe


_big = np.ones(BIG, np.uint8)


def bandwidth(probe: ctypes.CDLL) -> float:
    """Bytes per second."""
    return BIG / statistics.median(clocked(lambda: probe.read_all(_big.ctypes.data, BIG))[0] for _ in range(3))


def dot_rate(probe: ctypes.CDLL, isa: str) -> float:
    """Multiply-adds per second."""
    codes = np.random.default_rng(0).integers(0, 256, GROUPS * 256, np.uint8)
    rows = np.random.default_rng(1).integers(-127, 128, ROWS[isa] * GROUPS * 32).astype(np.int8)
    seconds, _ = clocked(lambda: getattr(probe, f"dots_{isa}")(codes.ctypes.data, rows.ctypes.data, GROUPS, TIMES))
    return ROWS[isa] * GROUPS * 512 * TIMES / seconds


if __name__ == "__main__":
    main()
