"""A file is written whole or not at all, and may be read by whom any other file may."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hybrid.shared_protocol.errors import ConfigError, NotEnoughSpace
from hybrid.shared_protocol.whole_file import replace_whole, write_whole


@pytest.fixture(params=[0o022, 0o027, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_a_new_file_follows_the_umask_and_an_old_one_keeps_its_mode(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "file"
    write_whole(path, b"one")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o666 & ~umask)
    path.chmod(0o640)
    write_whole(path, b"two")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o640)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_nobody_else_may_read_the_new_content_of_a_private_file_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sync, modes = tmp_path / "file", os.fsync, []
    path.write_bytes(b"old")
    path.chmod(0o600)

    def seen(handle: int) -> None:  # written, and not yet in its place
        modes.append(os.fstat(handle).st_mode & 0o777)
        sync(handle)

    monkeypatch.setattr(os, "fsync", seen)
    replace_whole(path, b"new", durable=True)
    assert modes == [0o600]


def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"one")

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(NotEnoughSpace, match="file: No space left on device"):
        write_whole(path, b"two")
    assert path.read_bytes() == b"one" and [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_of_our_own_is_its_owner_s_where_that_is_asked_and_a_full_disk_leaves_the_old_one(
    tmp_path: Path, durable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    replace_whole(path, b"one", mode=0o600, durable=durable)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o600)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    replace_whole(path, b"two", durable=durable)
    assert (path.read_bytes(), len(synced)) == (b"two", int(durable))
    with pytest.raises(OSError):
        replace_whole(tmp_path / "no" / "file", b"three", durable=durable)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_link_still_leads_to_the_file_and_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("file")
    for data in (b"one", b"two"):
        write_whole(link, data)
        assert link.is_symlink() and (tmp_path / "file").read_bytes() == data
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, b"one")
    assert (os.read(reader, 9), pipe.is_fifo()) == (b"one", True)
    os.close(reader)


@pytest.mark.parametrize("name", ["no/file", ".", "a\0b", "x" * 300])
def test_a_name_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        write_whole(tmp_path / name, b"one")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_disk_is_told_as_one() -> None:
    with pytest.raises(NotEnoughSpace, match="No space left"):
        write_whole("/dev/full", b"one")
