"""What the SDK records of its decisions, where it was asked to."""

import os
from pathlib import Path

import pytest
from hybrid.edge.client.recorder import Recorder
from hybrid.router.evaluate.recording import read_records, replay_records
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.scripted_client import TO_EDGE, ask, client_of, well

PRIVATE = [{"role": "user", "content": "mail swordfish@example.com"}]


async def test_each_answer_leaves_a_line_without_text(smollm2: Model, tmp_path: Path) -> None:
    path = tmp_path / "decisions.jsonl"
    async with client_of(smollm2, TO_EDGE, well, record=path, user="annabel", wall=lambda: 7.0) as (client, _):
        await ask(client)
        await ask(client, PRIVATE)
        await ask(client)
    first, private, again = read_records(path)
    assert (first.route, first.reason, private.reason, private.kinds) == ("edge", "simple", "private", {"email": 1})
    assert first.prompt == again.prompt != private.prompt and first.time == 7.0
    assert "swordfish" not in path.read_text() and "annabel" not in path.read_text()
    everything_hard = Policy.parse("[complexity]\ncascade_from = 0.0\nhard_from = 0.0")
    assert replay_records([first, private], everything_hard).moves == {"edge -> cloud": 1}


def test_a_key_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "decisions.jsonl", os.open
    seen: list[int] = []

    def slow(name: str | Path, flags: int, mode: int = 0o777, **more: int) -> int:
        """What another process would find as soon as a file is opened: a whole key, or none."""
        opened = real(name, flags, mode, **more)
        key = Path(f"{path}.key")
        seen.append(key.stat().st_size if key.exists() else -1)
        return opened

    monkeypatch.setattr(os, "open", slow)
    Recorder(path, lambda: 0.0).close()
    monkeypatch.undo()
    assert seen and set(seen) <= {-1, 32}
    key = Path(f"{path}.key").read_bytes()
    Recorder(path, lambda: 0.0).close()
    assert Path(f"{path}.key").read_bytes() == key
    assert sorted(file.name for file in tmp_path.iterdir()) == ["decisions.jsonl", "decisions.jsonl.key"]
