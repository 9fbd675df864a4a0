"""Runs SCALE-Sim on products: started by npu_cycles.py with the Python that has `scalesim`, which needs an older NumPy than this project.

    PYTHON benchmarks/scalesim_run.py < requests.json > answers.json

requests: [{"rows", "cols", "dataflow", "products": [[m, n, k], ...]}, ...]
answers:  [{"seconds", "products": [{"with_prefetch", "last_cycle", "stalls", "utilisation", "mapping", "input_reads", ...}, ...]}, ...]
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CONFIG = """
[general]
run_name = run
[architecture_presets]
ArrayHeight = {rows}
ArrayWidth = {cols}
IfmapSramSzkB = 64
FilterSramSzkB = 64
OfmapSramSzkB = 64
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = {dataflow}
Bandwidth = 10
ReadRequestBuffer = 32
WriteRequestBuffer = 32
[layout]
IfmapCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterCustomLayout = False
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
"""


def run(request: dict[str, Any]) -> dict[str, Any]:
    from scalesim.scale_sim import scalesim  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("run.cfg").write_text(CONFIG.format(**request))
        lines = [f"p{index},{m},{n},{k}," for index, (m, n, k) in enumerate(request["products"])]
        Path("products.csv").write_text("\n".join(["Layer,M,N,K,", *lines, ""]))
        # read even where layouts are off
        Path("layout.csv").write_text(
            "\n".join(["Layer," + ",".join(["1"] * 20) + ","] + [f"p{i}," + ",".join(["1"] * 20) + "," for i in range(len(lines))])
        )
        with open(os.devnull, "w") as silence, contextlib.redirect_stdout(silence):
            simulator = scalesim(
                save_disk_space=True, verbose=False, config="run.cfg", topology="products.csv", layout="layout.csv", input_type_gemm=True
            )
            started = time.process_time()
            simulator.run_scale(top_path="out")
            seconds = time.process_time() - started
        compute, access = (rows_of(Path("out/run") / name) for name in ("COMPUTE_REPORT.csv", "DETAILED_ACCESS_REPORT.csv"))
    products = [
        {
            "with_prefetch": int(float(first["Total Cycles (incl. prefetch)"])),
            "last_cycle": int(float(first["Total Cycles"])),
            "stalls": int(float(first["Stall Cycles"])),
            "utilisation": float(first["Overall Util %"]) / 100,
            "mapping": float(first["Mapping Efficiency %"]) / 100,
            "input_reads": int(float(second["SRAM IFMAP Reads"])),
            "weight_reads": int(float(second["SRAM Filter Reads"])),
            "sum_writes": int(float(second["SRAM OFMAP Writes"])),
        }
        for first, second in zip(compute, access, strict=True)
    ]
    return {"seconds": seconds, "products": products}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file, skipinitialspace=True))


if __name__ == "__main__":
    json.dump([run(request) for request in json.load(sys.stdin)], sys.stdout)
