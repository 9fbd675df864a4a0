"""The text of a model on the simulated NPU: the interpreter's of the same quantised graph, token for token, and its distance from float32.

    python benchmarks/npu_text.py --json [--model NAME] [--target PRESET ...] [--tokens 16] [--scheme w8a8]
    {"results": [{"target", "prompts", "tokens", "equal", "logits_equal", "decode_tokens_per_s", "roofline_tokens_per_s", ...}],
     "quantised": {"tokens", "kl_mean", "kl_p99", "top1"}}

The interpreter runs the graph as it was captured and quantised, before anything was fused or cut, one token at a time; the runtime feeds
prompts in chunks. `kl_*` are nats between the float32 graph and the quantised one over prompts and answers, `top1` the share of tokens
after which both would say the same word. Cycles and tokens/s are the cost model's, not this machine's.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
from hybrid.compiler.cache import compiled_for
from hybrid.compiler.capture.capture import capture
from hybrid.compiler.capture.constants import constants_of
from hybrid.compiler.capture.sequence import SequenceRun
from hybrid.compiler.chips import chips_of
from hybrid.compiler.compile import facts_of
from hybrid.compiler.program import Compiled
from hybrid.compiler.quantise.gate import measure
from hybrid.compiler.quantise.layout import layouts_of
from hybrid.compiler.quantise.quantise_graph import quantise_graph
from hybrid.compiler.smoothing import own_text
from hybrid.edge.npu.runtime import NpuRuntime
from hybrid.npu_backends.ir.graph import Graph
from hybrid.npu_backends.preset import load_preset
from hybrid.npu_backends.systolic.roofline import most_tokens_per_second
from hybrid.shared_protocol.model import Model
from timing import open_model

CONTEXT = 256
PROMPTS = (
    "Name three rivers.",
    "Why do leaves turn red in autumn?",
    "Write one sentence about a lighthouse in a storm.",
    "What is 17 plus 26?",
    "Explain to a child what a shadow is.",
    "Give me a rhyme for the word orange.",
    "How is bread made?",
    "List two reasons to learn a second language.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--model", default=os.environ.get("HYBRID_TEST_MODEL", "smollm2-135m"), help="a model of the store, or a GGUF file")
    parser.add_argument("--target", nargs="+", default=["ethos-u85-2048", "systolic-32"], help="presets")
    parser.add_argument("--tokens", type=int, default=16, help="of each answer")
    parser.add_argument("--scheme", default="w8a8")
    parser.add_argument("--smooth", action="store_true", help="by the text that comes with Hybrid")
    options = parser.parse_args()
    model = open_model(options.model)
    prompts = [model.render_chat([{"role": "user", "content": prompt}]) for prompt in PROMPTS]
    text = own_text() if options.smooth else None
    results, answers = [], [[] for _ in prompts]
    for target in options.target:
        compiled = compiled_for(
            model, facts_of(model, load_preset(target), scheme=options.scheme, context=CONTEXT, smooth=text), smooth=text
        ).compiled
        row, answers = compare(model, compiled, prompts, options.tokens)
        results.append(row)
    said = [prompt + answer for prompt, answer in zip(prompts, answers, strict=True)]
    record = {
        "model": model.card.name,
        "scheme": options.scheme,
        "smooth": options.smooth,
        "results": results,
        "quantised": against_float(model, compiled, said),
    }
    print(json.dumps(record) if options.json else table(record))


def compare(model: Model, compiled: Compiled, prompts: Sequence[list[int]], count: int) -> tuple[dict[str, Any], list[list[int]]]:
    """The runtime's greedy answers beside the interpreter's, and what the chip would have taken."""
    step = quantised(model, compiled, rows=1)
    answers, equal, logits_equal = [], 0, 0
    with closing(NpuRuntime(model.card, compiled, chips_of(compiled.facts.target, compiled.facts.host))) as runtime:
        for prompt in prompts:
            runtime.truncate(0)
            run = SequenceRun(step, compiled.constants)
            expected = [run.feed(step, [token])["logits"][0] for token in prompt][-1]
            found = runtime.extend(prompt)[0]
            answer, wanted = [int(found.argmax())], [int(expected.argmax())]
            same = np.array_equal(found, expected)
            while len(answer) < count:
                found, expected = runtime.extend(answer[-1:])[0], run.feed(step, wanted[-1:])["logits"][0]
                same = same and np.array_equal(found, expected)
                answer.append(int(found.argmax()))
                wanted.append(int(expected.argmax()))
            answers.append(answer)
            equal += answer == wanted
            logits_equal += same
        spent, decoding = runtime.simulated(), runtime.tokens_per_second
        curve = runtime.cost_curve(8)
    target = compiled.facts.target
    row = {
        "target": target.name,
        "prompts": len(prompts),
        "tokens": count,
        "equal": equal,
        "logits_equal": logits_equal,
        "decode_tokens_per_s": round(decoding, 2),
        "roofline_tokens_per_s": round(most_tokens_per_second(compiled.weights_bytes, compiled.arenas["kv"], target), 2),
        "cost_curve_ms": [round(float(ms), 3) for ms in curve],
        "cycles": spent.chip.cycles,
        "seconds": round(spent.seconds, 4),
        "joules": round(spent.chip.joules, 4),
        "segments": {program.shape.name: dict(by_chip(compiled, number)) for number, program in enumerate(compiled.programs)},
    }
    return row, answers


def by_chip(compiled: Compiled, number: int) -> Iterator[tuple[str, int]]:
    """Operations on each chip, and how many segments there are."""
    segments = compiled.programs[number].segments
    for chip in sorted({lowered.segment.chip for lowered in segments}):
        yield chip, sum(len(lowered.segment.graph.ops) for lowered in segments if lowered.segment.chip == chip)
    yield "segments", len(segments)


def quantised(model: Model, compiled: Compiled, rows: int) -> Graph:
    """The graph as the compiler quantised it, and nothing more."""
    facts = compiled.facts
    captured = capture(model.architecture, rows=rows, logit_rows=rows, context=facts.context, name="plain")
    return quantise_graph(captured, facts.scheme, layouts=layouts_of(captured, facts.scheme, model, facts.target.weight_formats))


def against_float(model: Model, compiled: Compiled, sequences: Sequence[list[int]]) -> dict[str, Any]:
    plain = capture(model.architecture, rows=16, logit_rows=16, context=compiled.facts.context, name="float32")
    source, codes = (plain, constants_of(model, plain)), (quantised(model, compiled, rows=16), compiled.constants)
    found = measure(source, codes, sequences)
    return {
        "tokens": found.tokens,
        "kl_mean": round(found.kl_mean, 5),
        "kl_p99": round(found.kl_p99, 5),
        "top1": round(found.top1, 4),
    }


def table(record: dict[str, Any]) -> str:
    head = f"{'target':16} {'equal texts':>11} {'equal logits':>12} {'decode tokens/s':>15} {'roofline':>9}  ms of k = 1, 2, 4, 8 tokens"
    lines = [f"{record['model']}, {record['scheme']}{', smoothed' if record['smooth'] else ''}", head]
    for row in record["results"]:
        texts, logits = (f"{row[key]} of {row['prompts']}" for key in ("equal", "logits_equal"))
        curve = " ".join(f"{row['cost_curve_ms'][k]:.2f}" for k in (1, 2, 4, 8))
        lines.append(
            f"{row['target']:16} {texts:>11} {logits:>12} {row['decode_tokens_per_s']:>15} {row['roofline_tokens_per_s']:>9}  {curve}"
        )
    lines.append("against float32 over {tokens} tokens: KL {kl_mean} nats (99 %: {kl_p99}), top-1 {top1:.1%}".format(**record["quantised"]))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
