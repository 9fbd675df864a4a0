"""A long text takes much memory while it is encoded, and leaves none of it behind."""

import sys
from pathlib import Path

import pytest
from hybrid.cloud.engine.frontend import LONG_CHARACTERS, Frontend
from hybrid.cloud.engine.scripted import Script, ScriptedEngine
from hybrid.shared_protocol.model import Model

TEXT = "a " * 400_000


def resident_mib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) >> 10


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what is resident")
async def test_a_long_text_leaves_no_memory_behind(tiny_llama: Model) -> None:
    assert len(TEXT) >= LONG_CHARACTERS
    frontend = Frontend(tiny_llama, ScriptedEngine(Script([b"x"]), max_model_len=64))
    await frontend.tokenize(TEXT[:LONG_CHARACTERS])
    before = resident_mib()
    ids = await frontend.tokenize(TEXT)
    assert len(ids) > 100_000
    del ids
    assert resident_mib() < before + 40
