"""Fixtures that every test may use: the real small model, pulled by our own means when it is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hybrid.shared_protocol.model import Model, load_model
from hybrid.tests.support.gguf_writer import write_tiny_llama

SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct: HYBRID_TEST_MODEL, or in the folder HYBRID_TEST_MODELS."""
    if path := os.environ.get("HYBRID_TEST_MODEL"):
        return Path(path)
    return Path(os.environ["HYBRID_TEST_MODELS"]) / SMOLLM2_FILE


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
