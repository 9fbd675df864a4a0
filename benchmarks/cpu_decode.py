"""A decode step, and the prefill of a prompt, of our kernels against llama.cpp's `llama_decode`: same tokens, one thread each.

    python benchmarks/cpu_decode.py --json [--model NAME ...] [--rows 1 8 32] [--prefill 512]
    {"results": [{"model", "peer", "work", "rows", "cpu_ratio", "wall_ratio", ...}], ...}      ratio = theirs / ours, above 1 we are faster

The peers are llama.cpp on the same file and, with --requantise, on its own Q4_0 requantisation of it: its fast path, which costs it
accuracy. All take turns inside every round, in one process. Medians over the rounds; the first of each is dropped. The clock of
`cpu_ratio` is the whole process's CPU time, so that other load on the machine counts little. HYBRID_ISA chooses our instruction set.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from beside_peer import arguments, compared
from hybrid.shared_protocol.model import Model
from requantise import requantise
from sequences import Ours, Theirs, Work
from timing import open_model, taking_turns

COLUMNS = {
    "model": "{model:<40}",
    "peer": "{peer:<9}",
    "work": "{work:<7}",
    "rows": "{rows}",
    "llama.cpp": "{peer_cpu_ms:.2f} ms",
    "ours": "{ours_cpu_ms:.2f} ms",
    "cpu ratio": "{cpu_ratio:.2f}",
    "wall ratio": "{wall_ratio:.2f}",
}


def main() -> None:
    parser = arguments(__doc__, context=64, threads=1, rounds=15)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 8, 32], help="sequences decoded together")
    parser.add_argument("--prefill", type=int, default=512, help="tokens of the prompt; 0: no prefill")
    parser.add_argument("--requantise", action=argparse.BooleanOptionalAction, default=True, help="also against llama.cpp's own Q4_0")
    compared(parser, measured, COLUMNS)


def measured(options: argparse.Namespace) -> list[dict[str, object]]:
    works = [Work(rows, options.context) for rows in options.rows]
    works += [Work(1, 0, options.prefill, logits=False)] if options.prefill else []
    results: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.model:
            model = open_model(name)
            peers = {"same file": model.path}
            if options.requantise:
                peers["own Q4_0"] = requantise(model.path, Path(scratch) / "q4_0.gguf")
            for work in works:
                results += compare(model, peers, work, options.threads, options.rounds)
    return results


def compare(model: Model, peers: dict[str, Path], work: Work, threads: int, rounds: int) -> list[dict[str, object]]:
    """Time `work` on our kernels and on every peer; one result per peer."""
    ours = Ours(model, work, threads)
    theirs = {name: Theirs(model, path, work, threads) for name, path in peers.items()}
    spent = taking_turns({**theirs, "ours": ours}, rounds)
    mine = spent["ours"]
    results: list[dict[str, object]] = []
    for name, peer in theirs.items():
        equal = int((ours.logits.argmax(1) == peer.logits.argmax(1)).sum())
        results.append(
            {
                "model": model.path.name,
                "peer": name,
                "work": "decode" if work.logits else "prefill",
                "rows": work.rows * work.tokens,
                "cpu_ratio": round(spent[name].cpu / mine.cpu, 3),
                "wall_ratio": round(spent[name].wall / mine.wall, 3),
                "ours_cpu_ms": round(mine.cpu * 1e3, 3),
                "peer_cpu_ms": round(spent[name].cpu * 1e3, 3),
                "kernel_id": ours.kernel_id,
                "llama_cpp": f"xllamacpp {peer.peer.version}",
                "llama_cpp_features": peer.peer.features,
                "argmax_equal": f"{equal}/{len(ours.logits)}",  # on the same file: both did the same work
            }
        )
    for engine in (ours, *theirs.values()):
        engine.close()
    return results


if __name__ == "__main__":
    main()
