"""Makes the outcomes behind docs/confidence.md: which answers of a device's model are right, and how sure it was of every token.

    python benchmarks/confidence_outcomes.py --model PATH --work DIR [--rows 16] [--samples 3] [--output FILE] [--hidden FILE]

Each stage goes on where it was stopped: answers, samples and self-assessments are kept in DIR, texts included, which is not for
publication; FILE gets one JSON object a line, numbers only:

    {"id", "group", "task", "correct", "finish", "prompt_tokens", "logprob": [...], "margin": [...], "entropy": [...],
     "p_true", "agreement": of so many "samples", "probe", "probe_of_new_kinds"}

The two of probes are what a probe says that was fitted on nine tenths of the other answers: on any of them, or on those to other kinds of
question. --hidden writes the outcomes with the hidden state (base64) that `hybrid route gate --signal probe` needs.

The three lists have a number per token, in thousandths of a nat (see router/confidence/token_signal.py). Answers are greedy;
the first line says which model, and how the code that it wrote was kept apart when it was run.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from batch_decoding import Answered, BatchDecoder, Job
from confidence_probes import held_out, held_out_kinds
from confidence_tasks import TASK, Question, questions
from hybrid.quant.at_load import quantised
from hybrid.router.confidence.calibrate import Judged
from hybrid.router.confidence.self_check import agreement, ask_whether_true, probability_of_true
from hybrid.router.confidence.token_signal import TokenSignal
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.sampling import SamplingParams
from sandbox import isolation

OUTPUT = Path(__file__).parent / "data" / "confidence_outcomes.jsonl"
CONTEXT = 1536  # tokens of the longest question, its answer and the question whether it is right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a model of the store, or a path")
    parser.add_argument("--work", type=Path, required=True, help="a directory for the stages, texts included")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--hidden", type=Path, help="also write the outcomes with their hidden states to this file")
    parser.add_argument("--rows", type=int, default=16, help="answers at once")
    parser.add_argument("--samples", type=int, default=3, help="for self-consistency; 0: none")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    how = isolation()
    asked = questions(how)
    decoder = BatchDecoder(quantised(load_model(options.model)), rows=options.rows, context=CONTEXT)
    answers = Stage(options.work / "answers.jsonl")
    for answered in decoder.run([_job(decoder.model, one, 0) for one in asked if one.id not in answers]):
        answers.add(_record(decoder.model, answered))
    own = Stage(options.work / "p_true.jsonl")
    for one in asked:
        if one.id not in own:
            messages = ask_whether_true(one.messages, answers[one.id]["text"])
            logits = decoder.last_logits(decoder.model.render_chat(messages))
            own.add({"id": one.id, "p_true": probability_of_true(logits, decoder.model.tokenizer)})
    head = header(decoder.model, how)
    publish_both(options.output, options.hidden, head, [_outcome(one, answers, own, None) for one in asked])
    samples = Stage(options.work / "samples.jsonl")
    if options.samples:
        shortest_first = sorted(asked, key=lambda one: one.max_tokens)
        jobs = [_job(decoder.model, one, k) for k in range(1, options.samples + 1) for one in shortest_first]
        for answered in decoder.run([job for job in jobs if job.id not in samples]):
            samples.add(_record(decoder.model, answered))
        publish_both(options.output, options.hidden, head, [_outcome(one, answers, own, samples) for one in asked])
    decoder.close()


class Stage:
    """Records by id, appended to a file as they come and read again when the script starts anew."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._records: dict[str, dict[str, Any]] = {record["id"]: record for record in map(json.loads, lines)}

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def __getitem__(self, name: str) -> dict[str, Any]:
        return self._records[name]

    def starting_with(self, prefix: str) -> Iterator[dict[str, Any]]:
        return (record for name, record in self._records.items() if name.startswith(prefix))

    def add(self, record: dict[str, Any]) -> None:
        self._records[record["id"]] = record
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def _job(model: Model, one: Question, sample: int) -> Job:
    """Sample 0 is the greedy answer, the others are drawn."""
    name, temperature = (one.id, 0.0) if sample == 0 else (f"{one.id}#{sample}", 0.7)
    return Job(name, model.render_chat(one.messages), SamplingParams(temperature=temperature, max_tokens=one.max_tokens), seed=sample)


def _record(model: Model, answered: Answered) -> dict[str, Any]:
    ids = answered.token_ids[:-1] if answered.ended else answered.token_ids
    signals = answered.signals
    return {
        "id": answered.job.id,
        "text": model.tokenizer.decode(ids),
        "finish": "stop" if answered.ended else "length",
        "prompt_tokens": len(answered.job.prompt_ids),
        "logprob": [round(1000 * signal.logprob) for signal in signals],
        "margin": [round(1000 * signal.margin) for signal in signals],
        "entropy": [round(1000 * signal.entropy) for signal in signals],
        "hidden": None if answered.hidden is None else base64.b64encode(answered.hidden.astype("<f4").tobytes()).decode(),
    }


def _outcome(one: Question, answers: Stage, own: Stage, samples: Stage | None) -> dict[str, Any]:
    answer = answers[one.id]
    drawn = [] if samples is None else [record["text"] for record in samples.starting_with(f"{one.id}#")]
    return {
        "id": one.id,
        "group": one.group,
        "task": TASK[one.group],
        "correct": one.grade(answer["text"]),
        **{key: answer[key] for key in ("finish", "prompt_tokens", "logprob", "margin", "entropy", "hidden")},
        "p_true": round(own[one.id]["p_true"], 4),
        "agreement": round(agreement(answer["text"], drawn), 4) if drawn else None,
        "samples": len(drawn),
    }


def header(model: Model, how: str) -> dict[str, Any]:
    card = model.card
    return {"model": card.name, "file_hash": card.file_hash, "quantisation": card.quantisation, "isolation": how}


def publish_both(path: Path, with_hidden: Path | None, head: dict[str, Any], outcomes: Sequence[dict[str, Any]]) -> None:
    """The outcomes with what probes say of them and without hidden states, which are large, and the other way round."""
    if with_hidden is not None:
        publish(with_hidden, head, outcomes)
    rows = [_judged(outcome) for outcome in outcomes]
    probes = {"probe": held_out(rows), "probe_of_new_kinds": held_out_kinds(rows)}
    numbers = [{key: value for key, value in outcome.items() if key != "hidden"} for outcome in outcomes]
    for at, outcome in enumerate(numbers):
        outcome |= {name: round(said[at], 4) for name, said in probes.items()}
    publish(path, head, numbers)


def _judged(outcome: dict[str, Any]) -> Judged:
    signals = zip(*(outcome[key] for key in ("logprob", "margin", "entropy")), strict=True)
    tokens = [TokenSignal(*(value / 1000 for value in token)) for token in signals]
    state = np.frombuffer(base64.b64decode(outcome["hidden"]), "<f4")
    return Judged(outcome["id"], outcome["task"], outcome["correct"], tokens, state)


def publish(path: Path, head: dict[str, Any], outcomes: Iterable[dict[str, Any]]) -> None:
    """Write all at once; the hash of the lines is in the head, so that a calibration can name what it was made from."""
    lines = [json.dumps(outcome, separators=(",", ":")) for outcome in outcomes]
    head = {**head, "data_hash": hashlib.sha256("\n".join(lines).encode()).hexdigest()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([json.dumps(head), *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
