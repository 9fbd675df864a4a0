"""The two public sets of routing outcomes, and what is known of them from elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("HYBRID_SHARED", "../shared")) / "data" / "routing"


@dataclass(frozen=True)
class Known:
    """Published or computed once, without this code."""

    file: str
    rows: int
    weak: float
    strong: float
    length: float  # APGR of the prompt's length
    ridge: tuple[float, float]  # APGR of a TF-IDF ridge over five folds, by how the folds fall: on average .607 and .751
    oracle: float  # APGR


GSM8K = Known("gsm8k_mixtral_gpt4.jsonl", 1319, 0.638, 0.857, 0.601, (0.57, 0.64), 1.125)
MIXED = Known("mixed_8b_51b.jsonl", 5608, 0.561, 0.621, 0.614, (0.72, 0.78), 2.057)


def path_of(known: Known) -> Path:
    file = FOLDER / known.file
    if not file.exists():
        pytest.skip(f"{file} is not there: set HYBRID_SHARED to the folder of the shared data")
    return file
