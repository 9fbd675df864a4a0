"""A gate is made from outcomes, and what stands in it holds for what it was not made from."""

import random
from pathlib import Path

import msgspec
import pytest
from hybrid.router.confidence.calibrate import Judged, calibrate
from hybrid.router.confidence.gate import load_gate
from hybrid.router.confidence.judgement import judge
from hybrid.router.confidence.signals import confidence
from hybrid.router.confidence.token_signal import TokenSignal
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import InvalidRequest

from .test_gate import CARD

POLICY = Policy.default().confidence


def outcomes(source: random.Random, number: int) -> list[Judged]:
    """Answers of 20 tokens, right the more often the surer their tokens are: always where these are certain."""
    rows = []
    for at in range(number):
        doubt = source.random()
        tokens = [TokenSignal(-0.2 * doubt * source.random(), 2.0, 0.1) for _ in range(20)]
        rows.append(Judged(f"{number}/{at}", "text", source.random() > doubt, tokens))
    return rows


def test_its_probabilities_hold_for_answers_that_it_has_not_seen(tmp_path: Path) -> None:
    source = random.Random(3)
    gate = calibrate(outcomes(source, 800), CARD, POLICY, "d" * 64)
    path = tmp_path / "gate.json"
    path.write_bytes(gate.to_json())
    read = load_gate(path, CARD, POLICY)
    assert read == gate
    group = gate.groups["text"]
    assert (group.n, len(gate.calibration_id)) == (800, 16)
    assert group.ece_after < 0.08 < group.ece_before
    assert group.auroc == pytest.approx(0.83, abs=0.05)  # 5/6: two doubts, the right answer's the smaller
    fresh = [(judge(confidence(row.tokens, POLICY), POLICY, gate, "text").confidence, row.correct) for row in outcomes(source, 800)]
    for low in (0.0, 0.25, 0.5, 0.75):
        known = [(told, right) for told, right in fresh if told is not None and low <= told < low + 0.25]
        assert sum(told for told, _ in known) / len(known) == pytest.approx(sum(right for _, right in known) / len(known), abs=0.09)


def test_its_promises_hold_for_answers_that_it_has_not_seen() -> None:
    source = random.Random(8)
    gate, fresh = calibrate(outcomes(source, 800), CARD, POLICY, "d" * 64), outcomes(source, 3000)
    promises = gate.groups["text"].promises
    assert [promise.error_rate for promise in promises] == [0.2, 0.3, 0.4]  # for .05 and .1 it saw too few
    for promise in promises:
        kept = [row.correct for row in fresh if (confidence(row.tokens, POLICY) or 0.0) >= promise.threshold]
        assert len(kept) > 30
        assert 1 - sum(kept) / len(kept) <= promise.error_rate


def test_of_right_answers_it_gives_up_as_few_as_it_says() -> None:
    stop = calibrate(outcomes(random.Random(8), 800), CARD, POLICY, "d" * 64).groups["text"].stop
    assert stop is not None and stop.loss == 0.05 and 0.8 < stop.below < 1


@pytest.mark.parametrize("right", [True, False])
def test_outcomes_that_are_all_alike_or_too_few_make_no_gate(right: bool) -> None:
    alike = [Judged(str(at), "text", right, [TokenSignal(-0.1, 1.0, 0.1)]) for at in range(50)]
    for rows in (alike, outcomes(random.Random(1), 19)):
        with pytest.raises(InvalidRequest, match="right of"):
            calibrate(rows, CARD, POLICY, "d" * 64)


def test_an_answer_without_tokens_is_named() -> None:
    with pytest.raises(InvalidRequest, match="'empty'"):
        calibrate([*outcomes(random.Random(1), 30), Judged("empty", "text", True, [])], CARD, POLICY, "d" * 64)


def test_a_signal_that_is_not_made_of_tokens_makes_no_gate() -> None:
    with pytest.raises(InvalidRequest, match="p_true is not made of"):
        calibrate(outcomes(random.Random(1), 30), CARD, msgspec.structs.replace(POLICY, signal="p_true"), "d" * 64)
