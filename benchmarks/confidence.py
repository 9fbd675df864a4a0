"""How well the device's own certainty tells its right answers from its wrong ones, from the outcomes that are kept here.

    python benchmarks/confidence.py [--json] [--outcomes FILE] [--signal length_corrected] [--gate FILE]

    {"auroc": {set: {signal: value}}, "ci95": {set: {signal: [lo, hi]}}, "paired": {set: {...}}, "calibration": {set: {map: {ece, brier}}},
     "risk": {set: {coverage: error rate}}, "promises": {set: {error rate: {...} or why not}},
     "certain_stop": {set: {share kept: tokens saved}}, "early": {set: [...]}, ...}

AUROC: of a right and a wrong answer, the chance that the right one scores higher. `answer_length` and `prompt_length` (shorter is better)
are what costs nothing: a signal that does not beat them has learned nothing else. `probe` and `probe_of_new_kinds` were fitted on other
answers, on those to questions of other kinds (confidence_probes.py). Intervals: 1,000 resamples of the questions. Calibration and early
stopping are measured on folds that had no part in it. --gate writes the gate of this model. confidence_outcomes.py makes the outcomes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from confidence_tasks import MAX_TOKENS, TASK
from hybrid.router.calibration import fit_isotonic, fit_logistic, fit_temperature
from hybrid.router.confidence.calibrate import ERROR_RATES, FOLDS, calibrate, cross_fitted
from hybrid.router.confidence.early import best_possible, stop_bound, tokens_computed
from hybrid.router.confidence.outcome_file import read_outcome_file
from hybrid.router.confidence.signals import SIGNALS, confidence
from hybrid.router.confidence.threshold import promise_by_halves
from hybrid.router.confidence.token_signal import TokenSignal
from hybrid.router.evaluate.bootstrap import measure
from hybrid.router.evaluate.failures import Failures
from hybrid.router.evaluate.folds import fold_of
from hybrid.router.evaluate.reliability import Reliability
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import ConfidencePolicy, Signal
from hybrid.shared_protocol.errors import CannotPromise
from hybrid.shared_protocol.model_card import ModelCard

OUTCOMES = Path(__file__).parent / "data" / "confidence_outcomes.jsonl"
BASELINES = ("answer_length", "prompt_length")


@dataclass(frozen=True)
class Outcomes:
    head: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def correct(self) -> np.ndarray:
        return np.array([float(row["correct"]) for row in self.rows])

    @property
    def ids(self) -> list[str]:
        return [row["id"] for row in self.rows]

    def of(self, group: str | None) -> Outcomes:
        return Outcomes(self.head, [row for row in self.rows if group in (None, row["group"])])

    def signals(self, policy: ConfidencePolicy) -> dict[str, np.ndarray]:
        """Every signal, and the two lengths, shorter being higher; what the outcomes do not have is left out."""
        found = {name: np.array([_value(row, policy, name) for row in self.rows]) for name in SIGNALS}
        for name in ("probe", "probe_of_new_kinds", "p_true", "agreement"):
            if all(row.get(name) is not None for row in self.rows):
                found[name] = np.array([row[name] for row in self.rows])
        lengths = [len(row["logprob"]) for row in self.rows], [row["prompt_tokens"] for row in self.rows]
        return found | {name: -np.array(length, float) for name, length in zip(BASELINES, lengths, strict=True)}


def tokens_of(row: dict[str, Any]) -> list[TokenSignal]:
    return [TokenSignal(*(value / 1000 for value in token)) for token in zip(row["logprob"], row["margin"], row["entropy"], strict=True)]


def _value(row: dict[str, Any], policy: ConfidencePolicy, signal: str) -> float:
    value = confidence(tokens_of(row), msgspec.structs.replace(policy, signal=signal))
    assert value is not None, row["id"]
    return value


def read(path: Path) -> Outcomes:
    head, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return Outcomes(head, rows)


def ranking(outcomes: Outcomes, signals: dict[str, np.ndarray], chosen: str) -> dict[str, Any]:
    """AUROC and AURC of every signal, with intervals, and the difference of the chosen one to the others on equal resamples."""
    judges = {name: Failures(-values, outcomes.correct) for name, values in signals.items()}

    def figures(weights: np.ndarray) -> dict[str, np.ndarray]:
        return {name: judge.auroc(weights) for name, judge in judges.items()}

    measured = measure(outcomes.ids, figures)
    once = np.ones((1, len(outcomes.rows)))
    paired = {}
    for name in signals:
        if name != chosen:
            difference, interval = measured.difference(chosen, name)
            paired[f"{chosen}-{name}"] = [rounded(difference), *rounded(interval)]
    return {
        "auroc": rounded(measured.value),
        "ci95": {name: rounded(measured.interval(name)) for name in signals},
        "paired": paired,
        "aurc": {name: rounded(float(judge.aurc(once)[0])) for name, judge in judges.items()},
    }


def calibration(outcomes: Outcomes, values: np.ndarray) -> dict[str, dict[str, float]]:
    """ECE and Brier score of the raw signal, and of each map on folds that it was not fitted on."""
    fits = {"temperature": fit_temperature, "logistic": fit_logistic, "isotonic": fit_isotonic}
    forecasts = {"raw": values} | {name: cross_fitted(fit, outcomes.ids, values, outcomes.correct) for name, fit in fits.items()}
    forecasts["base_rate"] = cross_fitted(_constant, outcomes.ids, values, outcomes.correct)
    once, found = np.ones((1, len(values))), {}
    for name, forecast in forecasts.items():
        reliability = Reliability(forecast, outcomes.correct)
        found[name] = {"ece": rounded(float(reliability.ece(once)[0])), "brier": rounded(float(reliability.brier(once)[0]))}
    return found


def _constant(_: Sequence[float], correct: Sequence[float]) -> Callable[[float], float]:
    mean = sum(correct) / len(correct)
    return lambda _: mean


def risk(outcomes: Outcomes, values: np.ndarray) -> dict[str, float]:
    """The share of wrong answers among the surest quarter, half, three quarters, and all."""
    coverage, wrong = Failures(-values, outcomes.correct).risk_coverage(np.ones((1, len(values))))
    return {f"{part:.2f}": rounded(float(wrong[0][np.searchsorted(coverage[0], part - 1e-9)])) for part in (0.25, 0.5, 0.75, 1.0)}


def promises(outcomes: Outcomes, values: np.ndarray) -> dict[str, Any]:
    """What one half of the outcomes promises with 90 %, the other having said where to look, and what that other half then shows."""
    tested, found = fold_of(outcomes.ids, 2) == 1, dict[str, Any]()
    for rate in ERROR_RATES:
        try:
            kept = promise_by_halves(values.tolist(), (outcomes.correct == 0).tolist(), tested.tolist(), error_rate=rate)
        except CannotPromise as refusal:
            found[str(rate)] = refusal.message
            continue
        above = outcomes.correct[values >= kept.threshold]
        found[str(rate)] = {"threshold": rounded(kept.threshold), "kept": kept.kept, "wrong": kept.wrong, "of": kept.n}
        found[str(rate)]["all"] = {"share": rounded(len(above) / len(values)), "error_rate": rounded(1 - float(above.mean()))}
    return found


def early(outcomes: Outcomes, after: int, loss: float) -> dict[str, Any]:
    """What giving up in mid-text does, by bounds that were chosen on the other folds' right answers."""
    logprobs = [[value / 1000 for value in row["logprob"]] for row in outcomes.rows]
    correct, fold = outcomes.correct == 1, fold_of(outcomes.ids, FOLDS)
    computed = np.zeros(len(logprobs), int)
    for number in range(FOLDS):
        right = [answer for answer, good, held in zip(logprobs, correct, fold, strict=True) if good and held != number]
        try:
            below = stop_bound(right, after=after, loss=loss)
        except CannotPromise as refusal:
            return {"after": after, "loss": loss, "refused": refusal.message}
        for at in np.flatnonzero(fold == number):
            computed[at] = tokens_computed(logprobs[at], after=after, below=below)
    whole = np.array([len(answer) for answer in logprobs])
    stopped = computed < whole
    return {
        "after": after,
        "loss": loss,
        "below": rounded(stop_bound([a for a, good in zip(logprobs, correct, strict=True) if good], after=after, loss=loss)),
        "right_given_up": rounded(float(stopped[correct].mean())),
        "wrong_given_up": rounded(float(stopped[~correct].mean())),
        "tokens_of_wrong_saved": rounded(1 - float(computed[~correct].sum() / whole[~correct].sum())),
        "long_enough": rounded(float((whole > after).mean())),
    }


def certain_stop(outcomes: Outcomes, values: np.ndarray, signal: Signal, share: float) -> float | None:
    """Of the tokens of answers that do not pass, the share that is saved by stopping where they cannot pass any more.

    The threshold keeps `share` of the answers. None for signals of which that is never known before the end.
    """
    threshold, spent, whole = float(np.quantile(values, 1 - share)), 0, 0
    for row, value in zip(outcomes.rows, values, strict=True):
        if value >= threshold:
            continue
        total, low = 0.0, 0.0
        for number in row["logprob"]:
            total, low, spent = total + number / 1000, min(low, number / 1000), spent + 1
            best = best_possible(signal, logprob_sum=total, lowest=low, max_tokens=MAX_TOKENS[row["group"]])
            if best is None:
                return None
            if best < threshold:
                break
        whole += len(row["logprob"])
    return rounded(1 - spent / whole)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(number) for name, number in value.items()}
    if isinstance(value, tuple | list):
        return [rounded(number) for number in value]
    return round(value, 4) if isinstance(value, float) else str(value)


def gate(path: Path, policy: ConfidencePolicy, output: Path) -> None:
    """What `hybrid route gate` writes, for the model that the outcomes say they are of: it need not be here."""
    found = read_outcome_file(path)
    assert found.head is not None
    card = ModelCard(found.head.model, "", found.head.quantisation, 0, 0, 0, "", found.head.file_hash, 0, "")
    output.write_bytes(calibrate(found.rows, card, policy, found.data_hash).to_json())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    parser.add_argument("--outcomes", type=Path, default=OUTCOMES)
    parser.add_argument("--signal", default="length_corrected", choices=list(SIGNALS))
    parser.add_argument("--gate", type=Path, help="write the gate of this model and signal here")
    options = parser.parse_args()
    policy = msgspec.structs.replace(Policy.default().confidence, signal=options.signal)
    every = read(options.outcomes)
    record: dict[str, Any] = {"model": every.head, "signal": options.signal}
    for name in (*TASK, "both"):
        outcomes = every.of(None if name == "both" else name)
        signals = outcomes.signals(policy)
        chosen = signals[options.signal]
        found = ranking(outcomes, signals, options.signal)
        found |= {"n": len(outcomes.rows), "correct": int(outcomes.correct.sum()), "calibration": calibration(outcomes, chosen)}
        found |= {"risk": risk(outcomes, chosen), "promises": promises(outcomes, chosen)}
        shares = (0.25, 0.5, 0.75)
        found["certain_stop"] = {f"{share:.2f}": certain_stop(outcomes, chosen, options.signal, share) for share in shares}
        found["early"] = [early(outcomes, after, loss) for after in (8, 16, 32) for loss in (0.05, 0.1)]
        for figure, value in found.items():
            record.setdefault(figure, {})[name] = value
    if options.gate:
        gate(options.outcomes, policy, options.gate)
    print(json.dumps(record) if options.json else table(record))


def table(record: dict[str, Any]) -> str:
    sets = [*TASK, "both"]
    lines = [f"{'AUROC':<18}" + "".join(f"{name + ' (' + str(record['n'][name]) + ')':>26}" for name in sets)]
    for signal in record["auroc"]["both"]:
        cells = [f"{record['auroc'][name][signal]:.3f} {record['ci95'][name][signal]}" for name in sets]
        lines.append(f"{signal:<18}" + "".join(f"{cell:>26}" for cell in cells))
    for figure in ("calibration", "risk", "promises", "certain_stop", "early"):
        lines += ["", figure, *(f"  {name}: {json.dumps(record[figure][name])}" for name in sets)]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
