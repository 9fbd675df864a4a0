"""What the comparisons with llama.cpp share: their arguments, the record around their results, and the table of it."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Mapping, Sequence

from timing import machine

FEWEST_ROUNDS = 9
Result = Mapping[str, object]


def arguments(text: str, *, context: int, threads: int, rounds: int) -> argparse.ArgumentParser:
    """The arguments that all of them know, with the defaults of one."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    default = os.environ.get("HYBRID_TEST_MODEL", "smollm2-135m")
    parser.add_argument("--model", nargs="+", default=[default], help="models of the store, or GGUF files")
    parser.add_argument("--context", type=int, default=context, help="tokens before those that are computed")
    parser.add_argument("--threads", type=int, default=threads)
    parser.add_argument("--rounds", type=int, default=rounds, help=f"at least {FEWEST_ROUNDS}")
    return parser


def compared(
    parser: argparse.ArgumentParser, measure: Callable[[argparse.Namespace], Sequence[Result]], columns: Mapping[str, str]
) -> None:
    """Measure as the command line says, and print the record. `columns`: by heading, how a cell is written of a result."""
    options = parser.parse_args()
    if options.rounds < FEWEST_ROUNDS:
        parser.error(f"--rounds must be at least {FEWEST_ROUNDS}")
    load_before = os.getloadavg()[0]
    results = measure(options)
    facts = machine(options.threads, load_before)
    if options.json:
        print(json.dumps({"results": results, **facts, "context": options.context, "rounds": options.rounds}))
        return
    print(table(results, columns))
    print(f"{facts['machine']}, {options.threads} thread(s), load before {load_before}; read {facts['bars_read_on']}")


def table(results: Sequence[Result], columns: Mapping[str, str]) -> str:
    """Each column as wide as its widest cell, to the left where its cells are."""
    cells = [list(columns), *([form.format_map(result) for form in columns.values()] for result in results)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = ["<" if ":<" in form else ">" for form in columns.values()]
    return "\n".join("  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)) for row in cells)
