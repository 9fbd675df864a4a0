"""How small memory plans are against the bytes live at the busiest step, and in how much time they are found.

    python benchmarks/memory_planning.py [--json] [--data DIR] [--seconds 10] [--baselines] [--ablation]
    {"results": [{"file", "buffers", "bound", "size", "ratio", "optimal", "valid", "seconds"}, ...], "mean_ratio", ...}

Every `*.csv` of DIR (default $HYBRID_SHARED/data/memory_planning) is one problem: lines `id,lower,upper,size`. `seconds` is CPU time on one
core, reading left out; `optimal` is proved; `valid` is the verdict of the verifier, which shares no code with the planners.
The buffers of compiled models follow (model_graphs.py); the mean ratio is that of the files alone.
Baselines: greedy by size with best fit, ExecuTorch's rule as its documentation tells it, and our hill climb.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from time import process_time
from typing import Any

from hybrid.compiler.memory.bound import lower_bound
from hybrid.compiler.memory.buffer import Buffer, read_csv
from hybrid.compiler.memory.errors import PlanFault
from hybrid.compiler.memory.exact import exact
from hybrid.compiler.memory.greedy import by_size
from hybrid.compiler.memory.hill_climb import hill_climb
from hybrid.compiler.memory.plan import height
from hybrid.compiler.memory.portfolio import plan
from hybrid.compiler.memory.search import Pruning
from hybrid.compiler.memory.verifier import verify, verify_plan
from model_graphs import model_problems

Problem = tuple[str, list[Buffer]]
DATA = Path(os.environ.get("HYBRID_SHARED", "../shared")) / "data" / "memory_planning"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of problems")
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds for one problem at most")
    parser.add_argument("--baselines", action="store_true", help="other rules too")
    parser.add_argument("--ablation", action="store_true", help="the exact search with each pruning switched off")
    parser.add_argument("--files-only", action="store_true", help="leave out the graphs of models, which are compiled first")
    options = parser.parse_args()
    chosen = problems(options.data)
    if not chosen:
        sys.exit(f"no *.csv in {options.data}: name a folder of problems with --data")
    results = [measure(name, buffers, options.seconds) for name, buffers in chosen]
    record: dict[str, Any] = {"results": results, "mean_ratio": mean([r["ratio"] for r in results]), "load_average": os.getloadavg()[0]}
    if not options.files_only:
        results += [measure(name, buffers, options.seconds) for name, buffers in model_problems()]
    if options.baselines:
        record["baselines"] = baselines(chosen)
    if options.ablation:
        record["ablation"] = ablation(chosen, options.seconds)
    print(json.dumps(record) if options.json else table(record))


def problems(folder: Path) -> list[Problem]:
    """Name and buffers of every problem of a folder."""
    return [(path.name, read_csv(path)) for path in sorted(folder.glob("*.csv"))]


def measure(name: str, buffers: Sequence[Buffer], seconds: float) -> dict[str, Any]:
    before = process_time()
    made = plan(buffers, seconds=seconds, clock=process_time)
    spent = process_time() - before
    try:
        verify_plan(made)
        valid = True
    except PlanFault:
        valid = False
    return {
        "file": name,
        "buffers": len(buffers),
        "bound": made.bound,
        "size": made.size,
        "ratio": round(made.ratio, 4),
        "optimal": made.optimal,
        "valid": valid,
        "seconds": round(spent, 2),
        "planner": made.planner,
    }


def baselines(chosen: Sequence[Problem]) -> dict[str, Any]:
    """Ratios of other rules, file by file, each plan verified."""
    rules: dict[str, Callable[[Sequence[Buffer]], Mapping[str, int]]] = {
        "greedy by size": by_size,
        "ExecuTorch's rule": shared_objects,
        "hill climb": hill_climb,
    }
    record: dict[str, Any] = {}
    for rule, planner in rules.items():
        ratios = []
        for _, buffers in chosen:
            offsets = planner(buffers)
            verify(buffers, offsets)
            ratios.append(round(height(buffers, offsets) / lower_bound(buffers), 4))
        record[rule] = {"ratios": ratios, "mean_ratio": mean(ratios)}
    return record


def shared_objects(buffers: Sequence[Buffer]) -> dict[str, int]:
    """ExecuTorch's greedy rule: largest first into shared objects whose size is that of their first member.

    A buffer goes into the first object where no member lives with it, or where it can stand above the highest that does; else it opens one.
    """
    objects: list[tuple[int, list[tuple[Buffer, int]]]] = []
    for buffer in sorted(buffers, key=lambda b: (-b.extent, b.lower, b.id)):
        for size, members in objects:
            above = max((at + b.extent for b, at in members if b.lower < buffer.upper and buffer.lower < b.upper), default=0)
            if above + buffer.extent <= size:
                members.append((buffer, above))
                break
        else:
            objects.append((buffer.extent, [(buffer, 0)]))
    offsets: dict[str, int] = {}
    start = 0
    for size, members in objects:
        offsets.update({b.id: start + at for b, at in members})
        start += size
    return offsets


def ablation(chosen: Sequence[Problem], seconds: float) -> dict[str, Any]:
    """The exact search alone, with all prunings and without each: ratio and tries, file by file."""
    switches = {"all": Pruning()} | {f"without {field.name}": replace(Pruning(), **{field.name: False}) for field in fields(Pruning)}
    record: dict[str, Any] = {}
    for name, pruning in switches.items():
        rows = []
        for _, buffers in chosen:
            end = process_time() + seconds
            found = exact(buffers, pruning=pruning, stop=lambda end=end: process_time() >= end)
            rows.append([round(height(buffers, found.offsets) / lower_bound(buffers), 4), found.tries])
        record[name] = rows
    return record


def mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


def table(record: Mapping[str, Any]) -> str:
    lines = [f"{'file':20} {'buffers':>7} {'bound':>9} {'size':>9} {'ratio':>6} {'proved':>6} {'valid':>5} {'CPU s':>6}  found by"]
    lines += [
        f"{r['file']:20} {r['buffers']:>7} {r['bound']:>9} {r['size']:>9} {r['ratio']:>6.3f} {'yes' if r['optimal'] else 'no':>6} "
        f"{'yes' if r['valid'] else 'NO':>5} {r['seconds']:>6.2f}  {r['planner']}"
        for r in record["results"]
    ]
    lines.append(f"mean size over bound: {record['mean_ratio']:.3f}")
    for rule, found in record.get("baselines", {}).items():
        lines.append(f"{rule:20} {found['mean_ratio']:.3f}   {' '.join(f'{ratio:.3f}' for ratio in found['ratios'])}")
    for switch, rows in record.get("ablation", {}).items():
        lines.append(f"{switch:20} " + "  ".join(f"{ratio:.3f} ({tries} tries)" for ratio, tries in rows))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
