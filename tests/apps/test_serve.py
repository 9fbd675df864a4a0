"""`hybrid serve` as a process: how it says that it is ready, how it ends, how it refuses."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from hybrid.tests.support.hf_writer import write_tiny_folder, write_tokenizer

HYBRID = [sys.executable, "-m", "hybrid.apps.cli.main"]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("HYBRID_API_KEYS_FILE", "HYBRID_ADMIN_KEY")}
    return kept | {"HYBRID_BACKEND": "reference"} | more


def call(url: str, body: object = None, **headers: str) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=60) as response:
        raw: bytes = response.read()
        return raw


def test_it_says_where_it_listens_answers_and_ends_with_zero_at_sigterm(tiny_llama_path: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("anna:secret-a\n")
    reader, writer = os.pipe()
    command = [*HYBRID, "serve", str(tiny_llama_path), "--port", "0", "--json", "--ready-fd", str(writer), "--kv-mib", "1"]
    command += ["--max-requests", "1"]  # of however many choices
    told = environment(HYBRID_API_KEYS_FILE=str(keys), HYBRID_SERVE_SERVED_MODEL_NAME="tiny")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=(writer,), env=told)
    os.close(writer)
    try:
        with os.fdopen(reader) as ready:
            facts = json.loads(ready.read())
        body = {"prompt": [1, 2, 3], "max_tokens": 3, "temperature": 0, "n": 2}
        answer = json.loads(call(facts["url"] + "/v1/completions", body, authorization="Bearer secret-a"))
        assert answer["usage"]["completion_tokens"] == 6
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert json.loads(out) == facts
    assert facts["model"] == answer["model"] == "tiny"
    assert facts["auth"] is True
    assert f"{facts['url']}/v1" in err
    assert "secret-a" not in err
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    assert [(line["route"], line["key"], line["status"]) for line in lines if line["event"] == "request"] == [
        ("/v1/completions", "anna", 200)
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--host", "0.0.0.0"], 5, "HYBRID_API_KEYS_FILE"),
        (["--allowed-origin", "*"], 5, "origin"),
        (["--port", "70000"], 2, "port"),
        (["--nonsense"], 2, "nonsense"),
        (["--ready-fd", "77", "--port", "0"], 2, "77"),
        (["--quantise", "int8", "--port", "0"], 5, "are Q4_1"),
    ],
)
def test_what_it_cannot_do_is_one_line_and_an_exit_code(tiny_llama_path: Path, arguments: list[str], code: int, says: str) -> None:
    ended = subprocess.run(
        [*HYBRID, "serve", str(tiny_llama_path), *arguments], capture_output=True, text=True, env=environment(), check=False
    )
    assert ended.returncode == code
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ctrl_c_says_what_it_waits_for_and_a_second_one_does_not_wait(tiny_llama_path: Path) -> None:
    command = [*HYBRID, "serve", str(tiny_llama_path), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stdout and process.stderr
        url = json.loads(process.stdout.readline())["url"]
        body = {"prompt": [1, 2, 3], "max_tokens": 120, "ignore_eos": True, "stream": True}
        request = urllib.request.Request(f"{url}/v1/completions", json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.readline()
            process.send_signal(signal.SIGINT)
            told = next(json.loads(line) for line in process.stderr if '"drain"' in line)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    finally:
        process.kill()
    assert (told["event"], told["inside"]) == ("drain", 1)
    assert process.returncode == 130


def test_a_folder_is_served_in_the_blocks_that_were_asked_for(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path / "mine", "llama", dtype="BF16")
    write_tokenizer(folder)
    command = [*HYBRID, "serve", str(folder), "--port", "0", "--json", "--quantise", "int4"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stdout
        facts = json.loads(process.stdout.readline())
        answer = json.loads(call(facts["url"] + "/v1/completions", {"prompt": "the people", "max_tokens": 2, "ignore_eos": True}))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (facts["model"], facts["quantisation"]) == ("mine", "Q4_1")
    assert answer["usage"]["completion_tokens"] == 2
    assert "bits per weight" in err


def test_an_unknown_model_is_not_found(tmp_path: Path) -> None:
    told = environment(HYBRID_HOME=str(tmp_path))
    ended = subprocess.run([*HYBRID, "serve", "no-such-model", "--port", "0"], capture_output=True, text=True, env=told, check=False)
    assert ended.returncode == 3
    assert "no-such-model" in ended.stderr
