"""Panels are made once, and what is mapped later is what would be made now."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hybrid.npu_backends.cpu import weights
from hybrid.quant import panel_file
from hybrid.quant.panel_file import Panels, panels_of, panels_path
from hybrid.quant.repack import repack
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.executors import native, needs_native
from hybrid.tests.support.steps import run
from numpy.typing import NDArray

HASH = "ab" * 32


@pytest.fixture(autouse=True)
def keep_small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_file, "SMALLEST", 0)
    monkeypatch.setattr(panel_file, "SPARE", 0)


@pytest.fixture
def matrices(tiny_llama: Model) -> Mapping[str, Tensor]:
    return {name: tensor for name, tensor in tiny_llama.tensors.items() if len(tensor.shape) == 2}


def assert_right(panels: Panels, matrices: Mapping[str, Tensor]) -> None:
    assert panels.arrays.keys() == matrices.keys()
    for name, tensor in matrices.items():
        assert np.array_equal(panels.arrays[name], repack(tensor))
        assert panels.arrays[name].ctypes.data % 64 == 0


def test_the_second_start_maps_what_the_first_made(tmp_path: Path, matrices: Mapping[str, Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "model.panels"
    first = panels_of(matrices, HASH, path)
    assert_right(first, matrices)
    monkeypatch.setattr(panel_file, "repack", None)  # nothing is packed again
    second = panels_of(matrices, HASH, path)
    assert_right(second, matrices)
    assert first.path == second.path == path
    assert first.nbytes == second.nbytes == sum(array.nbytes for array in first.arrays.values())
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_makes_the_same_panels(threads: int, matrices: Mapping[str, Tensor]) -> None:
    assert_right(panels_of(matrices, HASH, None, threads), matrices)


@pytest.mark.parametrize("damage", ["cut", "longer", "another header", "empty", "noise"])
def test_a_file_that_does_not_fit_is_made_anew(damage: str, tmp_path: Path, matrices: Mapping[str, Tensor]) -> None:
    path = tmp_path / "model.panels"
    panels_of(matrices, HASH, path)
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[:-1],
            "longer": whole + b"\0",
            "another header": whole.replace(b'"layout"', b'"lay_out"', 1),
            "empty": b"",
            "noise": bytes(len(whole)),
        }[damage]
    )
    assert_right(panels_of(matrices, HASH, path), matrices)
    assert path.read_bytes() == whole


def test_another_model_or_layout_under_the_same_path_is_not_taken(
    tmp_path: Path, matrices: Mapping[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.panels"
    panels_of(matrices, HASH, path)
    before = path.stat().st_ino
    panels_of(matrices, "cd" * 32, path)
    after = path.stat().st_ino
    assert after != before
    monkeypatch.setattr(panel_file, "LAYOUT", 10_000)
    panels_of(matrices, "cd" * 32, path)
    assert path.stat().st_ino != after


def test_where_nothing_can_be_written_the_panels_are_in_memory(tmp_path: Path, matrices: Mapping[str, Tensor]) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    panels = panels_of(matrices, HASH, blocked / "model.panels")
    assert panels.path is None
    assert_right(panels, matrices)


def test_a_disk_without_room_is_left_alone(tmp_path: Path, matrices: Mapping[str, Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel_file, "SPARE", 1 << 60)
    assert panels_of(matrices, HASH, tmp_path / "model.panels").path is None
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_packing_leaves_no_file(tmp_path: Path, matrices: Mapping[str, Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tensor: Tensor, out: object) -> None:
        raise RuntimeError("power")

    monkeypatch.setattr(panel_file, "repack", broken)
    with pytest.raises(RuntimeError, match="power"):
        panels_of(matrices, HASH, tmp_path / "model.panels")
    assert list(tmp_path.iterdir()) == []


def test_several_threads_may_make_the_same_file_at_once(tmp_path: Path, matrices: Mapping[str, Tensor]) -> None:
    path, together = tmp_path / "model.panels", threading.Barrier(4)

    def slow(tensor: Tensor, out: NDArray[np.uint8]) -> None:
        if tensor.name == "token_embd.weight":
            together.wait(60)  # all have begun their file before one of them ends it
        repack(tensor, out)

    with ThreadPoolExecutor(4) as pool:
        for panels in pool.map(lambda _: panels_of(matrices, HASH, path, 1, slow), range(4)):
            assert_right(panels, matrices)
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_has_left_goes_and_what_is_being_made_stays(tmp_path: Path, matrices: Mapping[str, Tensor]) -> None:
    path = tmp_path / "model.panels"
    left, begun, other = (tmp_path / name for name in ("model.panels.dead", "model.panels.new", "model.gguf"))
    for file in (left, begun, other):
        file.write_bytes(b"half")
        os.utime(file, (1, 1))
    os.utime(begun)
    panels_of(matrices, HASH, path)
    assert set(tmp_path.iterdir()) == {path, begun, other}


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path, matrices: Mapping[str, Tensor]) -> None:
    path = tmp_path / "model.panels"
    os.mkfifo(path)
    assert panels_of(matrices, HASH, path).path == path
    assert path.is_file()


def test_outside_the_store_the_four_used_last_are_kept(tmp_path: Path, matrices: Mapping[str, Tensor]) -> None:
    root = tmp_path / "home"
    for number in range(6):
        file_hash = f"{number:064x}"[::-1]
        path = panels_path(Path("/elsewhere/model.gguf"), file_hash, root)
        panels_of(matrices, file_hash, path)
        os.utime(path, (number, number))
    kept = sorted(path.name[0] for path in (root / "panels").iterdir())
    assert kept == ["2", "3", "4", "5"]


def test_a_model_of_the_store_has_its_panels_beside_it(tmp_path: Path) -> None:
    model = tmp_path / "models" / "mine" / "mine.gguf"
    assert panels_path(model, HASH, tmp_path) == tmp_path / "models" / "mine" / "mine.gguf.panels"
    assert panels_path(tmp_path / "mine.gguf", HASH, tmp_path).parent == tmp_path / "panels"


@needs_native
def test_an_executor_on_mapped_panels_computes_the_same(tmp_path: Path, tiny_llama: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    logits = []
    for kept_at in (None, tmp_path / "model.panels", tmp_path / "model.panels"):
        monkeypatch.setattr(weights, "_kept_at", lambda model, path=kept_at: path)
        with native(tiny_llama) as executor:
            logits.append(run(executor, [5, 6, 7], [1]))
    assert (tmp_path / "model.panels").exists()
    assert np.array_equal(logits[0], logits[1]) and np.array_equal(logits[0], logits[2])


_PEAK = """
import sys
from pathlib import Path
import numpy as np
from hybrid.quant import panel_file
from hybrid.shared_protocol.gguf import Tensor, read_gguf
gguf = read_gguf(sys.argv[1])
held = lambda what: int(dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())[what].split()[0]) * 1024
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew: a process inherits that of the one that started it
before = held("VmRSS")
panel_file.panels_of({n: t for n, t in gguf.tensors.items() if len(t.shape) == 2}, "ab" * 32, Path(sys.argv[2]))
print(held("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_making_panels_takes_little_more_memory_than_one_matrix(smollm2_path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(smollm2_path), str(tmp_path / "model.panels")], capture_output=True, text=True, check=True
    )
    largest = 49152 * 576 * 34 // 32  # the embedding, Q8_0
    assert int(done.stdout) < 2.5 * largest < 1.3 * smollm2_path.stat().st_size
