"""`hybrid run` as a process: what comes where, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hybrid.apps.cli.answer_options import RUNTIMES
from hybrid.edge import open_runtime
from hybrid.edge.native import NativeRuntime
from hybrid.edge.session import Session
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.gguf_writer import write_tiny_llama
from hybrid.tests.support.terminal import HYBRID, Terminal

FIXED = ("--max-tokens", "12", "--seed", "5", "--threads", "1")
ENDLESS = "{% for i in range(1000000000) %}{% endfor %}"
REACHING = "{{ messages.__class__.__mro__ }}"


def run(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[bytes]:
    told = {**os.environ, **environment}
    return subprocess.run([*HYBRID, "run", *arguments], input=stdin.encode(), capture_output=True, env=told, check=False)


@pytest.fixture(scope="module")
def expected(tiny_llama: Model) -> str:
    session = Session(NativeRuntime(tiny_llama, threads=1), tiny_llama)
    params = SamplingParams(temperature=1.0, seed=5, max_tokens=12)
    text = "".join(chunk.text for chunk in session.chat([{"role": "user", "content": "what do you know?"}], params))
    session.held.close()
    return text


def test_the_answer_goes_to_stdout_and_where_it_was_computed_to_stderr(tiny_llama_path: Path, expected: str) -> None:
    asked = run(str(tiny_llama_path), "what do you know?", *FIXED)
    assert asked.returncode == 0
    assert asked.stdout.decode() == expected.removesuffix("\n") + "\n"
    (tag,) = asked.stderr.decode().splitlines()
    assert tag.startswith("[device, native (") and "seed 5" in tag and "12 tokens" in tag and tag.endswith("cut at its length]")


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_a_prompt_may_be_piped_in(tiny_llama_path: Path, expected: str, arguments: tuple[str, ...]) -> None:
    asked = run(str(tiny_llama_path), *arguments, *FIXED, "--json", stdin="what do you know?\n")
    found = json.loads(asked.stdout)
    assert asked.stderr == b""
    assert found["text"] == expected
    assert (found["model"], found["runtime"], found["seed"]) == ("tiny", "native", 5)
    assert (found["finish_reason"], found["completion_tokens"]) == ("length", 12)
    assert found["prompt_tokens"] > 12
    assert set(found) >= {"kernel_id", "load_s", "first_token_s", "tokens_per_s"}


def test_llama_cpp_answers_when_it_is_chosen(tiny_llama_path: Path) -> None:
    asked = run(str(tiny_llama_path), "hello", *FIXED, "--json", HYBRID_RUNTIME="llama_cpp")
    found = json.loads(asked.stdout)
    assert found["runtime"] == "llama_cpp"
    assert found["kernel_id"].startswith("llama.cpp:")
    assert found["completion_tokens"] == 12
    assert RUNTIMES == open_runtime.RUNTIMES


def test_a_simulated_chip_answers_and_what_it_would_have_taken_is_said(tiny_llama_path: Path) -> None:
    asked = run(str(tiny_llama_path), "hello", *FIXED, "--runtime", "npu", "--target", "systolic-32", "--smooth", "--json")
    found = json.loads(asked.stdout)
    assert found["runtime"] == "npu"
    assert found["kernel_id"].startswith("npu-systolic-32-w8a8-smooth-")
    assert found["completion_tokens"] == 12
    assert set(found["simulated"]) == {"cycles", "bytes", "joules", "runs", "seconds", "decode_tokens_per_s"}
    assert found["simulated"]["runs"] >= 12 and found["simulated"]["seconds"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("none", "hello"), 3, "'none'"),
        (("MODEL", "  \n"), 2, "the prompt is empty"),
        (("MODEL", "hello", "--runtime", "other"), 2, "'other' is not one of 'native', 'llama_cpp'"),
        (("MODEL", "hello", "--runtime", "llama_cpp"), 5, "HYBRID_LIBLLAMA names /nonexistent"),
        (("MODEL", "hello", "--target", "rk3588"), 5, "the runtime 'native' has none"),
        (("MODEL", "hello", "--smooth"), 5, "the runtime 'native' compiles nothing"),
        (("MODEL", "hello", "--runtime", "npu", "--target", "rk3589"), 5, "did you mean rk3588"),
        (("MODEL", "hello", "--context", "513"), 2, "the model's 512 tokens"),
        (("MODEL", "hello", "--max-tokens", "600"), 2, "the limit is 512"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_exit_code(
    tiny_llama_path: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    told = [str(tiny_llama_path) if word == "MODEL" else word for word in arguments]
    asked = run(*told, HYBRID_HOME=str(tmp_path), HYBRID_LIBLLAMA="/nonexistent")
    assert (asked.returncode, asked.stdout) == (code, b"")
    assert says in asked.stderr.decode().splitlines()[-1]
    assert b"Traceback" not in asked.stderr


@pytest.mark.parametrize("template", [ENDLESS, REACHING])
def test_a_hostile_template_ends_in_a_typed_error(tmp_path: Path, template: str) -> None:
    model = write_tiny_llama(tmp_path / "hostile.gguf", tokenizer__chat_template=template)
    asked = run(str(model), "hello")
    assert (asked.returncode, asked.stdout) == (2, b"")
    (line,) = asked.stderr.decode().splitlines()
    assert line.startswith("hybrid: ") and "template" in line


def test_nobody_who_reads_on_is_no_fault_of_ours(tiny_llama_path: Path) -> None:
    asked = subprocess.Popen(
        [*HYBRID, "run", str(tiny_llama_path), "hello", "--max-tokens", "400"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert asked.stdout is not None
    assert asked.stderr is not None
    asked.stdout.close()
    with asked.stderr:
        told = asked.stderr.read().decode()
    assert asked.wait(60) == 1
    assert "Traceback" not in told and "Errno" not in told and "Exception" not in told


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_empty_ones(tiny_llama_path: Path, closed: str) -> None:
    command = " ".join([*HYBRID, "run", str(tiny_llama_path), "hello", *FIXED, closed])
    asked = subprocess.run(["sh", "-c", command], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert asked.returncode == 0
    assert bool(asked.stdout) == (">&-" not in closed.replace("2>&-", "")) and bool(asked.stderr) == ("2>&-" not in closed)
    unasked = subprocess.run(["sh", "-c", f"{' '.join([*HYBRID, 'run', str(tiny_llama_path)])} <&-"], capture_output=True, check=False)
    assert unasked.returncode == 2 and b"the prompt is empty" in unasked.stderr


def test_an_interrupt_ends_it_with_130_and_what_was_written_stays(tiny_llama_path: Path) -> None:
    told = {**os.environ, "HYBRID_BACKEND": "reference"}  # slow enough to be interrupted
    asked = subprocess.Popen(
        [*HYBRID, "run", str(tiny_llama_path), "hello", "--max-tokens", "450", "--temperature", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=told,
    )
    assert asked.stdout is not None
    assert asked.stdout.read(1)
    asked.send_signal(signal.SIGINT)
    out, err = asked.communicate(timeout=60)
    assert asked.returncode == 130
    assert out.endswith(b"\n")
    assert b"interrupted]" in err and b"Traceback" not in err


def test_a_person_who_gives_no_prompt_is_told_so(tiny_llama_path: Path) -> None:
    with Terminal("run", str(tiny_llama_path), environment={}) as terminal:
        terminal.read_until("give a PROMPT, or pipe one in")
        assert terminal.end() == 2


@pytest.mark.parametrize("command", ["run", "chat"])
def test_a_piped_text_that_is_no_utf_8_is_refused_and_not_changed(tiny_llama_path: Path, tmp_path: Path, command: str) -> None:
    told = {**os.environ, "HYBRID_HOME": str(tmp_path)}
    asked = subprocess.run([*HYBRID, command, str(tiny_llama_path), *FIXED], input=b"caf\xe9 au lait\n", capture_output=True, env=told)
    assert (asked.returncode, asked.stdout) == (2, b"")
    assert b"not UTF-8: invalid continuation byte at byte 3" in asked.stderr
    assert b"caf" not in asked.stderr
