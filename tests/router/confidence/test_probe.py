"""A probe reads the hidden state behind an answer's last token: what it is made of, what it holds for, and what it refuses."""

import base64
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hybrid.router.confidence.calibrate import Judged, calibrate
from hybrid.router.confidence.fit_probe import fit_probe
from hybrid.router.confidence.gate import Gate, check_states, load_gate
from hybrid.router.confidence.probe import Probe, certainty
from hybrid.router.confidence.token_signal import TokenSignal
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import ConfigError, GateMismatch, InvalidRequest

from .test_gate import CARD, GATE

POLICY = msgspec.structs.replace(Policy.default().confidence, signal="probe")
SIZE = 24
PROBE = Probe(weights=np.array([2.0, -1.0], "<f4").tobytes(), certainty=0.5, bias=0.25, ridge=1.0, n=80, correct=40)


def tokens(*logprobs: float) -> list[TokenSignal]:
    return [TokenSignal(logprob, 1.0, 1.0) for logprob in logprobs]


def answers(number: int, seed: int, *, told: float = 1.0) -> list[Judged]:
    """Right or wrong by a direction of the hidden state, as far as it is `told` there, and by the certainty of the tokens."""
    random = np.random.default_rng(seed)
    direction = np.random.default_rng(0).normal(size=SIZE)
    rows = []
    for at in range(number):
        state, logprob = random.normal(size=SIZE) * 5 + 3, -random.exponential()
        odds = told * float(direction @ (state - 3)) / 5 + 2 * (logprob + 0.7)
        right = bool(random.random() < 1 / (1 + math.exp(-odds)))
        rows.append(Judged(f"{seed}/{at}", "text", right, tokens(logprob), state.astype(np.float32)))
    return rows


def auroc(values: list[float], rows: list[Judged]) -> float:
    right, wrong = ([value for value, row in zip(values, rows, strict=True) if row.correct is good] for good in (True, False))
    return sum((a > b) + 0.5 * (a == b) for a in right for b in wrong) / (len(right) * len(wrong))


def value(probe: Probe, row: Judged) -> float:
    found = probe(row.state, row.tokens)
    assert found is not None
    return found


def test_it_is_a_weighted_sum_in_log_odds() -> None:
    sure = (-0.3 - 0.1) / math.sqrt(2)
    assert certainty(tokens(-0.3, -0.1)) == pytest.approx(sure)
    odds = 0.25 + 0.5 * sure + 2 * 0.75 - 1 * -0.5
    assert PROBE(np.array([0.75, -0.5], np.float32), tokens(-0.3, -0.1)) == pytest.approx(1 / (1 + math.exp(-odds)))


@pytest.mark.parametrize(
    ("state", "logprobs"),
    [
        (None, [-0.1]),
        ([0.0, 0.0, 0.0], [-0.1]),
        ([0.0, 0.0], []),
        ([0.0, 0.0], [-math.inf]),
        ([math.nan, 0.0], [-0.1]),
        ([math.inf, 0.0], [-0.1]),
    ],
)
def test_without_what_it_reads_it_says_nothing(state: list[float] | None, logprobs: list[float]) -> None:
    assert PROBE(None if state is None else np.array(state, np.float32), tokens(*logprobs)) is None


def test_its_weights_are_those_of_the_normal_equations_in_which_certainty_is_free() -> None:
    rows = answers(60, 9)
    states = np.array([row.state for row in rows], float)
    sure, right = np.array([row.tokens[0].logprob for row in rows]), np.array([float(row.correct) for row in rows])
    probe = fit_probe([row.id for row in rows], states, sure, right)
    z = (states - states.mean(axis=0)) / states.std(axis=0)
    columns = np.column_stack([np.ones(60), sure, z])
    penalty = np.diag([0.0, 0.0, *[probe.ridge * SIZE] * SIZE])
    _, slope, *weights = np.linalg.solve(columns.T @ columns + penalty, columns.T @ right)
    expected = np.array(weights) / states.std(axis=0) / slope
    np.testing.assert_allclose(np.frombuffer(probe.weights, "<f4") / probe.certainty, expected, rtol=1e-5)
    assert np.mean([value(probe, row) for row in rows]) == pytest.approx(right.mean(), abs=0.05)


def test_it_tells_right_from_wrong_where_it_has_not_seen_them_and_better_than_certainty_alone() -> None:
    gate, fresh = calibrate(answers(600, 1), CARD, POLICY, "d" * 64), answers(600, 2)
    assert isinstance(gate.probe, Probe)
    by_probe = auroc([value(gate.probe, row) for row in fresh], fresh)
    assert by_probe > 0.9 > 0.7 > auroc([row.tokens[0].logprob for row in fresh], fresh)
    group = gate.groups["text"]
    assert group.auroc == pytest.approx(by_probe, abs=0.04)
    assert (gate.probe.n, group.n) == (300, 300)  # nothing that the probe has seen says how good it is
    assert group.ece_after < 0.08


def test_no_answer_is_in_both_the_probe_and_its_gate() -> None:
    rows = answers(100, 3)
    gate = calibrate(rows, CARD, POLICY, "d" * 64)
    assert isinstance(gate.probe, Probe)
    assert (gate.probe.n, gate.groups["text"].n) == (50, 50)
    for row in rows[:16]:
        other = calibrate(flipped(rows, row), CARD, POLICY, "d" * 64)
        probed, counted = other.probe != gate.probe, other.groups["text"].correct != gate.groups["text"].correct
        assert probed != counted, row.id


def flipped(rows: list[Judged], row: Judged) -> list[Judged]:
    return [dataclasses.replace(one, correct=not one.correct) if one is row else one for one in rows]


def test_where_states_say_nothing_it_says_little_more_than_certainty() -> None:
    gate, fresh = calibrate(answers(600, 4, told=0.0), CARD, POLICY, "d" * 64), answers(600, 5, told=0.0)
    assert isinstance(gate.probe, Probe)
    alone = auroc([row.tokens[0].logprob for row in fresh], fresh)
    assert alone - 0.05 < auroc([value(gate.probe, row) for row in fresh], fresh) < alone + 0.03


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"correct": 1.0}, "40 right of 40 answers to fit a probe on"),
        ({"states": np.nan}, "must be finite"),
        ({"certainty": -np.inf}, "must be finite"),
        ({"n": 39}, "of 39 answers to fit a probe on"),
        ({"states": 0.0, "certainty": -1.0}, "no better than chance"),
    ],
)
def test_answers_that_make_no_probe_are_refused(changes: dict[str, Any], problem: str) -> None:
    rows = answers(changes.get("n", 40), 6)
    states = np.array([row.state for row in rows], float)
    sure, right = np.array([row.tokens[0].logprob for row in rows]), np.array([float(row.correct) for row in rows])
    states, sure, right = (
        given if name not in changes else np.full_like(given, changes[name])
        for name, given in (("states", states), ("certainty", sure), ("correct", right))
    )
    with pytest.raises(InvalidRequest, match=problem):
        fit_probe([row.id for row in rows], states, sure, right)


def test_an_answer_without_a_state_like_the_others_is_named() -> None:
    rows = answers(100, 7)
    for state in (None, np.zeros(SIZE + 1, np.float32)):
        rows[40:60] = [dataclasses.replace(row, id=f"odd {at}", state=state) for at, row in enumerate(rows[40:60])]
        with pytest.raises(InvalidRequest, match="'odd "):
            calibrate(rows, CARD, POLICY, "d" * 64)


def probe_gate(**changes: Any) -> Gate:
    return msgspec.structs.replace(GATE, **{"signal": "probe", "probe": PROBE} | changes)


def test_a_probe_comes_back_with_its_gate_and_is_refused_to_another_model(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    path.write_bytes(probe_gate().to_json())
    assert load_gate(path, CARD, POLICY).probe == PROBE
    for changes in ({"file_hash": "e" * 64}, {"quantisation": "Q8_0"}):
        with pytest.raises(GateMismatch, match="calibrated for the"):
            load_gate(path, dataclasses.replace(CARD, **changes), POLICY)
    with pytest.raises(GateMismatch, match="the signal probe"):
        load_gate(path, CARD, Policy.default().confidence)


@pytest.mark.parametrize("torn", ["", "AAAA", "AAAAAAA=", "no base64"])
def test_weights_that_are_no_numbers_are_no_gate(tmp_path: Path, torn: str) -> None:
    shown = json.loads(probe_gate().to_json())
    shown["probe"]["weights"] = torn
    (tmp_path / "gate.json").write_text(json.dumps(shown))
    with pytest.raises(ConfigError, match="not a gate"):
        load_gate(tmp_path / "gate.json", CARD, POLICY)


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": np.array([math.nan, 1.0], "<f4").tobytes()},
        {"weights": np.array([math.inf, 1.0], "<f4").tobytes()},
        {"bias": math.nan},
        {"certainty": math.inf},
    ],
)
def test_a_probe_that_could_say_nothing_of_any_answer_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the numbers of a probe are finite"):
        msgspec.structs.replace(PROBE, **changes)


def test_a_file_with_such_a_probe_is_no_gate(tmp_path: Path) -> None:
    shown = json.loads(probe_gate().to_json())
    shown["probe"]["weights"] = base64.b64encode(np.array([math.nan, 1.0], "<f4").tobytes()).decode()
    (tmp_path / "gate.json").write_text(json.dumps(shown))
    with pytest.raises(ConfigError, match=r"not a gate: .*finite"):
        load_gate(tmp_path / "gate.json", CARD, POLICY)


def test_a_kind_of_task_that_only_the_probe_has_seen_is_refused_and_not_lost() -> None:
    rows = answers(100, 3)
    for at in range(4):  # in the probe's half or in the gate's, as its name falls
        odd = dataclasses.replace(rows[0], id=f"odd {at}", group="code")
        with pytest.raises(InvalidRequest, match="answers about code"):
            calibrate([*rows, odd], CARD, POLICY, "d" * 64)


def test_a_weight_changed_by_hand_is_refused(tmp_path: Path) -> None:
    shown = json.loads(probe_gate().to_json())
    shown["probe"]["certainty"] = 5.0
    (tmp_path / "gate.json").write_text(json.dumps(shown))
    with pytest.raises(ConfigError, match="not those of calibration"):
        load_gate(tmp_path / "gate.json", CARD, POLICY)


def test_the_signal_and_the_probe_come_together() -> None:
    for changes in ({"probe": msgspec.UNSET}, {"signal": "minimum"}):
        with pytest.raises(ValueError, match="the signal probe comes with a probe"):
            probe_gate(**changes)


@pytest.mark.parametrize(
    ("gate", "size", "problem"),
    [
        (probe_gate(), None, "the runtime of small gives none"),
        (probe_gate(), 3, "reads hidden states of 2 numbers, those of small have 3"),
        (None, 2, "needs a gate that holds a probe"),
    ],
)
def test_why_a_probe_cannot_be_asked_here_is_said(gate: Gate | None, size: int | None, problem: str) -> None:
    with pytest.raises(GateMismatch, match=problem):
        check_states(gate, POLICY, CARD, size)


def test_where_nobody_asks_a_probe_states_are_not_needed() -> None:
    check_states(probe_gate(), POLICY, CARD, 2)
    check_states(GATE, Policy.default().confidence, CARD, None)


def test_a_policy_that_names_a_probe_and_no_gate_contradicts_itself() -> None:
    with pytest.raises(ConfigError, match=r'policy:2: confidence.signal is "probe", but confidence.gate names no gate') as refused:
        Policy.parse('[confidence]\nsignal = "probe"\n')
    assert refused.value.param == "confidence.signal"
    assert Policy.parse('[confidence]\nsignal = "probe"\ngate = "g"\n').confidence.signal == "probe"
