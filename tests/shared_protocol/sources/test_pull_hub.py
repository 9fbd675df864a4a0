"""Pulls from a hub: which files are chosen, of one commit, and what is left when they break off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hybrid.shared_protocol.errors import (
    AuthenticationError,
    ChecksumMismatch,
    CloudUnreachable,
    Conflict,
    InvalidRequest,
    ModelNotFound,
)
from hybrid.shared_protocol.model import load_model
from hybrid.shared_protocol.sources.hf_source import HubName, parse_hub_name
from hybrid.shared_protocol.sources.pull import pull
from hybrid.shared_protocol.store import Store
from hybrid.tests.support.file_server import Fault, FileServer, serving
from hybrid.tests.support.hf_writer import write_tiny_folder, write_tokenizer
from hybrid.tests.support.pulling import BUSY, HURRY, unfinished


def hub_files(files: dict[str, bytes], *, lfs: bool = True, **more: Any) -> dict[str, bytes]:
    """The two addresses that a hub has for each file of the repository me/tiny."""
    siblings: list[dict[str, Any]] = [
        {
            "rfilename": name,
            "size": len(content),
            "blobId": "0" * 40,
            **({"lfs": {"sha256": sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}} if lfs else {}),
        }
        for name, content in files.items()
    ]
    listing = {"id": "me/tiny", "sha": "c0ffee", "private": False, "siblings": siblings, "cardData": {"license": "mit"}, **more}
    return {
        "/api/models/me/tiny/revision/main": json.dumps(listing).encode(),
        **{f"/me/tiny/resolve/c0ffee/{name}": content for name, content in files.items()},
    }


@pytest.fixture
def hub(whole: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    with serving(FileServer(hub_files({"README.md": b"hello", "tiny.Q4_1.gguf": whole}))) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setenv("HF_TOKEN", "hf_s3cret")
        yield running


def test_the_only_model_of_a_repository_needs_no_file_name(store: Store, hub: FileServer, whole: bytes) -> None:
    card = pull("hf:me/tiny", store)
    assert (card.name, card.licence) == ("tiny", "mit")
    assert store.path("tiny").read_bytes() == whole
    assert store.path("tiny").name == "tiny.Q4_1.gguf"
    assert store.show("tiny").source == "hf:me/tiny"
    assert {asked.headers["Authorization"] for asked in hub.asked} == {"Bearer hf_s3cret"}
    assert [asked.path for asked in hub.asked] == ["/api/models/me/tiny/revision/main?blobs=true", "/me/tiny/resolve/c0ffee/tiny.Q4_1.gguf"]


def test_a_file_of_a_hub_is_gone_on_with_and_held_to_its_hash(store: Store, hub: FileServer, whole: bytes) -> None:
    half = len(whole) // 2
    hub.etag, hub.faults = None, [Fault(cut_after=half), *BUSY]  # no validator: the hash that the hub states is enough
    with pytest.raises(CloudUnreachable):
        pull("hf:me/tiny/tiny.Q4_1.gguf", store, patience=HURRY)
    pull("hf:me/tiny/tiny.Q4_1.gguf", store)
    assert hub.starts(".gguf")[-1] == half
    hub.files["/me/tiny/resolve/c0ffee/tiny.Q4_1.gguf"] = whole[::-1]
    with pytest.raises(ChecksumMismatch):
        pull("hf:me/tiny", store, name="wrong")
    assert unfinished(store) == []


def test_a_repository_with_several_models_lists_them(store: Store, hub: FileServer, whole: bytes) -> None:
    hub.files = hub_files({"a.gguf": whole, "sub/b.gguf": whole, "../c.gguf": whole})
    with pytest.raises(ModelNotFound, match=r"holds 2 GGUF files: a\.gguf, sub/b\.gguf .*name one: hf:me/tiny/FILE"):
        pull("hf:me/tiny", store)
    with pytest.raises(ModelNotFound, match=r"holds no 'c\.gguf'; GGUF files there: a\.gguf"):
        pull("hf:me/tiny/c.gguf", store)
    assert pull("hf:me/tiny/sub/b.gguf", store).name == "b"


def test_a_repository_with_a_folder_is_pulled_file_by_file_and_gone_on_with(
    store: Store, hub: FileServer, whole: bytes, tmp_path: Path
) -> None:
    folder = write_tiny_folder(tmp_path / "folder", "qwen2", dtype="BF16")
    write_tokenizer(folder)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    others = {"pytorch_model.bin": b"pickle", "modeling.py": b"code", "onnx/config.json": b"{}", "consolidated.safetensors": b"again"}
    hub.files = hub_files({**files, **others})
    hub.faulty, hub.faults = (".safetensors",), [Fault(cut_after=1000), *BUSY]
    with pytest.raises(CloudUnreachable):
        pull("hf:me/tiny", store, patience=HURRY)
    hub.asked.clear()
    card = pull("hf:me/tiny", store)
    path = store.path("tiny")
    assert {file.name: file.read_bytes() for file in path.iterdir()} == files
    assert hub.starts(".safetensors") == [1000]
    assert hub.starts("/config.json") == []  # what was whole is not asked for again
    assert (card.licence, card.file_hash) == ("mit", load_model(folder).card.file_hash)
    assert load_model("tiny", store).card == card
    path.joinpath("config.json").write_bytes(files["config.json"] + b" ")
    with pytest.raises(ChecksumMismatch):
        load_model("tiny", store)


def test_a_repository_that_changes_between_two_pulls_gives_files_of_one_commit(store: Store, hub: FileServer, tmp_path: Path) -> None:
    old, new = (write_tiny_folder(tmp_path / name, family, dtype="BF16") for name, family in (("old", "qwen2"), ("new", "llama")))
    for folder in (old, new):
        write_tokenizer(folder)
    (old / "generation_config.json").write_text("{}")  # the later commit has none

    def files(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    hub.files = hub_files(files(old), lfs=False)
    hub.faulty, hub.faults = (".safetensors",), [Fault(cut_after=1000), *BUSY]
    with pytest.raises(CloudUnreachable):
        pull("hf:me/tiny", store, patience=HURRY)
    later = hub_files(files(new), lfs=False, sha="decade")
    hub.files = {address.replace("/c0ffee/", "/decade/"): content for address, content in later.items()}
    pull("hf:me/tiny", store)
    assert files(store.path("tiny")) == files(new)
    assert unfinished(store) == []


def test_a_repository_without_a_model_says_what_it_lacks(store: Store, hub: FileServer) -> None:
    hub.files = hub_files({"config.json": b"{}", "pytorch_model.bin": b"pickle"})
    with pytest.raises(ModelNotFound, match=r"lacks tokenizer\.json, \*\.safetensors"):
        pull("hf:me/tiny", store)


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[]", b'{"sha": 1, "siblings": []}', b'{"sha": "..", "siblings": []}', b"\xff", b"{" * 100_000]
)
def test_a_hub_that_answers_nonsense_is_not_believed(store: Store, hub: FileServer, answer: bytes) -> None:
    hub.files["/api/models/me/tiny/revision/main"] = answer
    with pytest.raises(CloudUnreachable, match="HF_ENDPOINT"):
        pull("hf:me/tiny", store, patience=HURRY)


def test_a_repository_that_is_not_there_or_private(store: Store, hub: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN_PATH", "/nonexistent")
    with pytest.raises(ModelNotFound):
        pull("hf:me/none", store)
    assert "Authorization" not in hub.asked[0].headers
    hub.faulty = ("main",)
    for fault, kind in ((Fault(401, {"X-Error-Code": "RepoNotFound"}), ModelNotFound), (Fault(401), AuthenticationError)):
        hub.faults = [fault]
        with pytest.raises(kind, match=r"token|HF_TOKEN"):
            pull("hf:me/tiny", store)


def test_another_repository_under_the_same_name_is_a_conflict(store: Store, hub: FileServer) -> None:
    pull("hf:me/tiny", store)
    with pytest.raises(Conflict, match="from hf:me/tiny"):
        pull("hf:you/tiny", store)


def test_names_of_a_hub_are_read_as_they_are_written() -> None:
    assert parse_hub_name("a/b") == HubName("a/b", "main", None)
    assert parse_hub_name("a/b/sub/c.gguf") == HubName("a/b", "main", "sub/c.gguf")
    assert parse_hub_name("a/b@v1/c.gguf") == HubName("a/b", "v1", "c.gguf")
    assert parse_hub_name("a/b@refs/pr/1") == HubName("a/b", "refs/pr/1", None)


@pytest.mark.parametrize(
    "rest", ["", "a", "a/", "/b", "a/b/../c.gguf", "a/..", "a b/c", "a/b/c.bin", "a/b@/c.gguf", "a/b?x", "a/b/\n.gguf"]
)
def test_what_is_no_name_of_a_hub_is_refused(rest: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_hub_name(rest)
