"""A gate judges the model that it was calibrated for, and no other."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hybrid.router.calibration import Isotonic, Logistic
from hybrid.router.complexity.complexity import complexity
from hybrid.router.confidence.gate import Gate, GroupGate, Promise, load_gate, task_group
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import ConfidencePolicy
from hybrid.router.request import RouteRequest
from hybrid.shared_protocol.errors import ConfigError, GateMismatch
from hybrid.shared_protocol.model_card import ModelCard

POLICY = Policy.default().confidence
CARD = ModelCard("small", "llama", "Q4_1", 10, 512, 100, "ab", "f" * 64, 1000, "MIT")
TEXT = GroupGate(map=Isotonic((0.2, 0.8), (0.1, 0.9)), n=100, correct=50, auroc=0.7, ece_before=0.3, ece_after=0.05)
GATE = Gate(
    format="hybrid-gate-1",
    model="small",
    file_hash="f" * 64,
    quantisation="Q4_1",
    signal=POLICY.signal,
    quantile=POLICY.quantile,
    quantile_weight=POLICY.quantile_weight,
    data_hash="d" * 64,
    groups={
        "text": TEXT,
        "code": GroupGate(
            map=Logistic(4.0, -2.0),
            n=60,
            correct=30,
            auroc=0.66,
            ece_before=0.4,
            ece_after=0.1,
            promises=(Promise(0.3, 0.1, 0.6, 40, 4, 60),),
        ),
    },
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gate.json"
    path.write_bytes(GATE.to_json())
    return path


def changed(**changes: Any) -> ConfidencePolicy:
    return msgspec.structs.replace(POLICY, **changes)


def test_a_gate_comes_back_as_it_was_written_and_says_its_calibration(file: Path) -> None:
    gate = load_gate(file, CARD, POLICY)
    assert gate == GATE.sealed()
    assert len(gate.calibration_id) == 16
    assert json.loads(file.read_text())["groups"]["text"]["map"]["type"] == "isotonic"


@pytest.mark.parametrize(
    ("card", "policy", "named"),
    [
        ({"file_hash": "e" * 64}, {}, "the file ffffffffffff... (small), this is eeeeeeeeeeee..."),
        ({"quantisation": "Q8_0"}, {}, "the quantisation Q4_1 (small), this is Q8_0"),
        ({}, {"signal": "entropy"}, f"the signal {POLICY.signal} (small), this is entropy"),
        ({}, {"quantile": 0.3}, "the quantile"),
        ({}, {"quantile_weight": 0.0}, "the quantile weight"),
    ],
)
def test_one_of_another_model_or_quantisation_is_refused_by_name(file: Path, card: Any, policy: Any, named: str) -> None:
    with pytest.raises(GateMismatch) as refused:
        load_gate(file, dataclasses.replace(CARD, **card), changed(**policy))
    assert named in str(refused.value)
    assert (refused.value.code, refused.value.exit_code) == ("gate_mismatch", 5)


def test_numbers_changed_by_hand_are_refused(file: Path) -> None:
    shown = json.loads(file.read_text())
    shown["groups"]["code"]["map"]["intercept"] = 2.0
    file.write_text(json.dumps(shown))
    with pytest.raises(ConfigError, match="not those of calibration"):
        load_gate(file, CARD, POLICY)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '{"format": "hybrid-gate-2"}', "[" * 5000, GATE.to_json().decode().replace('"auroc": 0.7', '"auroc": 7')],
)
def test_what_is_no_gate_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match="not a gate") as refused:
        load_gate(file, CARD, POLICY)
    assert not isinstance(refused.value, GateMismatch)


def test_a_gate_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.json: No such file"):
        load_gate(tmp_path / "no.json", CARD, POLICY)


def test_any_other_number_makes_another_calibration() -> None:
    other = msgspec.structs.replace(GATE, groups={"text": msgspec.structs.replace(TEXT, n=101)})
    assert other.sealed().calibration_id != GATE.sealed().calibration_id == GATE.sealed().sealed().calibration_id


@pytest.mark.parametrize(
    ("prompt", "group"),
    [
        ("Write a Python function that reverses a string.", "code"),
        ("Why does this fail?\n```python\ndef f(x):\n    return x\n```", "code"),
        ("What is the capital of France?", "text"),
        ("Compute 12 * 7 + 5.", "text"),
    ],
)
def test_a_task_s_group_is_read_off_the_request(prompt: str, group: str) -> None:
    assert task_group(complexity(RouteRequest.of(prompt))) == group
