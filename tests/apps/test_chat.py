"""`hybrid chat`, piped and on a terminal."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from hybrid.apps.cli.chat import _where
from hybrid.shared_protocol.openai import HybridInfo
from hybrid.tests.apps.test_run import ENDLESS, REACHING
from hybrid.tests.support.gguf_writer import write_tiny_llama
from hybrid.tests.support.terminal import HYBRID, Terminal

FIXED = ("--max-tokens", "8", "--seed", "5", "--threads", "1")


def chat(home: Path, *arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
    told = {**os.environ, "HYBRID_HOME": str(home)}
    return subprocess.run([*HYBRID, "chat", *arguments], input=stdin, capture_output=True, text=True, env=told, check=False)


def turns(path: Path) -> list[tuple[str, str]]:
    return [(turn["role"], turn["content"]) for turn in json.loads(path.read_text())["messages"]]


def test_messages_may_be_piped_in_and_the_conversation_grows(tiny_llama_path: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    typed = f'hello\\\nthere\n"""\nline one\nline two\n"""\n/save {first}\n/reset\nhello\\\nthere\n/save {second}\n/exit\nnever sent\n'
    run = chat(tmp_path, str(tiny_llama_path), *FIXED, "--system", "Be brief.", stdin=typed)
    assert run.returncode == 0
    saved, again = turns(first), turns(second)
    assert [role for role, _ in saved] == ["system", "user", "assistant", "user", "assistant"]
    assert [saved[at][1] for at in (0, 1, 3)] == ["Be brief.", "hello\nthere", "line one\nline two"]
    assert again == saved[:3]  # /reset keeps what the system says, and the seed says the same
    assert run.stdout == "".join(text.removesuffix("\n") + "\n" for text in (saved[2][1], saved[4][1], again[2][1]))
    tags = [line for line in run.stderr.splitlines() if line.startswith("[")]
    assert len(tags) == 3 and all(tag.startswith("[edge, simple: 8 tokens") for tag in tags)
    assert "a new conversation" in run.stderr
    assert ">>>" not in run.stdout + run.stderr  # no prompts where nobody types
    assert not (tmp_path / "chat_history").exists()


def test_what_is_no_command_is_said_and_not_sent(tiny_llama_path: Path, tmp_path: Path) -> None:
    (tmp_path / "there.json").write_text("mine")
    run = chat(tmp_path, str(tiny_llama_path), *FIXED, stdin=f"/what\n/save\n/save {tmp_path}/there.json\n/help\n\n  \n")
    assert (run.returncode, run.stdout) == (0, "")
    assert "/what is no command; /help lists them" in run.stderr
    assert "/save needs a file" in run.stderr
    assert "there.json is not written: File exists" in run.stderr
    assert (tmp_path / "there.json").read_text() == "mine"
    assert "/reset" in run.stderr


@pytest.mark.parametrize("template", [ENDLESS, REACHING])
def test_a_hostile_template_ends_in_a_typed_error(tmp_path: Path, template: str) -> None:
    model = write_tiny_llama(tmp_path / "hostile.gguf", tokenizer__chat_template=template)
    run = chat(tmp_path, str(model), *FIXED, stdin="hello\nhello again\n")
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith("hybrid: ") and "template" in line


def test_a_cloud_that_is_gone_leaves_the_turn_to_the_device_and_says_so(tiny_llama_path: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text("[complexity]\ncascade_from = 0.0\nhard_from = 0.0\n")
    options = ("--cloud", "http://127.0.0.1:9", "--policy", str(policy))
    run = chat(tmp_path, str(tiny_llama_path), *FIXED, *options, stdin="hello\n")
    assert run.returncode == 0, run.stderr
    assert "[edge, cloud_unreachable: 8 tokens" in run.stderr
    broken = chat(tmp_path, str(tiny_llama_path), "--policy", str(tmp_path / "absent.toml"), stdin="hello\n")
    assert broken.returncode == 5


def test_a_person_has_prompts_a_history_and_an_interrupt_that_ends_the_answer_only(tiny_llama_path: Path, tmp_path: Path) -> None:
    told = {"HYBRID_HOME": str(tmp_path), "HYBRID_BACKEND": "reference"}  # slow enough to be interrupted
    with Terminal("chat", str(tiny_llama_path), "--max-tokens", "450", "--temperature", "0", environment=told) as terminal:
        terminal.read_until("tiny on this device (native). /help says what can be typed.")
        terminal.read_until(">>> ")
        terminal.type("one\\\n")
        terminal.read_until("... ")
        terminal.type("two\n")
        terminal.read_until("two\r\n")
        while not terminal.read_some().strip():
            pass
        terminal.type("\x03")
        terminal.read_until("[stopped]")
        terminal.read_until(">>> ")
        terminal.type("never said")
        terminal.read_until("never said")
        terminal.press_until("\x03", "/exit or Ctrl-D ends the conversation")
        terminal.read_until(">>> ")
        terminal.type(f"/save {tmp_path}/saved.json\n")
        terminal.read_until("written to ")
        terminal.read_until(">>> ")
        terminal.type("/nothing\n")
        terminal.read_until("is no command")
        terminal.read_until(">>> ")
        terminal.type("\x04")
        assert terminal.end() == 0
    (asked, answered) = turns(tmp_path / "saved.json")
    assert asked == ("user", "one\ntwo")
    assert answered[0] == "assistant" and answered[1]
    history = tmp_path / "chat_history"
    assert "two" in history.read_text().splitlines()
    assert history.stat().st_mode & 0o077 == 0


def test_an_error_does_not_end_a_conversation_with_a_person(tiny_llama_path: Path, tmp_path: Path) -> None:
    told = {"HYBRID_HOME": str(tmp_path)}
    with Terminal("chat", str(tiny_llama_path), *FIXED, "--no-history", environment=told) as terminal:
        terminal.read_until(">>> ")
        terminal.type("w" * 2000 + "\n")
        terminal.read_until("hybrid: this request needs ")
        terminal.read_until(">>> ")
        terminal.type("hello\n")
        terminal.read_until("[edge, simple: 8 tokens")
        terminal.read_until(">>> ")
        terminal.type("/exit\n")
        assert terminal.end() == 0
    assert not (tmp_path / "chat_history").exists()


def test_a_turn_tells_what_was_redacted_without_its_values() -> None:
    info = HybridInfo(route="cloud", reason="redacted", bytes_sent=1280, redacted={"phone": 1, "email": 2})
    assert _where(info) == "cloud, redacted, placeholders for 2 email, 1 phone, 1,280 bytes sent"
