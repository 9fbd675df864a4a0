"""Outcomes come from a file that says of which model they are, or from one that says nothing; a line that is none is named."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hybrid.router.confidence.outcome_file import read_outcome_file
from hybrid.router.confidence.token_signal import TokenSignal
from hybrid.shared_protocol.errors import GateMismatch, InvalidRequest, NotFound

from .test_gate import CARD

HEAD = {"model": "small", "file_hash": CARD.file_hash, "quantisation": CARD.quantisation, "isolation": "whatever"}


def row(name: str = "a", **changes: Any) -> dict[str, Any]:
    numbers = {"logprob": [-20, -1500], "margin": [4000, 0], "entropy": [100, 2500]}
    return {"id": name, "task": "text", "correct": True, "group": "ours", **numbers, **changes}


def write(path: Path, *records: object) -> Path:
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n\n")
    return path


def test_numbers_are_thousandths_of_a_nat(tmp_path: Path) -> None:
    found = read_outcome_file(write(tmp_path / "o.jsonl", row(), row("b", correct=False)))
    assert [(one.id, one.group, one.correct) for one in found.rows] == [("a", "text", True), ("b", "text", False)]
    assert found.rows[0].tokens == [TokenSignal(-0.02, 4.0, 0.1), TokenSignal(-1.5, 0.0, 2.5)]


def test_a_hidden_state_is_base64_of_float32_and_may_be_missing(tmp_path: Path) -> None:
    found = read_outcome_file(write(tmp_path / "o.jsonl", row(hidden="AACAPwAAAMA="), row("b")))
    state = found.rows[0].state
    assert state is not None and state.tolist() == [1.0, -2.0]
    assert found.rows[1].state is None


def test_the_hash_is_of_the_outcomes_alone(tmp_path: Path) -> None:
    with_head, without = (read_outcome_file(write(tmp_path / "o.jsonl", *head, row(), row("b"))) for head in ([HEAD], []))
    assert with_head.data_hash == without.data_hash
    lines = json.dumps(row()) + "\n" + json.dumps(row("b"))
    assert without.data_hash == hashlib.sha256(lines.encode()).hexdigest()


def test_outcomes_of_another_model_are_refused(tmp_path: Path) -> None:
    found = read_outcome_file(write(tmp_path / "o.jsonl", HEAD, row()))
    found.check_model(CARD)
    with pytest.raises(GateMismatch, match=r"of small \(Q4_1, file ffffffffffff\.\.\.\), not of small \(Q8_0"):
        found.check_model(dataclasses.replace(CARD, quantisation="Q8_0"))
    read_outcome_file(write(tmp_path / "p.jsonl", row())).check_model(CARD)  # says nothing


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {},
        {"id": "a"},
        row(task="poetry"),
        row(correct="yes"),
        row(logprob=["x"]),
        row(logprob=[-1]),
        row(logprob=[], margin=[], entropy=[]),
        row(hidden="AAAA"),
        row(hidden=""),
        row(hidden=[1.0]),
    ],
)
def test_a_line_that_is_no_outcome_is_named(tmp_path: Path, wrong: object) -> None:
    with pytest.raises(InvalidRequest, match=r"o\.jsonl:2: "):
        read_outcome_file(write(tmp_path / "o.jsonl", row(), wrong))


def test_no_file_no_outcomes_and_the_same_one_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_outcome_file(tmp_path / "none.jsonl")
    with pytest.raises(InvalidRequest, match="there are none"):
        read_outcome_file(write(tmp_path / "o.jsonl", HEAD))
    with pytest.raises(InvalidRequest, match="same id"):
        read_outcome_file(write(tmp_path / "o.jsonl", row(), row()))


def test_a_line_is_named_by_its_number_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "o.jsonl"
    odd = json.dumps(row("b\u2028c"), ensure_ascii=False)  # JSON lets it stand in a string; it ends no line
    file.write_text("\n".join(["", json.dumps(HEAD), "", odd, "", "{}"]), encoding="utf-8")
    with pytest.raises(InvalidRequest, match=r"o\.jsonl:6: "):
        read_outcome_file(file)
    file.write_text("\n".join([json.dumps(HEAD), odd]), encoding="utf-8")
    assert [one.id for one in read_outcome_file(file).rows] == ["b\u2028c"]
