"""How far a model whose products are rounded to integers strays from its float32 source: divergence, agreement, and what became of the
weights, for every scheme.

    python benchmarks/quantised_execution.py [MODEL] [--tokens 512] [--json]

MODEL is a name of the store or a path (smollm2-135m). The texts are help texts of CPython (`pydoc_data.topics`); static scales and the
sizes that are moved come from others of them. About five minutes for SmolLM2 on one busy core.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pydoc_data.topics
import sys
import time
from collections.abc import Iterator

from hybrid.compiler.capture.capture import capture
from hybrid.compiler.capture.constants import constants_of
from hybrid.compiler.capture.sequence import SequenceRun
from hybrid.compiler.quantise.calibrate import observe, static_scales
from hybrid.compiler.quantise.constants import carried_of, quantised_constants
from hybrid.compiler.quantise.gate import compare, logits_of
from hybrid.compiler.quantise.layout import layouts_of
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.compiler.quantise.smooth import smoothed
from hybrid.shared_protocol.model import Model, load_model

ROWS, CONTEXT, PIECE = 32, 160, 128  # tokens: of a run, of the cache, of a text


def texts(model: Model, pieces: int, first: int) -> list[list[int]]:
    """The beginnings of some topics, evenly spread from the `first` on."""
    topics = pydoc_data.topics.topics
    names = sorted(topics)[first :: max(1, len(topics) // pieces)][:pieces]
    return [model.tokenizer.encode(topics[name][:1500])[:PIECE] for name in names]


def rows(model: Model, tokens: int) -> Iterator[dict[str, object]]:
    pieces = max(1, tokens // PIECE)
    tests, others = texts(model, pieces, 0), texts(model, pieces + 1, 3)
    assert not any(text in tests for text in others)
    chunk, step = (capture(model.architecture, rows=n, logit_rows=n, context=CONTEXT, name=f"rows-{n}") for n in (ROWS, 1))
    source = (chunk, constants_of(model, chunk))
    expected = list(logits_of(source, tests))
    peaks = observe(step, source[1], others)
    even, evenly = smoothed(model, peaks, 0.5), smoothed(model, peaks, 0.7)
    cases = (
        ("w8a8", "w8a8", model, model, None),
        ("w8a8 smoothed 0.5", "w8a8", even[0], even[0], None),
        ("w8a8 static", "w8a8", model, model, static_scales(peaks)),
        ("w8a8 static smoothed 0.7", "w8a8", evenly[0], evenly[0], static_scales(evenly[1])),
        ("w4a8 carried over", "w4a8", model, model, None),
        ("w4a8 rounded to 4 bits", "w4a8", model, None, None),
    )
    for label, scheme, weights, layouts_from, static in cases:
        layouts = layouts_of(chunk, scheme, layouts_from)  # type: ignore[arg-type]
        graph, one = (quantise_graph(g, scheme, layouts=layouts, static=static) for g in (chunk, step))  # type: ignore[arg-type]
        constants = quantised_constants(weights, graph)
        notes = carried_of(weights, graph, constants)
        yield {
            "scheme": label,
            **dataclasses.asdict(compare(expected, logits_of((graph, constants), tests))),
            "matrices": len(notes),
            "lossless": sum(note.lossless for note in notes),
            "largest_error": max(note.error for note in notes),
            "megabytes": sum(value.bytes for value in graph.constants) / 1e6,
            "step_cpu_s": step_seconds(SequenceRun(one, constants), one),
        }


def step_seconds(run: SequenceRun, graph: object) -> float:
    """CPU seconds of a step in the interpreter: the least of eight."""
    taken = []
    for token in range(8):
        begun = time.process_time()
        run.feed(graph, [token])  # type: ignore[arg-type]
        taken.append(time.process_time() - begun)
    return min(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2-135m")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = []
    for row in rows(load_model(options.model), options.tokens):
        found.append(row)
        if not options.json:
            shown = "  ".join(f"{name} {value:.4g}" for name, value in row.items() if isinstance(value, int | float))
            print(f"{row['scheme']:26}{shown}", flush=True)
    if options.json:
        json.dump({"model": options.model, "python": sys.version.split()[0], "results": found}, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
