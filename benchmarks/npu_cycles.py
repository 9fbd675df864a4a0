"""Cycles of the simulated array beside those of SCALE-Sim, a published simulator of systolic arrays.

    python benchmarks/npu_cycles.py [--json] [--scalesim PYTHON] [--products 100] [--seed 0]
    {"golden": [{"layer", "array", "dataflow", "ours", "theirs", "equal"}, ...],
     "scalesim": {"runs", "equal", "differ": [...], "seconds", "ours_seconds", "times_faster"}, ...}

Golden values are the output of SCALE-Sim 3.0.0. With --scalesim it is run on random products, each with all three dataflows; PYTHON is an
interpreter that can import it:

    python -m venv /tmp/scalesim && /tmp/scalesim/bin/pip install scalesim==3.0.0 'numpy<2.3'

Compared are the index of the last cycle, utilisation, mapping efficiency, operand traffic, and, where the sums fit half a buffer, the index
with the first fill of the buffers and the last drain. The exit code is 1 if anything differs. Times are CPU time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybrid.npu_backends.spec import DATAFLOWS, Array, Dataflow
from hybrid.npu_backends.systolic.cycles import convolution, gemm_cycles, map_product, mapping_efficiency, operand_traffic, utilisation
from timing import machine

Size = tuple[int, int, int]
ARRAYS = ((32, 32), (16, 64), (8, 8), (12, 14))
BUFFER = 64 * 1024  # words of each of SCALE-Sim's three buffers here; half of one is filled before the array starts
FILL = 10  # words a cycle of that first fill: the simulator's constant

# layer, array, dataflow: index of the last cycle, and of the last cycle with first fill and last drain where that is known
GOLDEN: list[tuple[Size, tuple[int, int], Dataflow, int, int | None]] = [
    ((256, 128, 256), (32, 32), "ws", 11199, 15498),
    ((256, 128, 256), (32, 32), "os", 10175, 14473),
    ((256, 128, 256), (16, 64), "os", 10687, None),
    ((100, 70, 50), (32, 32), "ws", 1163, 2124),
    ((100, 70, 50), (32, 32), "os", 1343, 2085),
    ((100, 70, 50), (16, 64), "os", 1791, None),
    ((1, 576, 576), (32, 32), "ws", 30779, 34377),
    ((1, 576, 576), (32, 32), "os", 11483, 14775),
    ((1, 576, 576), (16, 64), "os", 5885, None),
    ((64, 192, 576), (32, 32), "ws", 17063, 21106),
    ((64, 192, 576), (32, 32), "os", 7655, 11313),
    ((64, 192, 576), (16, 64), "os", 7847, None),
    ((100, 70, 50), (16, 64), "is", 1311, 2272),
    ((100, 70, 50), (16, 64), "ws", 1551, 2512),
    ((40, 130, 90), (16, 64), "is", 1343, 3009),
    ((40, 130, 90), (16, 64), "ws", 2411, 4077),
    # a narrow memory stalls these: 52447 - 42272, 52447 - 41248, 19984 - 5777 cycles are the array's
    ((256, 128, 256), (32, 32), "os", 52447 - 42272, None),
    ((256, 128, 256), (32, 32), "ws", 52447 - 41248, None),
    ((256, 128, 256), (32, 32), "is", 19984 - 5777, None),
    # AlexNet's first layer
    (convolution(224, 224, 11, 11, channels=3, filters=96, stride=4), (32, 32), "ws", 112283, None),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--scalesim", metavar="PYTHON", help="an interpreter that can import scalesim")
    parser.add_argument("--products", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    golden = [compare(*line) for line in GOLDEN]
    record: dict[str, Any] = {"golden": golden, "golden_equal": all(row["equal"] for row in golden)}
    if options.scalesim:
        record["scalesim"] = against_scalesim(options.scalesim, options.products, options.seed)
    record |= machine(1, load_before)
    print(json.dumps(record) if options.json else told(record))
    return 0 if record["golden_equal"] and not record.get("scalesim", {}).get("differ") else 1


def compare(size: Size, array: tuple[int, int], dataflow: Dataflow, last: int, filled: int | None) -> dict[str, Any]:
    ours = gemm_cycles(*size, Array(*array), dataflow) - 1
    row = {"layer": size, "array": array, "dataflow": dataflow, "ours": ours, "theirs": last, "equal": ours == last}
    if filled is not None:
        with_fill = with_fill_and_drain(size, Array(*array), dataflow)
        row |= {"ours_filled": with_fill, "theirs_filled": filled, "equal": ours == last and with_fill == filled}
    return row


def with_fill_and_drain(size: Size, array: Array, dataflow: Dataflow) -> int:
    """The index of the last cycle counted from the first word fetched to the last one written, as SCALE-Sim's buffers do it.

    Buffers are fetched in sets of a hundredth; up to 50 sets come before the first request, at 10 words a cycle. Sums leave by lines of one
    word for each column: half a buffer at a time while the array works, the rest after it, a line a cycle.
    """
    m, n, k = size
    of_set = BUFFER // 100
    streams_late = {"os": None, "ws": "inputs", "is": "weights"}[dataflow]
    fills = []
    for operand, words in (("inputs", m * k), ("weights", k * n)):
        sets = min(50, -(-words // of_set))
        first_request = array.rows if operand == streams_late and words >= 50 * of_set else 0
        fills.append(-(-sets * of_set // FILL) - first_request)
    written = operand_traffic(m, n, k, array, dataflow).sum_writes
    half = BUFFER // 2
    drains = max(0, (written - 1) // half)
    if drains:
        # a drain starts one word late, and that word stands in a line of its own
        rest = written - drains * half - 1
        lines = 1 + -(-rest // array.cols)
    else:
        lines = -(-written // array.cols)
    return gemm_cycles(m, n, k, array, dataflow) - 1 + max(fills) + lines - 1


def against_scalesim(python: str, count: int, seed: int) -> dict[str, Any]:
    drawn = random.Random(seed)
    products = [(drawn.choice(ARRAYS), tuple(drawn.randint(1, drawn.choice((8, 40, 120))) for _ in range(3))) for _ in range(count)]
    requests = [
        {"rows": rows, "cols": cols, "dataflow": dataflow, "products": [size for array, size in products if array == (rows, cols)]}
        for rows, cols in ARRAYS
        for dataflow in DATAFLOWS
    ]
    requests = [request for request in requests if request["products"]]
    script = Path(__file__).with_name("scalesim_run.py")
    ran = subprocess.run([python, str(script)], input=json.dumps(requests), capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{python} could not run SCALE-Sim:\n{ran.stderr[-2000:]}")
    answers = json.loads(ran.stdout)
    differ, runs, filled = [], 0, 0
    for request, answer in zip(requests, answers, strict=True):
        for size, theirs in zip(request["products"], answer["products"], strict=True):
            runs += 1
            mine = ours(size, Array(request["rows"], request["cols"]), request["dataflow"])
            if request["dataflow"] == "os":  # its count has as many blanks for each fold as the array has rows and columns
                folds = map_product(*size, Array(request["rows"], request["cols"]), "os").folds
                theirs["sum_writes"] -= folds * (request["rows"] + request["cols"])
            if mine["sum_writes"] > BUFFER // 2:
                del mine["with_prefetch"]
            else:
                filled += 1
            wrong = {key: (mine[key], theirs[key]) for key in mine if abs(mine[key] - theirs[key]) > 1e-9}
            if wrong or theirs["stalls"]:
                differ.append({key: request[key] for key in ("rows", "cols", "dataflow")} | {"size": size, "ours_theirs": wrong})
    mine_seconds = seconds_of(requests)
    seconds = sum(answer["seconds"] for answer in answers)
    return {
        "products": count,
        "runs": runs,
        "with_prefetch_compared": filled,
        "equal": runs - len(differ),
        "differ": differ,
        "seconds": seconds,
        "ours_seconds": mine_seconds,
        "times_faster": round(seconds / mine_seconds),
    }


def ours(size: Size, array: Array, dataflow: Dataflow) -> dict[str, float]:
    cycles = gemm_cycles(*size, array, dataflow)
    traffic = operand_traffic(*size, array, dataflow)
    return {
        "last_cycle": cycles - 1,
        "with_prefetch": with_fill_and_drain(size, array, dataflow),
        "utilisation": utilisation(*size, array, dataflow) * cycles / (cycles - 1),  # theirs divides by the index of the last cycle
        "mapping": mapping_efficiency(*size, array, dataflow),
        "input_reads": traffic.input_reads,
        "weight_reads": traffic.weight_reads,
        "sum_writes": traffic.sum_writes,
    }


def seconds_of(requests: Sequence[dict[str, Any]]) -> float:
    """CPU time of everything that is compared, once for each product and dataflow."""
    repeats = 20
    arrays = [(Array(request["rows"], request["cols"]), request["dataflow"], request["products"]) for request in requests]
    started = time.process_time()
    for _ in range(repeats):
        for array, dataflow, sizes in arrays:
            for size in sizes:
                ours(size, array, dataflow)
    return (time.process_time() - started) / repeats


def told(record: dict[str, Any]) -> str:
    lines = [f"{'m, n, k':>16} {'array':>7} {'flow':>4} {'ours':>7} {'theirs':>7}"]
    for row in record["golden"]:
        size, array = ",".join(map(str, row["layer"])), "x".join(map(str, row["array"]))
        lines.append(f"{size:>16} {array:>7} {row['dataflow']:>4} {row['ours']:>7} {row['theirs']:>7} {'' if row['equal'] else 'DIFFERS'}")
    if found := record.get("scalesim"):
        lines.append(
            f"SCALE-Sim: {found['equal']} of {found['runs']} runs equal; {found['seconds']:.1f} s there, {found['ours_seconds']:.4f} s here"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
