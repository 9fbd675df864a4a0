"""The closed forms give the published simulator's numbers, with the first fill and last drain of its buffers too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from npu_cycles import GOLDEN, compare


def test_every_layer_that_the_simulator_was_run_on_takes_its_cycles() -> None:
    rows = [compare(*line) for line in GOLDEN]
    assert [row for row in rows if not row["equal"]] == []
    assert len(rows) == 20 and sum("ours_filled" in row for row in rows) == 12
