"""One file from a web server, however often the way breaks.

    TARGET.part        the bytes from the first on, as far as they came
    TARGET.part.json   which file of the server they belong to: address, validator, size
    TARGET             the whole file, by one rename, once its length and its SHA-256 (where known) are right

An attempt goes on after the last byte that is there (Range with If-Range); a server that sends the whole again, or has another file
by now, starts it anew. What was there already is hashed again, so the digest is of what lies on the disk.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from ..errors import ChecksumMismatch, CloudUnreachable, StreamInterrupted
from ..model_files import sha256_of
from .disk import GOES_ON, full_disk, need_space, write_all
from .partial import note_of
from .web import BLOCK, Access, RangeRefused, blocks_of, length_of, open_url, shown

T = TypeVar("T")
Progress = Callable[[str, int, int | None], None]  # what is being done, bytes so far, bytes in all
_MOST_ATTEMPTS = 200  # at one file, even when each brings something
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)")


@dataclass(frozen=True, slots=True)
class Remote:
    """A file on a server, and what is known of it beforehand."""

    url: str
    size: int | None = None  # bytes
    sha256: str | None = None
    access: Access = field(default_factory=Access)

    @property
    def name(self) -> str:
        return shown(self.url).rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Patience:
    stall_s: float = 30.0  # without a byte, or with next to none: a new attempt
    attempts: int = 5  # in a row that bring nothing
    pause_s: float = 0.5  # before the second attempt; doubles up to 16 times that
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def wait(self, error: CloudUnreachable, failures: int) -> None:
        """Pause before the next attempt, as the server asks; raises `error` when there is to be none."""
        if error.retry_after_s is None or failures >= self.attempts:
            raise error
        self.sleep(max(error.retry_after_s, self.pause_s * 2 ** max(0, min(failures - 1, 4))))

    def persist(self, ask: Callable[[], T]) -> T:
        """The first answer that comes."""
        failures = 0
        while True:
            try:
                return ask()
            except CloudUnreachable as error:
                failures += 1
                self.wait(error, failures)


class _Origin(msgspec.Struct, frozen=True):
    """What the bytes in a .part file belong to."""

    url: str
    validator: str | None  # a strong ETag, or a date
    size: int | None


def download(remote: Remote, target: Path, report: Progress, patience: Patience) -> str:
    """Bring the file to `target`, and return its SHA-256. What is there already is used.

    Raises CloudUnreachable (StreamInterrupted when it was cut off), after which a call goes on where this one stopped; ChecksumMismatch
    when wrong bytes came twice; NotEnoughSpace; ModelNotFound, AuthenticationError, PermissionDenied, InvalidRequest.
    """
    if target.exists() and (digest := sha256_of(target)) == (remote.sha256 or digest):
        return digest
    part = _part_of(target)
    failures, wrong = 0, False
    for _ in range(_MOST_ATTEMPTS):
        before = _size_of(part)
        try:
            digest = _attempt(remote, part, report, patience)
        except CloudUnreachable as error:
            if isinstance(error, RangeRefused):
                _forget(part)
            failures = 0 if _size_of(part) > before else failures + 1
            patience.wait(error, failures)
            report(f"trying again: {error.message}", 0, None)
        except ChecksumMismatch:
            _forget(part)
            raise
        else:
            if digest == (remote.sha256 or digest):
                part.replace(target)
                _forget(part)
                return digest
            _forget(part)
            if wrong:
                problem = f"{shown(remote.url)}: the SHA-256 is {digest}, expected {remote.sha256}"
                raise ChecksumMismatch(problem, hint="the server has another file, or something on the way changes it; nothing was kept")
            wrong = True  # the fault of one attempt, perhaps: fetched once more from its first byte
    raise StreamInterrupted(f"{shown(remote.url)} broke off {_MOST_ATTEMPTS} times", hint="pull it again: it goes on where it stopped")


def _attempt(remote: Remote, part: Path, report: Progress, patience: Patience) -> str:
    """Fetch what is missing of `part`, and return the SHA-256 of the whole."""
    origin = _origin_of(part)
    have = _size_of(part) if origin is not None and origin.url == shown(remote.url) and (origin.validator or remote.sha256) else 0
    size = remote.size if remote.size is not None or origin is None else origin.size
    if have and have == size:
        return sha256_of(part)
    if size is not None and have > size:
        have = 0
    headers = {"Range": f"bytes={have}-"} if have else {}
    if have and origin is not None and origin.validator is not None:
        headers["If-Range"] = origin.validator
    with open_url(remote.url, remote.access, headers, patience.stall_s) as answer:
        start, size = _extent(answer, have, origin, remote)
        part.parent.mkdir(parents=True, exist_ok=True)
        if not start:
            _forget(part)
            origin = _Origin(shown(remote.url), _validator(answer), size)
            note_of(part).write_bytes(msgspec.json.encode(origin))
        need_space(part.parent, 0 if size is None else size - start)
        digest, blocks = hashlib.sha256(), blocks_of(answer, remote.url, patience.stall_s, patience.clock)
        done = _receive(blocks, part, start, size, digest, lambda now: report(f"downloading {remote.name}", now, size))
    if size is not None and done < size:
        raise StreamInterrupted(f"{shown(remote.url)} was cut off after {done:,} of {size:,} bytes", hint=GOES_ON, retry_after_s=0.0)
    if done == 0:
        raise StreamInterrupted(f"{shown(remote.url)} sent an empty file", hint="try again later", retry_after_s=0.0)
    return digest.hexdigest()


def _extent(answer: http.client.HTTPResponse, have: int, origin: _Origin | None, remote: Remote) -> tuple[int, int | None]:
    """Where the answer's bytes belong: the first one's place, and the size of the whole file."""
    start, size = 0, length_of(answer)
    if answer.status == 206:
        match = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        changed = origin is not None and None not in (origin.validator, now := _validator(answer)) and now != origin.validator
        if match is None or int(match[1]) != have or changed:
            raise RangeRefused(f"{shown(remote.url)} sent another part than the one asked for", retry_after_s=0.0)
        start, size = have, None if match[2] == "*" else int(match[2])
    if size == 0:
        raise StreamInterrupted(f"{shown(remote.url)} sent an empty file", hint="try again later", retry_after_s=0.0)
    if size is not None and remote.size not in (None, size):
        problem = f"{shown(remote.url)} has {size:,} bytes, expected {remote.size:,}"
        raise ChecksumMismatch(problem, hint="the server has another file; nothing was kept")
    return start, size if size is not None else remote.size


def _receive(
    blocks: Iterable[bytes], part: Path, start: int, size: int | None, digest: hashlib._Hash, report: Callable[[int], None]
) -> int:
    """Append what comes to the first `start` bytes of `part`; returns how many bytes it has then. Raises ChecksumMismatch past `size`."""
    done = start
    try:
        with part.open("r+b" if start else "wb", buffering=0) as out:
            while out.tell() < start and (block := out.read(min(BLOCK, start - out.tell()))):
                digest.update(block)
            out.truncate(start)
            report(done)
            for block in blocks:
                done += len(block)
                if size is not None and done > size:
                    raise ChecksumMismatch(
                        f"more than the {size:,} bytes expected came", hint="the server has another file; nothing was kept"
                    )
                write_all(out.write, block)
                digest.update(block)
                report(done)
    except OSError as error:
        raise full_disk(error, part.parent) from None
    return done


def _validator(answer: http.client.HTTPResponse) -> str | None:
    """What tells this version of the file from others, for If-Range: a weak ETag would not."""
    etag: str = answer.headers.get("ETag", "")
    date: str | None = answer.headers.get("Last-Modified")
    return etag if etag.startswith('"') else date


def _part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _origin_of(part: Path) -> _Origin | None:
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(note_of(part).read_bytes(), type=_Origin)
    return None


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    note_of(part).unlink(missing_ok=True)
