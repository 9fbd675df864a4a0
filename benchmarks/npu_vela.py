"""The cost model's cycles for Ethos-U85 beside what Arm's own compiler estimates.

    python benchmarks/npu_vela.py --vela PYTHON [--json] [--rows 1 16 32 64 128] [--shapes 576x1536 1536x576]
    {"results": [{"preset", "rows", "inputs", "outputs", "ours", "vela", "ratio", "ours_array", "vela_array"}, ...], "by_preset": {...}}

PYTHON is an interpreter with Vela and the tools to write what it reads:

    python -m venv /tmp/vela && /tmp/vela/bin/pip install ethos-u-vela==5.2.0 tosa-tools==2026.8.0

Both sides are estimates: Vela's own words are that its figures are not those of the silicon. int8 weights, inputs and outputs in DRAM.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.systolic.gemm import Gemm
from hybrid.npu_backends.systolic.tiling import tile_product

PRESETS = {  # as each preset's file says
    "ethos-u85-128": ("Ethos_U85_SYS_DRAM_Low", "Dedicated_Sram_384KB"),
    "ethos-u85-256": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
    "ethos-u85-512": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
    "ethos-u85-1024": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
    "ethos-u85-2048": ("Ethos_U85_SYS_DRAM_High", "Dedicated_Sram_512KB"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vela", metavar="PYTHON", required=True, help="an interpreter that has ethos-u-vela and tosa-tools")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 32, 64, 128])
    parser.add_argument("--shapes", nargs="+", default=["576x1536", "1536x576"], metavar="INPUTSxOUTPUTS")
    parser.add_argument("--presets", nargs="+", default=list(PRESETS), choices=list(PRESETS))
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes]
    cases = [(preset, rows, inputs, outputs) for preset in options.presets for inputs, outputs in shapes for rows in options.rows]
    results = [compare(*case, vela) for case, vela in zip(cases, ask(options.vela, cases), strict=True)]
    by_preset = {
        preset: {
            "one_to_16_rows": spread([row["ratio"] for row in results if row["preset"] == preset and row["rows"] <= 16]),
            "more_rows": spread([row["ratio"] for row in results if row["preset"] == preset and row["rows"] > 16]),
        }
        for preset in options.presets
    }
    record = {"results": results, "by_preset": by_preset}
    print(json.dumps(record) if options.json else told(results))


def ask(python: str, cases: list[tuple[str, int, int, int]]) -> list[dict[str, int]]:
    requests = [
        {"accelerator": preset, "system": PRESETS[preset][0], "memory": PRESETS[preset][1], "product": (rows, outputs, inputs)}
        for preset, rows, inputs, outputs in cases
    ]
    script = str(Path(__file__).with_name("vela_run.py"))
    ran = subprocess.run([python, script], input=json.dumps(requests), capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{python} could not run Vela:\n{ran.stderr[-2000:]}")
    return list(json.loads(ran.stdout))


def compare(preset: str, rows: int, inputs: int, outputs: int, vela: dict[str, int]) -> dict[str, Any]:
    counted = tile_product(Gemm(rows, outputs, inputs, output_bits=8), load_preset(preset)).counted
    return {
        "preset": preset,
        "rows": rows,
        "inputs": inputs,
        "outputs": outputs,
        "ours": counted.cycles,
        "vela": vela["cycles"],
        "ratio": round(counted.cycles / vela["cycles"], 3),
        "ours_array": counted.array_cycles,
        "vela_array": vela["array"],
    }


def spread(ratios: list[float]) -> dict[str, float] | None:
    return {"least": min(ratios), "median": statistics.median(ratios), "most": max(ratios)} if ratios else None


def told(results: list[dict[str, Any]]) -> str:
    lines = [f"{'preset':15} {'rows':>4} {'shape':>11} {'ours':>9} {'Vela':>9} {'ratio':>6}"]
    for row in results:
        shape = f"{row['inputs']}x{row['outputs']}"
        lines.append(f"{row['preset']:15} {row['rows']:>4} {shape:>11} {row['ours']:>9} {row['vela']:>9} {row['ratio']:>6.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
