"""`hybrid route gate`: from outcomes to a file that the policy can name."""

import base64
import json
import random
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result
from hybrid.apps.cli.route import route
from hybrid.router.confidence.gate import load_gate
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.errors import GateMismatch, InvalidRequest
from hybrid.shared_protocol.model import Model


def run(*arguments: str) -> Result:
    return CliRunner().invoke(route, ["gate", *arguments])


def write_outcomes(path: Path, file_hash: str, quantisation: str, *, size: int = 0) -> str:
    """`size`: of the hidden states; 0: there are none."""
    source = random.Random(2)
    lines = [json.dumps({"model": "m", "file_hash": file_hash, "quantisation": quantisation})]
    for number in range(120):
        doubt = source.random()
        numbers = {"logprob": [round(-300 * doubt)] * 10, "margin": [1000] * 10, "entropy": [500] * 10}
        state = np.array([doubt, *(source.random() for _ in range(size - 1))], "<f4").tobytes()
        hidden = {"hidden": base64.b64encode(state).decode()} if size else {}
        lines.append(json.dumps({"id": str(number), "task": "text", "correct": source.random() > doubt, **numbers, **hidden}))
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def outcomes(tiny_llama: Model, tmp_path: Path) -> str:
    return write_outcomes(tmp_path / "outcomes.jsonl", tiny_llama.card.file_hash, tiny_llama.card.quantisation)


def test_it_writes_a_gate_of_this_model_and_tells_what_it_is_worth(
    outcomes: str, tiny_llama: Model, tiny_llama_path: Path, tmp_path: Path
) -> None:
    output = tmp_path / "gate.json"
    told = run("--outcomes", outcomes, "--model", str(tiny_llama_path), "--signal", "mean", "--output", str(output))
    assert told.exit_code == 0, told.output
    gate = load_gate(output, tiny_llama.card, msgspec.structs.replace(Policy.default().confidence, signal="mean"))
    assert gate.calibration_id in told.output
    assert "of 120 right, AUROC 0." in told.output and "at most 40% wrong from" in told.output


def test_programs_get_the_whole_gate(outcomes: str, tiny_llama_path: Path, tmp_path: Path) -> None:
    output = tmp_path / "gate.json"
    told = run("--outcomes", outcomes, "--model", str(tiny_llama_path), "--output", str(output), "--json")
    shown = json.loads(told.stdout)
    assert shown.pop("output") == str(output)
    assert shown == json.loads(output.read_text())
    assert shown["signal"] == Policy.default().confidence.signal


def test_outcomes_of_another_model_are_refused_and_nothing_is_written(tiny_llama_path: Path, tmp_path: Path) -> None:
    other = write_outcomes(tmp_path / "outcomes.jsonl", "0" * 64, "Q4_0")
    output = tmp_path / "gate.json"
    refused = run("--outcomes", other, "--model", str(tiny_llama_path), "--output", str(output))
    assert isinstance(refused.exception, GateMismatch) and not output.exists()


def test_a_signal_that_is_not_made_of_tokens_is_refused(outcomes: str, tiny_llama_path: Path, tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('[confidence]\nsignal = "p_true"\n')
    arguments = ("--outcomes", outcomes, "--model", str(tiny_llama_path), "--output", str(tmp_path / "gate.json"))
    assert isinstance(run(*arguments, "--policy", str(tmp_path / "p.toml")).exception, InvalidRequest)
    assert run(*arguments, "--signal", "p_true").exit_code == 2


def test_a_probe_is_made_with_its_gate_where_there_are_hidden_states(tiny_llama: Model, tiny_llama_path: Path, tmp_path: Path) -> None:
    card, output = tiny_llama.card, tmp_path / "gate.json"
    arguments = ("--model", str(tiny_llama_path), "--signal", "probe", "--output", str(output))
    bare = write_outcomes(tmp_path / "bare.jsonl", card.file_hash, card.quantisation)
    refused = run("--outcomes", bare, *arguments)
    assert isinstance(refused.exception, InvalidRequest) and "no hidden state" in str(refused.exception) and not output.exists()
    told = run("--outcomes", write_outcomes(tmp_path / "outcomes.jsonl", card.file_hash, card.quantisation, size=8), *arguments)
    assert told.exit_code == 0, told.output
    assert "probe: of 8 numbers of the hidden state and the tokens' certainty, fitted on 60 other answers" in told.output
    gate = load_gate(output, card, msgspec.structs.replace(Policy.default().confidence, signal="probe"))
    assert gate.groups["text"].n == 60
