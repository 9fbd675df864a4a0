"""Opening, refusing, and closing executors."""

import ctypes
import dataclasses
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hybrid.npu_backends.cpu import library, select
from hybrid.npu_backends.cpu.executor import CpuExecutor
from hybrid.npu_backends.cpu.library import NativeUnavailable, describe
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.npu_backends.cpu.select import open_executor, serving_kernel_id
from hybrid.npu_backends.step import StepExecutor
from hybrid.shared_protocol.errors import ConfigError, EngineFailed, ModelFileError
from hybrid.shared_protocol.gguf import Tensor
from hybrid.shared_protocol.model import Model
from hybrid.tests.support.executors import ISAS, native, needs_native
from hybrid.tests.support.networks import FAMILIES, random_network, rotary
from hybrid.tests.support.steps import batch_of, run


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FILE_NAME", "absent.so")
    monkeypatch.delenv("HYBRID_KERNELS", raising=False)
    monkeypatch.delenv("HYBRID_BACKEND", raising=False)


@pytest.fixture(params=[pytest.param(CpuExecutor, marks=needs_native), ReferenceExecutor])
def executor(request: pytest.FixtureRequest, tiny_llama: Model) -> StepExecutor:
    opened: StepExecutor = request.param(tiny_llama, num_blocks=8)
    return opened


def test_closing_twice_is_harmless_and_a_step_afterwards_is_refused(executor: StepExecutor) -> None:
    executor.close()
    executor.close()
    with pytest.raises(EngineFailed, match="closed"):
        executor.step(batch_of([([1], 0, [1])]))
    assert executor.memory().kv == 0


def test_memory_counts_weights_cache_and_scratch(executor: StepExecutor) -> None:
    executor.step(batch_of([([1, 2], 0, [1])]))
    report = executor.memory()
    assert report.kv == 2 * 2 * 8 * 16 * 2 * 16 * 2  # K and V, layers, blocks, positions, heads, inputs, bytes of a half
    assert report.weights > 50_000 and report.peak > report.weights


@needs_native
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # that it has threads is the point
def test_a_step_after_a_fork_is_refused_and_does_not_hang_though_one_ran_meanwhile(tiny_llama: Model) -> None:
    with native(tiny_llama, threads=2) as opened:
        opened._lock.acquire()  # as a thread that is in a step
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a hang ends the child by its signal
            try:
                opened.step(batch_of([([1], 0, [1])]))
            except EngineFailed:
                end = 0 if opened.memory().kv == 0 else 2
                opened.close()
                os._exit(end)
            os._exit(1)
        opened._lock.release()
        assert os.waitpid(child, 0)[1] == 0


@needs_native
def test_opening_and_closing_many_times_leaks_nothing(tiny_llama: Model) -> None:
    def grown(times: int) -> int:
        before = native_memory()
        for _ in range(times):
            with native(tiny_llama, num_blocks=64, threads=2) as opened:
                opened.step(batch_of([([1, 2, 3], 0, [1])]))
        return native_memory() - before

    grown(10)  # whatever is allocated once
    assert grown(40) < 2_000_000  # one cache alone has 0.5 MB


def native_memory() -> int:
    """Bytes resident now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 if Path("/proc/self/statm").exists() else 0


@needs_native
def test_a_block_size_that_cuts_a_key_tile_is_refused(tiny_llama: Model) -> None:
    with pytest.raises(ConfigError, match="multiple of 16, found 24"):
        CpuExecutor(tiny_llama, num_blocks=8, block_size=24)


@needs_native
@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"head_dim": 24, "rotary": rotary(24, interleaved=True)}, "heads of a multiple of 16, found 24"),
        ({"rotary": rotary(8, interleaved=True)}, "rotary pairs that are a multiple of 8, found 4"),
        ({"num_heads": 3, "num_kv_heads": 1}, "query heads that together have a multiple of 32, found 48"),
    ],
)
def test_sizes_that_the_kernels_cannot_do_are_refused_with_the_number(tiny_llama: Model, changes: dict[str, Any], problem: str) -> None:
    architecture = dataclasses.replace(tiny_llama.architecture, **changes)
    with pytest.raises(ConfigError, match=problem):
        CpuExecutor(dataclasses.replace(tiny_llama, architecture=architecture), num_blocks=8)


@needs_native
def test_a_model_that_the_kernels_cannot_do_is_served_by_the_reference(tiny_llama: Model) -> None:
    model = random_network(tiny_llama, head_dim=24, rotary=rotary(24, interleaved=True), attention_scale=24**-0.5)
    opened = open_executor(model, num_blocks=8, environment={})
    assert opened.kernel_id.startswith("numpy-") and np.isfinite(run(opened, [1, 2, 3], [1])).all()


@needs_native
def test_a_library_whose_structs_have_other_sizes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wider(library.Batch):
        _fields_ = (("more", ctypes.c_int64),)

    monkeypatch.setattr(library, "STRUCTS", tuple(Wider if struct is library.Batch else struct for struct in library.STRUCTS))
    assert "lays Wider out in 56 bytes, this version in 64" in describe().reason


@needs_native
def test_a_matrix_that_does_not_fill_groups_is_refused_natively_and_served_by_the_reference(tiny_llama: Model) -> None:
    tensors = dict(tiny_llama.tensors)
    tensors["unused.weight"] = Tensor("unused.weight", "F16", (16, 40), np.zeros(16 * 40 * 2, np.uint8))
    model = dataclasses.replace(tiny_llama, tensors=tensors)
    with pytest.raises(ModelFileError, match=r"'unused.weight' has the shape \[16, 40\]; .* multiple of 32 weights for F16"):
        open_executor(model, num_blocks=8, backend="native")
    assert open_executor(model, num_blocks=8, environment={}).kernel_id.startswith("numpy-")


@needs_native
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("scale", [0x7E00, 0x7C00, 0xFC00])  # NaN, infinity, and minus infinity, as f16
def test_one_scale_that_is_no_number_makes_an_answer_that_is_none(tiny_llama: Model, isa: str, scale: int) -> None:
    for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        matrix = tiny_llama.tensors[f"blk.0.{part}.weight"]
        blocks = matrix.data.reshape(-1, 20).copy()
        blocks[0, 0:2] = [scale & 255, scale >> 8]
        tensors = {**tiny_llama.tensors, matrix.name: Tensor(matrix.name, "Q4_1", matrix.shape, blocks.reshape(-1))}
        with native(dataclasses.replace(tiny_llama, tensors=tensors), isa) as opened:
            assert not np.isfinite(run(opened, [1, 2, 3, *range(20, 60)], [1, 2, 3])).all(), part


@needs_native
@pytest.mark.parametrize("isa", ISAS)
def test_a_token_that_is_no_number_spoils_the_tokens_after_it_and_no_token_before(tiny_llama: Model, isa: str) -> None:
    matrix = tiny_llama.tensors["token_embd.weight"]
    blocks = matrix.data.reshape(matrix.shape[0], -1).copy()
    blocks[5, 0:2] = [0x00, 0x7E]
    tensors = {**tiny_llama.tensors, matrix.name: Tensor(matrix.name, matrix.type_name, matrix.shape, blocks.reshape(-1))}
    with native(dataclasses.replace(tiny_llama, tensors=tensors), isa) as opened:
        logits = run(opened, [20, 21, 22, 5, 23, 24], [1])
    others = np.arange(logits.shape[1]) != 5  # the embedding is the output matrix, too
    assert np.isfinite(logits[:3, others]).all()
    assert not np.isfinite(logits[3:]).any()


@needs_native
@pytest.mark.parametrize("family", ["llama", "gemma2"])  # caps on scores and logits must not make a number of what is none
def test_infinite_weights_give_an_answer_that_is_not_finite_and_no_crash(tiny_llama: Model, family: str) -> None:
    network = random_network(tiny_llama, **FAMILIES[family])
    tensors = dict(network.tensors)
    matrix = tensors["blk.1.ffn_gate.weight"]
    blocks = matrix.data.reshape(-1, 20).copy()
    blocks[:, 0:2] = [0x00, 0x7C]  # d = infinity
    tensors[matrix.name] = Tensor(matrix.name, "Q4_1", matrix.shape, blocks.reshape(-1))
    model = dataclasses.replace(network, tensors=tensors)
    for isa in ("scalar", ""):
        with native(model, isa) as opened:
            assert not np.isfinite(run(opened, [1, 2, 3], [1])).all()


def test_the_library_is_found_or_the_reason_is_given(no_library: None, tmp_path: Path) -> None:
    status = describe({})
    assert not status.found and status.kernel_id is None and "no C++ compiler" in status.reason
    assert "does not exist" in describe({"HYBRID_KERNELS": str(tmp_path / "gone.so")}).reason
    (tmp_path / "text.so").write_text("no library")
    assert "cannot be loaded" in describe({"HYBRID_KERNELS": str(tmp_path / "text.so")}).reason


@needs_native
def test_a_library_that_was_named_is_not_replaced_by_the_one_that_was_built() -> None:
    assert "HYBRID_KERNELS=/gone.so does not exist" in describe({"HYBRID_KERNELS": "/gone.so"}).reason


@needs_native
def test_an_unknown_instruction_set_is_refused() -> None:
    assert "HYBRID_ISA=mmx" in describe({"HYBRID_ISA": "mmx"}).reason
    assert "scalar (name one of these" in describe({"HYBRID_ISA": "mmx"}).reason


@needs_native
def test_the_kernel_id_names_instruction_set_and_version(tiny_llama: Model) -> None:
    with native(tiny_llama, "scalar") as opened:
        assert opened.kernel_id == "scalar-3"
    assert describe().kernel_id in ("scalar-3", "avx2-3", "avx512-3", "neon-3")


@pytest.mark.parametrize("threads", [-1, 0, 1025])
def test_a_number_of_threads_that_cannot_work_is_refused(tiny_llama: Model, threads: int) -> None:
    with pytest.raises(ConfigError, match=f"threads must be from 1 to 1024, found {threads}"):
        open_executor(tiny_llama, num_blocks=8, threads=threads)


@needs_native
def test_too_little_memory_is_told_and_not_covered_by_the_reference(tiny_llama: Model) -> None:
    with pytest.raises(EngineFailed, match="too little memory"):
        open_executor(tiny_llama, num_blocks=1 << 30, block_size=1024, environment={})  # 2^48 bytes


def test_without_the_library_the_reference_serves_and_native_is_refused(no_library: None, tiny_llama: Model) -> None:
    assert open_executor(tiny_llama, num_blocks=8).kernel_id.startswith("numpy-")
    with pytest.raises(NativeUnavailable, match="no C\\+\\+ compiler"):
        open_executor(tiny_llama, num_blocks=8, backend="native")


def test_that_the_reference_serves_is_said_once(no_library: None, tiny_llama: Model, caplog: pytest.LogCaptureFixture) -> None:
    select._warn_once.cache_clear()
    for _ in range(3):
        open_executor(tiny_llama, num_blocks=8)
    assert [record.message.count("NumPy reference serves") for record in caplog.records] == [1]


def test_the_kernel_id_is_known_before_a_model_is_opened(no_library: None, tiny_llama: Model) -> None:
    for environment in ({}, {"HYBRID_BACKEND": "reference"}):
        assert serving_kernel_id(environment) == open_executor(tiny_llama, num_blocks=8, environment=environment).kernel_id
    with pytest.raises(NativeUnavailable):
        serving_kernel_id({"HYBRID_BACKEND": "native"})


@needs_native
def test_the_environment_decides_for_auto_only(tiny_llama: Model) -> None:
    reference = {"HYBRID_BACKEND": "reference"}
    assert isinstance(open_executor(tiny_llama, num_blocks=8, environment=reference), ReferenceExecutor)
    assert isinstance(open_executor(tiny_llama, num_blocks=8, backend="native", environment=reference), CpuExecutor)
    with pytest.raises(ConfigError, match="'gpu' is not known"):
        open_executor(tiny_llama, num_blocks=8, environment={"HYBRID_BACKEND": "gpu"})
