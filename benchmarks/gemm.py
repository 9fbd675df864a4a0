"""One weight matrix of every format times some rows: how fast an instruction set multiplies, on one thread.

    python benchmarks/gemm.py --json [--isa avx2] [--kinds Q4_1 Q6_K] [--rows 1 8 32] [--shape 32768 1024]
    {"results": [{"kind", "bits", "rows", "gmac_s", "gb_s"}, ...], ...}      gb_s: bytes of panels read a second

CPU time, best of the rounds: what the kernel can do, not what a busy machine leaves of it.
"""

from __future__ import annotations

import argparse
import json
import os

import numpy as np
from hybrid.npu_backends.cpu.library import Native, load
from hybrid.npu_backends.cpu.matrix import multiply, pack
from hybrid.quant.formats import quantize
from hybrid.quant.repack import PANEL_FORMATS
from hybrid.shared_protocol.gguf import Tensor
from timing import clocked, machine

WORK = 3e8  # multiply-adds at least between two looks at the clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--isa", default="", help="scalar, avx2, avx512; the best when left out")
    parser.add_argument("--kinds", nargs="+", default=list(PANEL_FORMATS), choices=list(PANEL_FORMATS), metavar="KIND")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument(
        "--shape", type=int, nargs=2, default=[32768, 1024], metavar=("OUTPUTS", "INPUTS"), help="more than 4096 outputs repeat"
    )
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    native = load()
    results = [
        result
        for kind in options.kinds
        for result in measure(native, kind, options.rows, *options.shape, isa=options.isa, rounds=options.rounds)
    ]
    record = {"results": results, "isa": options.isa or native.isa, "shape": options.shape, **machine(1, load_before)}
    print(json.dumps(record) if options.json else table(results))


def measure(native: Native, kind: str, rows: list[int], outputs: int, inputs: int, isa: str, rounds: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(0)
    part = quantize(rng.standard_normal((min(outputs, 4096), inputs)).astype(np.float32) * np.float32(0.05), kind)
    bytes_of_row = len(part) // min(outputs, 4096)
    tensor = Tensor("w", kind, (outputs, inputs), np.resize(part, outputs * bytes_of_row))
    panels = pack(native, tensor)
    results: list[dict[str, object]] = []
    for count in rows:
        x = rng.standard_normal((count, inputs)).astype(np.float32)
        repeats = max(1, int(WORK / (count * outputs * inputs)))

        def work(x: np.ndarray = x, repeats: int = repeats) -> None:
            for _ in range(repeats):
                multiply(native, tensor, panels, x, isa)

        work()
        seconds = min(clocked(work)[0] for _ in range(rounds)) / repeats
        results.append(
            {
                "kind": kind,
                "bits": PANEL_FORMATS[kind].bits,
                "rows": count,
                "gmac_s": round(count * outputs * inputs / seconds / 1e9, 1),
                "gb_s": round(panels.nbytes / seconds / 1e9, 1),
            }
        )
    return results


def table(results: list[dict[str, object]]) -> str:
    lines = [f"{'kind':7} {'rows':>4} {'GMAC/s':>8} {'GB/s':>6}"]
    return "\n".join(lines + [f"{r['kind']:7} {r['rows']:>4} {r['gmac_s']:>8} {r['gb_s']:>6}" for r in results])


if __name__ == "__main__":
    main()
