"""Wheels for tests: an archive with the given members, as pip accepts it."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(folder: Path, dist: str, version: str, members: Mapping[str, bytes]) -> Path:
    """Write DIST-VERSION-py3-none-any.whl. Its code would end the process, if anything ever ran it."""
    stem = f"{dist.replace('-', '_')}-{version}"
    path = folder / f"{stem}-py3-none-any.whl"
    files = {
        **members,
        f"{dist.replace('-', '_')}/__init__.py": b"raise SystemExit('code of a wheel was run')",
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n".encode(),
        f"{stem}.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in files) + f"{stem}.dist-info/RECORD,,\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, f"{stem}.dist-info/RECORD": record.encode()}.items():
            archive.writestr(name, content)
    return path
