"""The models on this machine.

    ROOT/models/NAME/record.json     card, source, and the (size, mtime, inode) that the file had when its hash was taken
    ROOT/models/NAME/FILE.gguf       or, of a model that is a folder, ROOT/models/NAME/files/
    ROOT/partial/NAME+…/             a pull that has not ended yet (partial.py); never read by anything else
    ROOT/locks/NAME                  one pull or removal of a name at a time
    ROOT/hashes.json                 hashes of files outside the store, by (path, size, mtime, inode)

A model appears and disappears by one rename of its folder, so a name that is there is whole.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from .errors import ChecksumMismatch, ConfigError, Conflict, InvalidRequest, ModelFileError, ModelNotFound
from .model_card import ModelCard
from .model_files import FileState, model_files, sha256_of, state_of
from .sources.catalogue import load_catalogue
from .sources.partial import remove_unfinished
from .whole_file import replace_whole

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_CACHE_FROM_BYTES = 16 << 20  # smaller files are hashed as fast as a cache is read
_CACHE_ENTRIES = 64


class Record(msgspec.Struct, frozen=True):
    card: ModelCard
    file: str
    source: str
    state: FileState


class StoredModel(msgspec.Struct, frozen=True):
    card: ModelCard
    path: Path
    source: str
    state: FileState


class Store:
    """The models below `root`: HYBRID_HOME, else ~/.local/share/hybrid. Several processes may use it at once."""

    def __init__(self, root: Path | None = None) -> None:
        """Raises ConfigError when no folder is named and this user has no home."""
        try:
            self.root = root or Path(os.environ.get("HYBRID_HOME") or "~/.local/share/hybrid").expanduser()
        except RuntimeError as error:
            raise ConfigError(f"no place for models: {error}", hint="set HYBRID_HOME to a folder") from None

    def list(self) -> Sequence[StoredModel]:
        """All whole models, by name. Folders that are no models are in `broken`."""
        return [model for name in self._names() if isinstance(model := self._read(name), StoredModel)]

    def broken(self) -> dict[str, str]:
        """Names below the store that cannot be used, and why."""
        return {name: problem for name in self._names() if isinstance(problem := self._read(name), str)}

    def show(self, name: str) -> StoredModel:
        """Raises ModelNotFound, or ModelFileError when what is there is no model."""
        found = self._read(check_name(name))
        if found is None:
            catalogue = load_catalogue()
            brings = name if name in catalogue else f"brings {', '.join(catalogue)}, or file:PATH"
            raise self._absent(name, hint=f"hybrid pull {brings}")
        if isinstance(found, str):
            raise ModelFileError(
                f"the model {name!r} in {self._folder(name)} cannot be used: {found}", hint=f"hybrid rm {name}, then pull it again"
            )
        return found

    def path(self, name: str) -> Path:
        return self.show(name).path

    def has(self, name: str) -> bool:
        return os.path.lexists(self._folder(check_name(name)))

    def remove(self, name: str) -> None:
        """Remove a model, whole, broken, or pulled in part. Raises ModelNotFound."""
        with self.lock(name):
            unfinished = remove_unfinished(self.root, name)
            if self.has(name):
                removed = self.root / "partial" / name
                removed.parent.mkdir(exist_ok=True)
                self._folder(name).rename(removed)
                if removed.is_dir() and not removed.is_symlink():
                    shutil.rmtree(removed, ignore_errors=True)
                else:
                    removed.unlink()
            elif not unfinished:
                raise self._absent(name, hint=None)

    def add(self, name: str, path: Path, card: ModelCard, source: str) -> StoredModel:
        """Take a whole, checked file or folder, and the folder that it lies in, from ROOT/partial. The caller holds the lock.

        Raises Conflict.
        """
        for file in model_files(path):
            with file.open("rb") as written:
                os.fsync(written.fileno())
        folder = path.parent
        record = Record(card, path.name, source, state_of(path))
        (folder / "record.json").write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))
        target = self._folder(check_name(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.rename(target)
        except OSError:
            if not target.exists():
                raise
            raise Conflict(f"the model {name!r} is there already", hint=f"hybrid rm {name} first") from None
        return self.show(name)

    def checked(self, name: str) -> StoredModel:
        """`show`, and the file is the one that was pulled: by its state, or by its hash where the state has changed.

        Raises ChecksumMismatch when the content has changed.
        """
        model = self.show(name)
        try:
            unchanged = state_of(model.path) == model.state
        except FileNotFoundError:
            raise ModelFileError(
                f"the file {model.path} of the model {name!r} is gone", hint=f"hybrid rm {name}, then pull it again"
            ) from None
        return model if unchanged else self.verify(name)

    def verify(self, name: str) -> StoredModel:
        """Hash the file again. Raises ChecksumMismatch with both hashes; a new state of the same content is noted, if it can be."""
        model = self.show(name)
        found = sha256_of(model.path)
        if found != model.card.file_hash:
            raise ChecksumMismatch(
                f"the file of the model {name!r} has changed: its SHA-256 is {found}, at the pull it was {model.card.file_hash}",
                hint=f"hybrid rm {name}, then pull it again",
            )
        state = state_of(model.path)
        if state != model.state:
            record = msgspec.json.encode(Record(model.card, model.path.name, model.source, state))
            with suppress(OSError):  # a store that cannot be written only costs the next start a second
                replace_whole(self._folder(name) / "record.json", msgspec.json.format(record, indent=1))
        return msgspec.structs.replace(model, state=state)

    def hash_of(self, path: Path) -> str:
        """SHA-256 of a file outside the store, remembered while its path and state stay the same."""
        state, cache_path = state_of(path), self.root / "hashes.json"
        if state.size < _CACHE_FROM_BYTES:
            return sha256_of(path)
        key = f"{path.resolve()}|{state.size}|{state.mtime_ns}|{state.inode}"
        cache: dict[str, str] = {}
        with suppress(OSError, msgspec.MsgspecError):
            cache = msgspec.json.decode(cache_path.read_bytes(), type=dict[str, str])
        if key not in cache:
            cache[key] = sha256_of(path)
            newest = dict(list(cache.items())[-_CACHE_ENTRIES:])
            with suppress(OSError):  # as above
                self.root.mkdir(parents=True, exist_ok=True)
                replace_whole(cache_path, msgspec.json.encode(newest))
        return cache[key]

    @contextmanager
    def lock(self, name: str, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold `name` against other processes; waits for them, after calling `on_wait`. Raises ConfigError when nothing can be written."""
        path = self.root / "locks" / check_name(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            opened = path.open("w")
        except OSError as error:
            problem = f"the store {self.root} cannot be written: {error.strerror}"
            raise ConfigError(problem, hint="set HYBRID_HOME to a folder that can") from None
        with opened as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def lock_at_once(self, name: str) -> Iterator[bool]:
        """Hold `name` if nobody else does; yields whether it is held."""
        with ExitStack() as opened:
            try:
                file = opened.enter_context((self.root / "locks" / check_name(name)).open("w"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except (OSError, InvalidRequest):
                held = False
            yield held

    def _absent(self, name: str, hint: str | None) -> ModelNotFound:
        return ModelNotFound(f"the model {name!r} is not in the store; there: {', '.join(self._names()) or 'none'}", hint=hint)

    def _folder(self, name: str) -> Path:
        return self.root / "models" / name

    def _names(self) -> Sequence[str]:
        folder = self.root / "models"
        return sorted(entry.name for entry in folder.iterdir() if _NAME.fullmatch(entry.name)) if folder.is_dir() else []

    def _read(self, name: str) -> StoredModel | str | None:
        """The model, or why it cannot be used, or None when there is no such name."""
        folder = self._folder(name)
        if not os.path.lexists(folder):  # a link to nowhere is something that cannot be used, and can be removed
            return None
        try:
            record = msgspec.json.decode((folder / "record.json").read_bytes(), type=Record)
        except (OSError, msgspec.MsgspecError) as error:
            return f"its record is not readable ({type(error).__name__})"
        path = folder / record.file
        if path.parent != folder or not (path.is_file() or path.is_dir()) or record.file in ("", ".", ".."):
            return "its file is missing"
        return StoredModel(dataclasses.replace(record.card, name=name), path, record.source, record.state)  # a folder may be a copy


def check_name(name: str) -> str:
    """Return `name` when it can be a model's; raises InvalidRequest otherwise, so that no name leaves the store."""
    if not _NAME.fullmatch(name) or name.endswith(".gguf"):
        raise InvalidRequest(
            f"{name[:80]!r} is no model name: letters, digits, '.', '_' and '-', at most 64, not ending in .gguf", param="model"
        )
    return name
