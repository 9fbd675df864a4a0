"""One file over a bad line: what a server on loopback does wrong, and what comes of it."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hybrid.shared_protocol.errors import (
    AuthenticationError,
    ChecksumMismatch,
    CloudUnreachable,
    ModelNotFound,
    NotEnoughSpace,
    PermissionDenied,
    StreamInterrupted,
)
from hybrid.shared_protocol.sources import disk
from hybrid.shared_protocol.sources.download import Patience, Remote, download
from hybrid.shared_protocol.sources.web import Access
from hybrid.tests.support.file_server import Fault, FileServer, serving

WHOLE = bytes(range(256)) * 4096  # 1 MB
HALF = len(WHOLE) // 2
DIGEST = sha256(WHOLE).hexdigest()
PATH = "/some/model.gguf"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(FileServer({PATH: WHOLE})) as running:
        yield running


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def fetch(server: FileServer, target: Path, *, size: int | None = None, known: str | None = None, stall_s: float = 30.0) -> str:
    patience = Patience(stall_s=stall_s, attempts=3, sleep=lambda seconds: None)
    return download(Remote(server.url + PATH, size, known), target, lambda what, done, total: None, patience)


def left(target: Path) -> int:
    """Bytes of an unfinished download; nothing lies under the final name then."""
    assert not target.exists()
    part = target.with_name("model.gguf.part")
    return part.stat().st_size if part.exists() else 0


@pytest.mark.parametrize("known", [None, DIGEST])
def test_a_whole_file_comes_in_one_answer_and_is_not_asked_for_again(server: FileServer, target: Path, known: str | None) -> None:
    assert fetch(server, target, known=known) == fetch(server, target, known=known) == DIGEST
    assert target.read_bytes() == WHOLE
    assert server.starts() == [None]
    assert os.listdir(target.parent) == ["model.gguf"]


def test_a_connection_that_drops_half_way_is_gone_on_with(server: FileServer, target: Path) -> None:
    server.faults = [Fault(cut_after=HALF)]
    assert fetch(server, target) == DIGEST
    assert server.starts() == [None, HALF]
    assert target.read_bytes() == WHOLE


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(server: FileServer, target: Path) -> None:
    server.faults = [Fault(cut_after=HALF), *[Fault(status=503)] * 3]
    with pytest.raises(CloudUnreachable, match="HTTP 503"):
        fetch(server, target)
    assert left(target) == HALF
    assert fetch(server, target) == DIGEST
    assert server.starts()[-1] == HALF


def test_a_server_that_falls_silent_is_left_and_asked_for_the_rest(server: FileServer, target: Path) -> None:
    server.faults = [Fault(stall_after=HALF)]
    assert fetch(server, target, stall_s=0.3) == DIGEST
    assert server.starts() == [None, HALF]


def test_a_server_that_sends_next_to_nothing_is_left_and_asked_for_the_rest(server: FileServer, target: Path) -> None:
    ticks = iter(range(0, 10_000, 20))  # seconds: two of our reads are more than `stall_s` apart
    server.files[PATH] = WHOLE[:3000]
    server.faults = [Fault(change=lambda body: body[:100], headers={"Content-Length": "3000"}, stall_after=100)]
    patience = Patience(stall_s=20.0, sleep=lambda seconds: None, clock=lambda: next(ticks))
    assert download(Remote(server.url + PATH), target, lambda what, done, total: None, patience) == sha256(WHOLE[:3000]).hexdigest()
    assert server.starts() == [None, 100]


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "1e3"])
def test_a_length_that_is_no_number_is_no_length(server: FileServer, target: Path, length: str) -> None:
    server.faults = [Fault(headers={"Content-Length": length})]
    assert fetch(server, target) == DIGEST


def test_a_server_without_ranges_sends_it_all_again(server: FileServer, target: Path) -> None:
    server.ranges, server.faults = False, [Fault(cut_after=HALF)]
    assert fetch(server, target) == DIGEST
    assert target.read_bytes() == WHOLE


def test_a_server_without_ranges_that_always_drops_is_given_up(server: FileServer, target: Path) -> None:
    server.ranges, server.faults = False, [Fault(cut_after=HALF)] * 9
    with pytest.raises(StreamInterrupted, match=r"cut off after 524,288 of 1,048,576 bytes.*goes on where it stopped"):
        fetch(server, target)
    assert len(server.asked) == 4  # one that brought half, three that brought nothing more
    assert left(target) == HALF


def test_another_version_on_the_server_starts_anew(server: FileServer, target: Path) -> None:
    server.faults = [Fault(cut_after=HALF), *[Fault(status=500)] * 3]
    with pytest.raises(CloudUnreachable):
        fetch(server, target)
    server.files[PATH], server.etag = WHOLE[::-1], '"2"'
    assert fetch(server, target) == sha256(WHOLE[::-1]).hexdigest()
    assert target.read_bytes() == WHOLE[::-1]


def test_without_a_validator_and_a_hash_nothing_is_gone_on_with(server: FileServer, target: Path) -> None:
    server.etag, server.faults = None, [Fault(cut_after=HALF)]
    assert fetch(server, target) == DIGEST
    assert server.starts() == [None, None]


def test_a_range_past_the_end_starts_anew(server: FileServer, target: Path) -> None:
    server.faults = [Fault(cut_after=HALF), *[Fault(status=500)] * 3]
    with pytest.raises(CloudUnreachable):
        fetch(server, target)
    server.files[PATH] = WHOLE[:1000]
    assert fetch(server, target) == sha256(WHOLE[:1000]).hexdigest()
    assert server.starts()[-2:] == [HALF, None]


def test_wrong_bytes_are_fetched_once_more(server: FileServer, target: Path) -> None:
    server.faults = [Fault(change=lambda body: b"x" + body[1:])]
    assert fetch(server, target, known=DIGEST) == DIGEST
    assert server.starts() == [None, None]


def test_wrong_bytes_that_stay_wrong_are_told_with_both_hashes_and_leave_nothing(server: FileServer, target: Path) -> None:
    server.files[PATH] = WHOLE[::-1]
    with pytest.raises(ChecksumMismatch, match=DIGEST) as caught:
        fetch(server, target, known=DIGEST)
    assert sha256(WHOLE[::-1]).hexdigest() in str(caught.value)
    assert os.listdir(target.parent) == []


def test_a_half_that_was_damaged_meanwhile_is_fetched_again(server: FileServer, target: Path) -> None:
    server.faults = [Fault(cut_after=HALF), *[Fault(status=500)] * 3]
    with pytest.raises(CloudUnreachable):
        fetch(server, target, known=DIGEST)
    target.with_name("model.gguf.part").write_bytes(bytes(HALF))
    assert fetch(server, target, known=DIGEST) == DIGEST
    assert target.read_bytes() == WHOLE


def test_an_empty_body_is_no_file(server: FileServer, target: Path) -> None:
    server.faults = [Fault(change=lambda body: b"")]
    assert fetch(server, target) == DIGEST
    server.faults = [Fault(change=lambda body: b"")] * 9
    target.unlink()
    with pytest.raises(StreamInterrupted, match="empty"):
        fetch(server, target)
    assert left(target) == 0


def test_a_size_that_is_not_the_one_expected_is_refused_before_a_byte_is_kept(server: FileServer, target: Path) -> None:
    with pytest.raises(ChecksumMismatch, match="1,048,576 bytes, expected 1,000"):
        fetch(server, target, size=1000)
    assert os.listdir(target.parent) == []


def test_a_body_without_a_length_is_held_to_the_size_that_is_known(server: FileServer, target: Path) -> None:
    server.faults = [Fault(headers={"Content-Length": "unknown"})]
    with pytest.raises(ChecksumMismatch, match="more than the 1,000 bytes"):
        fetch(server, target, size=1000)
    assert not target.exists()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, ModelNotFound), (410, ModelNotFound), (401, AuthenticationError), (403, PermissionDenied), (400, CloudUnreachable)],
)
def test_a_refusal_is_told_at_once(server: FileServer, target: Path, status: int, kind: type[Exception]) -> None:
    server.faults = [Fault(status=status)]
    with pytest.raises(kind, match=str(status)):
        fetch(server, target)
    assert len(server.asked) == 1


def test_a_busy_server_is_asked_again_when_it_says_but_not_for_ever(server: FileServer, target: Path) -> None:
    pauses: list[float] = []
    server.faults = [
        Fault(status=429, headers={"Retry-After": "7"}),
        Fault(status=503, headers={"Retry-After": "86400"}),
        Fault(status=502),
    ]
    remote = Remote(server.url + PATH)
    assert download(remote, target, lambda what, done, total: None, Patience(sleep=pauses.append)) == DIGEST
    assert pauses == [7.0, 60.0, 2.0]


def test_a_full_disk_is_told_and_what_came_is_kept(server: FileServer, target: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, before[1]))  # the kernel refuses every byte after these
    try:
        with pytest.raises(NotEnoughSpace, match="free some space, then pull it again"):
            fetch(server, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert left(target) == HALF
    assert fetch(server, target) == DIGEST
    assert server.starts() == [None, HALF]


def test_a_device_that_takes_nothing_is_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, open("/dev/full", "wb", buffering=0) as device:  # the kernel answers with ENOSPC
        disk.write_all(device.write, b"x")
    assert isinstance(disk.full_disk(caught.value, tmp_path), NotEnoughSpace)
    other = OSError(errno.EIO, "a broken disk")
    assert disk.full_disk(other, tmp_path) is other


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(
    server: FileServer, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_SPARE", 1 << 60)
    with pytest.raises(NotEnoughSpace, match="are free"):
        fetch(server, target)
    assert left(target) == 0


def test_an_interrupt_leaves_what_came(server: FileServer, target: Path) -> None:
    def interrupt(what: str, done: int, total: int | None) -> None:
        if done >= HALF:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(Remote(server.url + PATH), target, interrupt, Patience())
    came = left(target)
    assert HALF <= came < len(WHOLE)
    assert fetch(server, target) == DIGEST
    assert server.starts() == [None, came]


def test_a_token_goes_to_the_named_host_only(server: FileServer, target: Path) -> None:
    with serving(FileServer({PATH: WHOLE})) as other:
        elsewhere = other.url.replace("127.0.0.1", "localhost")
        server.faults = [Fault(status=302, headers={"Location": "/moved.gguf"}), Fault(status=302, headers={"Location": elsewhere + PATH})]
        remote = Remote(server.url + PATH, access=Access({"Authorization": "Bearer s3cret"}))
        assert download(remote, target, lambda what, done, total: None, Patience()) == DIGEST
    assert [asked.headers.get("Authorization") for asked in server.asked] == ["Bearer s3cret"] * 2
    assert [asked.headers.get("Authorization") for asked in other.asked] == [None]
