"""Cost curves: measured once, kept on disk by what they were measured on, and never trusted when torn."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from hybrid.edge import cost_curve
from hybrid.edge.cost_curve import REPEATS, CostCurve, CurveKey, key_of

KEY = CurveKey("f" * 64, "native", "kernel-1", "cpu", 2)


@dataclass
class Work:
    """Feeding k tokens takes `seconds[k]`, but that the first time is three times as long."""

    seconds: dict[int, float]
    now: float = 0.0
    held: int = 0
    fed: list[int] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def extend(self, k: int) -> None:
        self.now += self.seconds[k] * (1 if k in self.fed else 3)
        self.fed.append(k)
        self.held += k

    def undo(self) -> None:
        self.held = 0


def work() -> Work:
    return Work({1: 0.25, 2: 0.5, 3: 0.375, 4: 1.0})


def curve_of(work: Work, folder: Path, key: CurveKey = KEY) -> CostCurve:
    return CostCurve(key, clock=work.clock, folder=folder)


def test_each_point_is_the_median_of_a_few_and_need_not_grow_with_k(tmp_path: Path) -> None:
    device = work()
    curve = curve_of(device, tmp_path)
    assert curve.upto(3, device.extend, device.undo).tolist() == [0.0, 250.0, 500.0, 375.0]
    assert device.fed == [1] * REPEATS + [2] * REPEATS + [3] * REPEATS
    assert device.held == 0


def test_a_longer_curve_is_measured_only_where_it_is_longer_by_any_process(tmp_path: Path) -> None:
    first, second = work(), work()
    curve_of(first, tmp_path).upto(2, first.extend, first.undo)
    curve = curve_of(second, tmp_path)
    assert curve.upto(4, second.extend, second.undo).tolist() == [0.0, 250.0, 500.0, 375.0, 1000.0]
    assert second.fed == [3] * REPEATS + [4] * REPEATS
    assert curve.upto(1, second.extend, second.undo).tolist() == [0.0, 250.0]


@pytest.mark.parametrize(
    "change", [{"file_hash": "e" * 64}, {"runtime": "llama_cpp"}, {"kernel_id": "k"}, {"cpu": "other"}, {"threads": 1}]
)
def test_what_was_measured_on_anything_else_is_measured_anew(tmp_path: Path, change: dict[str, str]) -> None:
    first, second = work(), work()
    curve_of(first, tmp_path).upto(1, first.extend, first.undo)
    curve_of(second, tmp_path, msgspec.structs.replace(KEY, **change)).upto(1, second.extend, second.undo)
    assert second.fed == [1] * REPEATS
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"key": {}, "ms": [0.0, 1.0]}',
        b"null",
        "other key",
        [0.0, -1.0],
        [1.0, 1.0],
        [],
        [0.0, 1e999],
        [0.0, "250"],
    ],
)
def test_a_file_that_is_no_curve_is_as_good_as_none_and_written_again(tmp_path: Path, content: object) -> None:
    device = work()
    curve_of(device, tmp_path).upto(1, device.extend, device.undo)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    stored = json.loads(whole)
    if isinstance(content, list):
        content = json.dumps({**stored, "ms": content}).encode()
    elif content == "other key":
        content = json.dumps({**stored, "key": {**stored["key"], "cpu": "other"}}).encode()
    assert isinstance(content, bytes)
    path.write_bytes(content)
    again = work()
    assert curve_of(again, tmp_path).upto(1, again.extend, again.undo).tolist() == [0.0, 250.0]
    assert again.fed == [1] * REPEATS
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]


def test_a_curve_that_cannot_be_kept_is_still_measured(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    device = work()
    curve = curve_of(device, tmp_path / "file" / "curves")
    assert curve.upto(1, device.extend, device.undo).tolist() == [0.0, 250.0]
    assert curve.upto(1, device.extend, device.undo).tolist() == [0.0, 250.0]
    assert device.fed == [1] * REPEATS


def test_a_measurement_that_fails_keeps_what_was_measured(tmp_path: Path) -> None:
    device = work()
    curve = curve_of(device, tmp_path)
    with pytest.raises(KeyError):
        curve.upto(5, device.extend, device.undo)
    assert len(curve.upto(4, device.extend, device.undo)) == 5
    assert device.fed.count(4) == REPEATS


def test_curves_are_kept_below_hybrid_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path))
    monkeypatch.setattr(cost_curve, "FOLDER", "cost_curves")  # tests in general keep theirs apart
    device = work()
    CostCurve(key_of("f" * 64, "native", "k", 2), clock=device.clock).upto(1, device.extend, device.undo)
    (path,) = (tmp_path / "cost_curves").iterdir()
    assert json.loads(path.read_bytes())["key"]["threads"] == 2
