"""Models of a Hugging Face hub: `hf:ORG/REPO[@REVISION][/FILE]`, asked directly, so that a pull resumes and gives up as all others do.

Two addresses of the hub's published interface are used, below HF_ENDPOINT (default https://huggingface.co), with HF_TOKEN if there is one:

    /api/models/ORG/REPO/revision/REVISION?blobs=true    the commit, and every file's size and, when it is large, SHA-256
    /ORG/REPO/resolve/COMMIT/FILE                        a file; all files of a pull are of one commit
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import msgspec

from ..errors import CloudUnreachable, InvalidRequest, ModelNotFound
from ..model_files import is_model_file
from .download import Patience, Remote
from .web import Access, get_document, shown

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,98}")
_COMMIT = re.compile(r"[A-Za-z0-9]{1,64}")
_DOUBLE = re.compile(r"consolidated.*\.safetensors")  # Mistral's: the same weights again, under names of their own
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+ -]{0,198}(?:/[A-Za-z0-9][A-Za-z0-9._+ -]{0,198}){0,4}")


@dataclass(frozen=True, slots=True)
class HubName:
    repo: str  # ORG/REPO
    revision: str
    file: str | None


class _Lfs(msgspec.Struct, frozen=True):
    sha256: str
    size: int


class _Sibling(msgspec.Struct, frozen=True):
    rfilename: str
    size: int | None = None
    lfs: _Lfs | None = None


class _Card(msgspec.Struct, frozen=True):
    license: object = None


class _Repo(msgspec.Struct, frozen=True, rename="camel"):
    sha: str
    siblings: list[_Sibling]
    card_data: _Card | None = None


@dataclass(frozen=True, slots=True)
class HubFiles:
    """What to download: one GGUF file, or the files of a folder."""

    remotes: Sequence[Remote]
    names: Sequence[str]  # plain names, one for each remote
    is_folder: bool
    licence: str | None


def parse_hub_name(rest: str) -> HubName:
    """Read what stands behind `hf:`. Raises InvalidRequest."""
    org, _, rest_of_it = rest.partition("/")
    repo, _, file = rest_of_it.partition("/")
    repo, at, revision = repo.partition("@")
    if at and file and not file.endswith((".gguf", ".safetensors")):
        revision, file = f"{revision}/{file}", ""  # a branch such as refs/pr/1
    well_formed = _NAME.fullmatch(org) and _NAME.fullmatch(repo) and (not at or _REVISION.fullmatch(revision)) and ".." not in rest
    if not well_formed or (file and not _FILE.fullmatch(file)):
        raise InvalidRequest(f"hf:{rest[:120]} is not of the form hf:ORG/REPO[@REVISION][/FILE]", param="name")
    if file and not file.endswith(".gguf"):
        raise InvalidRequest(
            f"hf:{rest[:120]}: a single file must end in .gguf", param="name", hint=f"hf:{org}/{repo} takes the whole folder"
        )
    return HubName(f"{org}/{repo}", revision or "main", file or None)


def find_on_hub(name: HubName, patience: Patience) -> HubFiles:
    """Ask the hub which files make the model: the one named, else the only GGUF file, else the folder of safetensors.

    Raises ModelNotFound with the choices, CloudUnreachable, AuthenticationError, PermissionDenied.
    """
    endpoint, access = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/"), Access(_credentials())
    listing = f"{endpoint}/api/models/{name.repo}/revision/{quote(name.revision, safe='')}?blobs=true"
    raw, _, _ = patience.persist(lambda: get_document(listing, access, {"Accept": "application/json"}, patience.stall_s, patience.clock))
    return read_listing(raw, name, endpoint, access)


def read_listing(raw: bytes, name: HubName, endpoint: str, access: Access) -> HubFiles:
    """Choose from the hub's list of a repository's files, which is not trusted. Raises ModelNotFound, CloudUnreachable."""
    try:
        repo = msgspec.json.decode(raw, type=_Repo)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        problem = f"{shown(endpoint)} answers with something else than a list of files of {name.repo}"
        raise CloudUnreachable(problem, hint="is HF_ENDPOINT a hub?") from None
    if not _COMMIT.fullmatch(repo.sha):
        raise CloudUnreachable(f"{shown(endpoint)} names no commit of {name.repo}: {repo.sha[:40]!r}", hint="is HF_ENDPOINT a hub?")
    chosen = _choose(name, repo)
    remotes = [
        Remote(
            f"{endpoint}/{name.repo}/resolve/{repo.sha}/{quote(file.rfilename)}",
            file.lfs.size if file.lfs else file.size,
            file.lfs.sha256 if file.lfs else None,
            access,
        )
        for file in chosen
    ]
    stated = repo.card_data.license if repo.card_data else None
    is_folder = not chosen[0].rfilename.endswith(".gguf")
    return HubFiles(remotes, [Path(file.rfilename).name for file in chosen], is_folder, stated[:80] if isinstance(stated, str) else None)


def _choose(name: HubName, repo: _Repo) -> list[_Sibling]:
    files = [file for file in repo.siblings if _FILE.fullmatch(file.rfilename)]
    ggufs = [file for file in files if file.rfilename.endswith(".gguf")]
    listed = ", ".join(file.rfilename for file in ggufs)[:1500] or "none"
    if name.file is not None:
        for file in ggufs:
            if file.rfilename == name.file:
                return [file]
        raise ModelNotFound(f"hf:{name.repo} holds no {name.file[:200]!r}; GGUF files there: {listed}")
    if len(ggufs) == 1:
        return ggufs
    if ggufs:
        raise ModelNotFound(f"hf:{name.repo} holds {len(ggufs)} GGUF files: {listed}", hint=f"name one: hf:{name.repo}/FILE")
    folder = [file for file in files if is_model_file(file.rfilename) and not _DOUBLE.fullmatch(file.rfilename)]
    there = {file.rfilename for file in folder}
    lacking = [file for file in ("config.json", "tokenizer.json") if file not in there]
    if not any(file.endswith(".safetensors") for file in there):
        lacking.append("*.safetensors")
    if lacking:
        raise ModelNotFound(f"hf:{name.repo} holds no GGUF file, and for a folder of safetensors it lacks {', '.join(lacking)}")
    return folder


def _credentials() -> dict[str, str]:
    """The token of HF_TOKEN, else of the file that `hf auth login` writes."""
    token = os.environ.get("HF_TOKEN", "").strip()
    home = os.environ.get("HF_HOME") or "~/.cache/huggingface"
    with suppress(OSError, RuntimeError, UnicodeDecodeError):
        token = token or Path(os.environ.get("HF_TOKEN_PATH") or f"{home}/token").expanduser().read_text().strip()
    return {"Authorization": f"Bearer {token}"} if token.isascii() and token.isprintable() and token else {}
