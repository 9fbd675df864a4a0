"""A store of its own for every test of a way to bring a model, and the bytes of a model to bring."""

from __future__ import annotations

from pathlib import Path

import pytest
from hybrid.shared_protocol.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home")


@pytest.fixture
def whole(tiny_llama_path: Path) -> bytes:
    return tiny_llama_path.read_bytes()
