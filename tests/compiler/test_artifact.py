"""A compiled model on disk: whole and of the right model, or refused."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hybrid.compiler import cache
from hybrid.compiler.artifact import CONSTANTS, HEAD, PROGRAMS, Head, hash_of, read, write
from hybrid.compiler.cache import compiled_for
from hybrid.compiler.compile import compile_model, facts_of
from hybrid.compiler.program import Compiled, Shape
from hybrid.npu_backends.preset import load_preset
from hybrid.shared_protocol.compile_errors import ArtifactRejected
from hybrid.shared_protocol.model import Model

TARGET = load_preset("systolic-32")
SHAPES = (Shape(4, 1), Shape(1, 1))


@pytest.fixture(scope="module")
def compiled(tiny_llama: Model) -> Compiled:
    return compile_model(tiny_llama, facts_of(tiny_llama, TARGET, context=32, shapes=SHAPES))


@pytest.fixture
def folder(compiled: Compiled, tmp_path: Path) -> Path:
    write(compiled, tmp_path / "artifact")
    return tmp_path / "artifact"


def test_what_is_read_is_what_was_written_and_the_weights_are_mapped(compiled: Compiled, folder: Path) -> None:
    again = read(folder, file_hash=compiled.facts.file_hash)
    assert again.facts == compiled.facts
    assert again.programs == compiled.programs
    assert again.constants.keys() == {value.name for program in compiled.programs for value in program.graph.constants}
    for name, array in again.constants.items():
        np.testing.assert_array_equal(array, compiled.constants[name])
        assert array.dtype == compiled.constants[name].dtype and not array.flags.writeable and array.flags.c_contiguous
        assert array.ctypes.data % 64 == 0


def test_the_same_model_gives_the_same_artifact(compiled: Compiled, tiny_llama: Model, tmp_path: Path) -> None:
    one = write(compiled, tmp_path / "one")
    other = write(compile_model(tiny_llama, facts_of(tiny_llama, TARGET, context=32, shapes=SHAPES[::-1])), tmp_path / "other")
    assert one == other == hash_of(tmp_path / "one")
    assert one != write(compile_model(tiny_llama, facts_of(tiny_llama, TARGET, context=31, shapes=SHAPES)), tmp_path / "third")


def test_another_process_with_another_order_of_its_sets_gives_the_same_artifact(folder: Path, tiny_llama_path: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from hybrid.compiler.artifact import write\n"
        "from hybrid.compiler.compile import compile_model, facts_of\n"
        "from hybrid.compiler.program import Shape\n"
        "from hybrid.npu_backends.preset import load_preset\n"
        "from hybrid.shared_protocol.model import load_model\n"
        "model, target = load_model(Path(sys.argv[1])), load_preset('systolic-32')\n"
        "facts = facts_of(model, target, context=32, shapes=(Shape(4, 1), Shape(1, 1)))\n"
        "print(write(compile_model(model, facts), Path(sys.argv[2])))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    argv = [sys.executable, "-c", program, str(tiny_llama_path), str(folder.with_name("other"))]
    said = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.strip() == hash_of(folder)


@pytest.mark.parametrize("name", [HEAD, PROGRAMS, CONSTANTS])
@pytest.mark.parametrize("harm", ["cut", "flip", "gone", "empty"])
def test_a_torn_or_changed_file_is_refused(folder: Path, name: str, harm: str) -> None:
    path = folder / name
    content = bytearray(path.read_bytes())
    if harm == "gone":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes({"cut": content[:-7], "flip": content, "empty": b""}[harm])
    with pytest.raises(ArtifactRejected, match="compile again"):
        read(folder)


def test_another_form_and_another_model_are_refused(folder: Path) -> None:
    with pytest.raises(ArtifactRejected, match="is of the model tiny with the hash"):
        read(folder, file_hash="0" * 64)
    head = msgspec.json.decode((folder / HEAD).read_bytes())
    (folder / HEAD).write_bytes(msgspec.json.encode({**head, "form": 99}))
    with pytest.raises(ArtifactRejected, match="form is 99"):
        read(folder)


def test_a_folder_is_there_whole_or_not_at_all(compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError):
        write(compiled, tmp_path / "artifact")
    assert list(tmp_path.iterdir()) == []


def test_several_may_write_the_same_artifact_at_once(compiled: Compiled, tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                write(compiled, tmp_path / "artifact")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert read(tmp_path / "artifact").programs == compiled.programs
    assert [path.name for path in tmp_path.iterdir()] == ["artifact"]


def test_a_model_is_compiled_once_for_each_chip_context_and_scheme(tiny_llama: Model, tmp_path: Path) -> None:
    def find(context: int = 32, target: str = "systolic-32") -> cache.Found:
        return compiled_for(
            tiny_llama,
            facts_of(tiny_llama, load_preset(target), scheme="w8a8", context=context, shapes=[Shape(1, 1)]),
            root=tmp_path,
            always_keep=True,
        )

    first = find()
    assert (first.cached, find().cached) == (False, True)
    assert first.folder == find().folder and first.sha256 == find().sha256
    assert not find(context=31).cached and not find(target="rk3588").cached
    assert first.folder is not None
    (first.folder / CONSTANTS).write_bytes(b"")
    again = find()
    assert not again.cached  # what is torn is made anew
    assert find().cached


def test_a_small_model_is_not_kept_and_only_so_many_are(tiny_llama: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(context: int, always_keep: bool = True) -> cache.Found:
        return compiled_for(
            tiny_llama,
            facts_of(tiny_llama, TARGET, scheme="w8a8", context=context, shapes=[Shape(1, 1)]),
            root=tmp_path,
            always_keep=always_keep,
        )

    assert find(8, always_keep=False).folder is None and not (tmp_path / "compiled").exists()
    monkeypatch.setattr(cache, "KEPT", 2)
    for number, context in enumerate((8, 9, 10)):
        found = find(context)
        assert found.folder is not None
        os.utime(found.folder, (number, number))
    assert [find(context).cached for context in (9, 10, 8)] == [True, True, False]


def test_an_artifact_under_the_key_of_another_is_not_taken_for_it(tiny_llama: Model, tmp_path: Path) -> None:
    def find(context: int) -> cache.Found:
        return compiled_for(
            tiny_llama, facts_of(tiny_llama, TARGET, scheme="w8a8", context=context, shapes=[Shape(1, 1)]), root=tmp_path, always_keep=True
        )

    short, long = find(8), find(9)
    assert short.folder is not None and long.folder is not None
    shutil.rmtree(long.folder)
    shutil.copytree(short.folder, long.folder)
    again = find(9)
    assert not again.cached and again.compiled.facts.context == 9


def test_what_another_process_removes_at_once_is_used_all_the_same(
    tiny_llama: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_prune", shutil.rmtree)
    found = compiled_for(
        tiny_llama, facts_of(tiny_llama, TARGET, scheme="w8a8", context=8, shapes=[Shape(1, 1)]), root=tmp_path, always_keep=True
    )
    assert found.folder is None and found.compiled.constants


@pytest.mark.parametrize("shape", [[1 << 40, 1 << 40], [-64], [1 << 62, 64]])
def test_a_constant_of_an_impossible_shape_is_refused(folder: Path, shape: list[int]) -> None:
    head = msgspec.json.decode((folder / HEAD).read_bytes(), type=Head)
    name = next(iter(head.constants))
    changed = {**head.constants, name: msgspec.structs.replace(head.constants[name], shape=tuple(shape))}
    false = msgspec.structs.replace(head, constants=changed, sha256="")
    sha256 = hashlib.sha256(msgspec.json.encode(false, order="sorted")).hexdigest()
    (folder / HEAD).write_bytes(msgspec.json.encode(msgspec.structs.replace(false, sha256=sha256)))
    with pytest.raises(ArtifactRejected, match="stands outside"):
        read(folder)
