"""The figures of memory planning are of the problems given, and every rule that is compared makes valid plans."""

import json
import subprocess
import sys
from pathlib import Path

from hybrid.compiler.memory.buffer import Buffer
from hybrid.compiler.memory.verifier import verify

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
from memory_planning import shared_objects  # noqa: E402

ROWS = [(f"b{i}", i % 7, i % 7 + 1 + i % 4, 1 + (i * 5) % 9) for i in range(20)]


def test_the_record_has_a_row_for_every_file(tmp_path: Path) -> None:
    (tmp_path / "ours.csv").write_text("id,lower,upper,size\n" + "".join(f"{','.join(map(str, row))}\n" for row in ROWS))
    command = [sys.executable, str(BENCHMARKS / "memory_planning.py"), "--json", "--baselines", "--files-only", "--data", str(tmp_path)]
    record = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    (row,) = record["results"]
    assert (row["file"], row["buffers"], row["valid"], row["optimal"]) == ("ours.csv", 20, True, True)
    assert row["bound"] == max(sum(size for _, lower, upper, size in ROWS if lower <= step < upper) for step in range(12))
    assert row["ratio"] == round(row["size"] / row["bound"], 4) == record["mean_ratio"]
    assert row["seconds"] >= 0
    assert all(found["mean_ratio"] >= row["ratio"] for found in record["baselines"].values())


def test_a_folder_without_problems_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "memory_planning.py"), "--data", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr


def test_shared_objects_stack_within_their_first_member_s_size() -> None:
    #  large is first and sets the object's size; left and right live with each other, and stand above one another in it
    buffers = [Buffer("large", 0, 1, 10), Buffer("left", 1, 3, 6), Buffer("right", 2, 4, 4), Buffer("odd", 1, 3, 5)]
    offsets = shared_objects(buffers)
    assert offsets == {"large": 0, "left": 0, "odd": 10, "right": 6}
    assert verify(buffers, offsets) == 15
