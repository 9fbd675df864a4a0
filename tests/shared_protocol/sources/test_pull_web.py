"""Pulls from an address, and what is left when they break off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256

import pytest
from hybrid.shared_protocol.errors import (
    CloudUnreachable,
    InvalidRequest,
    ModelFileError,
    ModelNotFound,
)
from hybrid.shared_protocol.sources.partial import STALE_AFTER_S, remove_stale
from hybrid.shared_protocol.sources.pull import pull
from hybrid.shared_protocol.store import Store
from hybrid.tests.support.file_server import Fault, FileServer, serving
from hybrid.tests.support.pulling import BUSY, HURRY, unfinished

ADDRESS = "/models/tiny.gguf"


@pytest.fixture
def server(whole: bytes) -> Iterator[FileServer]:
    with serving(FileServer({ADDRESS: whole})) as running:
        yield running


def test_a_file_comes_from_an_address_and_its_secrets_are_not_recorded(store: Store, server: FileServer, whole: bytes) -> None:
    address = server.url.replace("http://", "http://me:s3cret@") + ADDRESS
    card = pull(f"{address}?token=s3cret", store)
    assert store.path("tiny").read_bytes() == whole
    assert store.show("tiny").source == server.url + ADDRESS
    assert b"s3cret" not in b"".join(path.read_bytes() for path in store.root.rglob("*.json"))
    assert server.asked[0].path.endswith("?token=s3cret")
    assert server.asked[0].headers["Authorization"].startswith("Basic ")
    assert pull(server.url + ADDRESS, store) == card
    assert len(server.asked) == 1
    assert unfinished(store) == []


def test_a_pull_that_broke_off_is_gone_on_with_by_the_next_and_by_no_other(store: Store, server: FileServer, whole: bytes) -> None:
    half = len(whole) // 2
    server.faults = [Fault(cut_after=half), *BUSY]
    with pytest.raises(CloudUnreachable):
        pull(server.url + ADDRESS, store, patience=HURRY)
    assert (store.list(), store.broken(), unfinished(store)) == ([], {}, ["tiny"])
    pull(server.url + ADDRESS, store, name="other")
    assert server.starts()[-1] is None
    pull(server.url + ADDRESS, store)
    assert server.starts()[-1] == half
    assert store.path("tiny").read_bytes() == whole
    assert unfinished(store) == []


def test_removing_a_name_removes_what_was_pulled_of_it(store: Store, server: FileServer) -> None:
    server.faults = [Fault(cut_after=1000), *BUSY]
    with pytest.raises(CloudUnreachable):
        pull(server.url + ADDRESS, store, patience=HURRY)
    store.remove("tiny")
    assert unfinished(store) == []
    with pytest.raises(ModelNotFound):
        store.remove("tiny")


def test_what_nobody_went_on_with_goes_after_two_weeks(store: Store, server: FileServer) -> None:
    server.faults = [Fault(cut_after=1000), *BUSY]
    with pytest.raises(CloudUnreachable):
        pull(server.url + ADDRESS, store, patience=HURRY)
    for later, left in ((STALE_AFTER_S - 60, ["tiny"]), (STALE_AFTER_S + 60, [])):
        with store.lock("tiny"):
            remove_stale(store.root, store.lock_at_once, time.time() + later)
        assert unfinished(store) == ["tiny"]  # somebody works on it
        remove_stale(store.root, store.lock_at_once, time.time() + later)
        assert unfinished(store) == left


@pytest.mark.parametrize("body", [b"<html>please log in</html>" * 9, b"GGUF" + bytes(100)])
def test_an_answer_that_is_no_model_leaves_nothing(store: Store, server: FileServer, body: bytes) -> None:
    server.files[ADDRESS] = body
    with pytest.raises(ModelFileError):
        pull(server.url + ADDRESS, store)
    assert (store.list(), store.broken(), unfinished(store)) == ([], {}, [])


@pytest.mark.parametrize("address", ["http://203.0.113.1/x.gguf", "https://host/x.bin", "https://host/", "https:x.gguf", "http://[/x.gguf"])
def test_an_address_that_is_not_asked(store: Store, address: str) -> None:
    with pytest.raises(InvalidRequest):
        pull(address, store)


# --- processes


def command(server: FileServer, store: Store, *more: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "hybrid.apps.cli.main", "pull", server.url + ADDRESS, *more]
    environment = {**os.environ, "HYBRID_HOME": str(store.root)}
    return subprocess.Popen(arguments, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_bytes(store: Store, process: subprocess.Popen[str], size: int) -> None:
    while sum(path.stat().st_size for path in store.root.rglob("*.gguf.part")) < size:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_two_processes_that_pull_one_model_load_it_once_and_both_succeed(store: Store, server: FileServer, whole: bytes) -> None:
    processes = [command(server, store, "--json") for _ in range(2)]
    printed = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert printed[0] == printed[1]
    assert json.loads(printed[0])["file_hash"] == sha256(whole).hexdigest()
    assert server.starts() == [None]


@pytest.mark.parametrize(("blow", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_process_that_ends_half_way_leaves_what_the_next_goes_on_with(
    store: Store, server: FileServer, whole: bytes, blow: signal.Signals, code: int
) -> None:
    half = len(whole) // 2
    server.faults = [Fault(stall_after=half)]
    process = command(server, store)
    wait_for_bytes(store, process, half)
    process.send_signal(blow)
    _, said = process.communicate()
    assert process.returncode == code
    if blow == signal.SIGINT:
        assert "hybrid: interrupted; the same command goes on where it stopped" in said.splitlines()
    assert not store.has("tiny")
    pull(server.url + ADDRESS, store)
    assert server.starts() == [None, half]
    assert store.path("tiny").read_bytes() == whole


@pytest.mark.parametrize(("fault", "code"), [(Fault(404), 3), (Fault(400), 4), (Fault(401), 1), (Fault(change=lambda body: b"no" * 99), 1)])
def test_a_failed_pull_ends_with_one_line_and_the_exit_code_of_its_kind(store: Store, server: FileServer, fault: Fault, code: int) -> None:
    server.faults = [fault]
    process = command(server, store)
    printed, said = process.communicate()
    assert (process.returncode, printed) == (code, "")
    assert said.splitlines()[-1].startswith("hybrid: ")
    assert "Traceback" not in said
