"""The public sets, where they are."""

from pathlib import Path

import pytest
from hybrid.tests.support.routing_data import GSM8K, MIXED, path_of


@pytest.fixture(scope="session")
def gsm8k() -> Path:
    return path_of(GSM8K)


@pytest.fixture(scope="session")
def mixed() -> Path:
    return path_of(MIXED)
