"""Fixtures that every test may use: the real small model, pulled by our own means when it is not there."""

# ruff: noqa: E402 (what NumPy reads when it is loaded has to be said before)

from __future__ import annotations

import os
import signal
from pathlib import Path

# NumPy's products in one thread, here and in what tests start: two workers on two cores that each wait for two threads, spinning, take
# nine times as long for a small matrix.
for _library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import hypothesis
import pytest
from hybrid.edge import cost_curve
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.sources.catalogue import load_catalogue
from hybrid.shared_protocol.sources.pull import pull
from hybrid.shared_protocol.store import Store
from hybrid.tests.support.gguf_writer import write_tiny_llama

SMOLLM2 = "smollm2-135m"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so started in the background; commands under test would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("hybrid", deadline=None)  # tests count steps, never seconds: the machine may be busy
hypothesis.settings.load_profile("hybrid")


@pytest.fixture(scope="session", autouse=True)
def curves_of_tests_apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Times measured while tests run are not to be kept in the user's store, where they would be believed."""
    cost_curve.FOLDER = str(tmp_path_factory.mktemp("cost_curves"))


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct: HYBRID_TEST_MODEL, or in the folder HYBRID_TEST_MODELS, or in the store, pulled into it when missing."""
    if path := os.environ.get("HYBRID_TEST_MODEL"):
        return Path(path)
    there = Path(os.environ.get("HYBRID_TEST_MODELS", "/nonexistent")) / load_catalogue()[SMOLLM2].file
    if there.exists():
        return there
    store = Store()
    pull(SMOLLM2, store, progress=lambda what, done, total: None)
    return store.path(SMOLLM2)


@pytest.fixture(scope="session")
def smollm2(smollm2_path: Path) -> Model:
    """The real model, loaded once."""
    return load_model(smollm2_path)


@pytest.fixture(scope="session")
def tiny_llama_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of 2 layers with random weights, vocabulary 320: real in every way but its words."""
    return write_tiny_llama(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="session")
def tiny_llama(tiny_llama_path: Path) -> Model:
    return load_model(tiny_llama_path)
