"""The store: what is there is whole, is the file that was pulled, and is found by nothing but its name."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
from hashlib import sha256
from pathlib import Path

import pytest
from hybrid.shared_protocol.errors import ChecksumMismatch, ConfigError, InvalidRequest, ModelFileError, ModelNotFound
from hybrid.shared_protocol.model import load_model
from hybrid.shared_protocol.model_files import sha256_of, state_of
from hybrid.shared_protocol.sources.pull import pull
from hybrid.shared_protocol.store import Store


@pytest.fixture
def store(tmp_path: Path, tiny_llama_path: Path) -> Store:
    """A store with the model `tiny`."""
    store = Store(tmp_path / "home")
    pull(f"file:{tiny_llama_path}", store)
    return store


def test_a_stored_model_loads_by_its_name(store: Store, tiny_llama_path: Path) -> None:
    model = load_model("tiny", store)
    assert model.card == store.show("tiny").card
    assert model.card.file_hash == sha256_of(tiny_llama_path)
    assert model.path == store.path("tiny")


def test_a_name_that_is_not_there_says_how_to_get_it(store: Store) -> None:
    with pytest.raises(ModelNotFound, match=r"there: tiny.*hybrid pull smollm2-135m") as caught:
        load_model("smollm2-135m", store)
    assert (caught.value.status, caught.value.exit_code) == (404, 3)


@pytest.mark.parametrize(
    "name", ["..", ".", "", "../tiny", "a/b", "/etc/passwd", ".hidden", "a\\b", "x" * 65, "a\n", "tiny.", "nul\0", "-r"]
)
def test_no_name_leaves_the_store(store: Store, name: str) -> None:
    for use in (store.show, store.remove, store.has, store.verify):
        with pytest.raises(InvalidRequest):
            use(name)
    assert store.has("tiny")


def test_removing_leaves_nothing_but_the_other_models(store: Store, tiny_llama_path: Path) -> None:
    pull(f"file:{tiny_llama_path}", store, name="other")
    store.remove("tiny")
    assert [model.card.name for model in store.list()] == ["other"]
    assert not list((store.root / "partial").iterdir())
    with pytest.raises(ModelNotFound):
        store.remove("tiny")


def test_a_copy_of_a_model_has_the_name_of_its_folder_and_is_checked_for_itself(store: Store) -> None:
    shutil.copytree(store.root / "models/tiny", store.root / "models/copy")
    with (store.root / "models/copy/tiny.gguf").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"X")
    assert [model.card.name for model in store.list()] == ["copy", "tiny"]
    with pytest.raises(ChecksumMismatch, match="'copy'"):
        store.checked("copy")


def test_a_file_or_a_link_to_nowhere_among_the_models_is_told_and_can_be_removed(store: Store) -> None:
    (store.root / "models/file").touch()
    (store.root / "models/link").symlink_to("nowhere")
    assert set(store.broken()) == {"file", "link"}
    for name in ("file", "link"):
        with pytest.raises(ModelFileError, match=f"hybrid rm {name}"):
            store.show(name)
        store.remove(name)
    assert not store.broken() and not list((store.root / "partial").iterdir())


def test_a_store_that_cannot_be_written_serves_what_it_has(store: Store, tiny_llama_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = (store.root / "models/tiny/record.json").read_bytes()
    monkeypatch.setattr(secrets, "token_hex", lambda count: bytes(count).hex())
    (store.root / f"models/tiny/.record.json.{bytes(8).hex()}").mkdir()  # in the way of a new record
    shutil.rmtree(store.root / "locks")
    (store.root / "locks").touch()  # in the way of every lock
    os.utime(store.path("tiny"), ns=(1, 1))  # as in a copy of the store: another state, the same content
    assert load_model("tiny", store).card == store.show("tiny").card
    assert pull(f"file:{tiny_llama_path}", store) == store.show("tiny").card
    assert (store.root / "models/tiny/record.json").read_bytes() == record
    with pytest.raises(ConfigError, match="cannot be written"):
        store.remove("tiny")


def test_a_user_without_a_home_is_told_to_name_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("HYBRID_HOME", raising=False)
    with pytest.raises(ConfigError, match="HYBRID_HOME"):
        Store()


def test_a_file_that_changed_after_the_pull_is_refused_with_both_hashes(store: Store) -> None:
    path, pulled = store.path("tiny"), store.show("tiny").card.file_hash
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ChecksumMismatch, match=pulled) as caught:
        load_model("tiny", store)
    assert sha256_of(path) in str(caught.value)


def test_a_change_that_hides_its_time_is_found_by_hashing_again(store: Store) -> None:
    path = store.path("tiny")
    before = path.stat()
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    load_model("tiny", store)
    with pytest.raises(ChecksumMismatch):
        store.verify("tiny")


def test_a_restored_backup_of_the_same_content_is_accepted_and_noted(store: Store) -> None:
    path, before = store.path("tiny"), store.show("tiny").state
    copy = path.with_suffix(".copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)
    load_model("tiny", store)
    assert store.show("tiny").state != before
    assert store.show("tiny").card == load_model("tiny", store).card


def test_a_record_from_before_the_bits_were_noted_is_still_read(store: Store) -> None:
    path = store.root / "models" / "tiny" / "record.json"
    record = json.loads(path.read_text())
    assert record["card"].pop("bits_per_weight") == pytest.approx(5.977)
    path.write_text(json.dumps(record))
    assert store.show("tiny").card.bits_per_weight is None
    assert load_model("tiny", store).card.bits_per_weight == pytest.approx(5.977)


def test_what_is_no_model_is_named_and_can_be_removed(store: Store) -> None:
    for name, content in {"torn": b"{", "escaping": b""}.items():
        folder = store.root / "models" / name
        folder.mkdir()
        (folder / "record.json").write_bytes(content)
    record = (store.root / "models" / "tiny" / "record.json").read_text()
    (store.root / "models" / "escaping" / "record.json").write_text(record.replace("tiny.gguf", "../tiny/tiny.gguf"))
    store.path("tiny").unlink()
    assert set(store.broken()) == {"torn", "escaping", "tiny"}
    assert store.list() == []
    with pytest.raises(ModelFileError, match="hybrid rm torn"):
        store.show("torn")
    store.remove("torn")
    assert "torn" not in store.broken()


def test_the_root_is_hybrid_home_or_below_the_users_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path))
    assert Store().root == tmp_path
    monkeypatch.delenv("HYBRID_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert Store().root == tmp_path / "me/.local/share/hybrid"


def test_the_hash_of_a_large_outside_file_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    store, path = Store(tmp_path / "home"), tmp_path / "large.gguf"
    path.write_bytes(bytes(16 << 20))
    first = store.hash_of(path)
    assert first == sha256_of(path)
    cache = store.root / "hashes.json"
    cache.write_text(cache.read_text().replace(first, "0" * 64))
    assert store.hash_of(path) == "0" * 64  # it came from the cache
    path.write_bytes(bytes(17 << 20))
    assert store.hash_of(path) == sha256_of(path)
    cache.write_text("{")
    assert store.hash_of(path) == sha256_of(path)


def test_a_path_loads_without_a_store(tiny_llama_path: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "absent")
    assert load_model(str(tiny_llama_path), store).card.name == "tiny"
    assert load_model(tiny_llama_path, store).card == load_model(str(tiny_llama_path), store).card
    assert not store.root.exists()


def test_a_folders_hash_is_that_of_the_list_that_sha256sum_prints_and_other_files_do_not_count(tmp_path: Path) -> None:
    for name in ("tokenizer.json", "config.json", "model.safetensors", "pytorch_model.bin", "README.md"):
        (tmp_path / name).write_bytes(name.encode())
    listed = "".join(f"{sha256(name.encode()).hexdigest()}  {name}\n" for name in ("config.json", "model.safetensors", "tokenizer.json"))
    assert sha256_of(tmp_path) == sha256(listed.encode()).hexdigest()
    before = state_of(tmp_path)
    (tmp_path / "README.md").write_bytes(b"other")
    assert state_of(tmp_path) == before
    copy = tmp_path / "copy"
    copy.write_bytes(b"config.json")
    copy.replace(tmp_path / "config.json")
    assert state_of(tmp_path) != before
    assert sha256_of(tmp_path) == sha256(listed.encode()).hexdigest()
