"""What only llama.cpp's runtime offers: forks in one batch, snapshots, a stop in the middle of a decode; and a session over it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hybrid.edge.llama_cpp.runtime import LlamaCppRuntime
from hybrid.edge.native import NativeRuntime
from hybrid.edge.open_runtime import open_runtime
from hybrid.edge.session import Session
from hybrid.shared_protocol.errors import Cancelled, ConfigError, EngineFailed, InvalidRequest, ModelFileError, RuntimeClosed, Unavailable
from hybrid.shared_protocol.model import Model, load_model
from hybrid.shared_protocol.runtime import Branching, Snapshotting
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.edge.conformance import LLAMA_CPP
from hybrid.tests.support.gguf_writer import write_tiny_llama

IDS = [(i * 7919 + 11) % 320 for i in range(40)]


@pytest.fixture
def tiny(tiny_llama: Model) -> Iterator[LlamaCppRuntime]:
    runtime = LlamaCppRuntime(tiny_llama, threads=1, context=64, sequences=3)
    yield runtime
    runtime.close()


def test_what_is_offered_is_told_by_type(tiny: LlamaCppRuntime, tiny_llama: Model) -> None:
    native = NativeRuntime(tiny_llama)
    assert isinstance(tiny, Branching)
    assert isinstance(tiny, Snapshotting)
    assert not isinstance(native, Branching)
    assert not isinstance(native, Snapshotting)
    native.close()


def test_branches_of_one_past_are_computed_in_one_batch(tiny: LlamaCppRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny.extend(IDS[:20], rows=0)
    left, right = tiny.fork(), tiny.fork()
    alone = []
    for ids in (IDS[20:24], IDS[24:30], [1]):
        alone.append(tiny.extend(ids))
        tiny.truncate(20)
    batches = []
    decode = tiny._shared.context.decode  # type: ignore[union-attr]
    monkeypatch.setattr(tiny._shared.context, "decode", lambda feeds: (batches.append(len(feeds)), decode(feeds))[1])  # type: ignore[union-attr]
    together = right.extend_branches([(tiny, IDS[20:24]), (left, IDS[24:30]), (right, [1])])
    assert batches == [3]
    for found, expected in zip(together, alone, strict=True):
        LLAMA_CPP.assert_same(found, expected)
    assert [branch.length for branch in (tiny, left, right)] == [24, 26, 21]


def test_forks_live_on_when_the_first_is_closed_and_all_share_one_context(tiny: LlamaCppRuntime) -> None:
    expected = tiny.extend(IDS[:5])
    fork = tiny.fork()
    other = fork.fork()
    with pytest.raises(Unavailable, match="all 3 sequences"):
        fork.fork()
    weights = fork.memory().weights
    tiny.close()
    assert fork.memory().weights == weights
    again = other.fork()  # the sequence of the closed one is free
    assert again.length == 5
    fork.truncate(4)
    LLAMA_CPP.assert_same(fork.extend(IDS[4:5]), expected)
    for runtime in (fork, other, again):
        runtime.close()
    with pytest.raises(RuntimeClosed):
        fork.fork()


def test_branches_that_are_no_family_are_refused(tiny: LlamaCppRuntime, tiny_llama: Model) -> None:
    stranger = LlamaCppRuntime(tiny_llama, threads=1, context=64)
    closed = tiny.fork()
    closed.close()
    for branches in ([(tiny, [1]), (stranger, [1])], [(tiny, [1]), (tiny, [2])], [(tiny, [1]), (closed, [1])]):
        with pytest.raises(InvalidRequest, match="forked from one another"):
            tiny.extend_branches(branches)
    assert (tiny.length, stranger.length) == (0, 0)
    stranger.close()


def test_when_one_branch_cannot_go_on_none_does(tiny: LlamaCppRuntime) -> None:
    fork = tiny.fork()
    with pytest.raises(InvalidRequest, match="319"):
        tiny.extend_branches([(tiny, [1]), (fork, [320])])
    tiny.cancel()
    with pytest.raises(Cancelled):
        tiny.extend_branches([(tiny, [1]), (fork, [2])])
    assert (tiny.length, fork.length) == (0, 0)


def test_a_snapshot_is_taken_up_by_another_runtime_of_the_same_model(tiny: LlamaCppRuntime, tiny_llama: Model) -> None:
    tiny.extend(IDS[:30], rows=0)
    snapshot = tiny.snapshot()
    expected = tiny.extend(IDS[30:31])
    other = LlamaCppRuntime(tiny_llama, threads=1, context=64)
    other.restore(snapshot)
    assert other.length == 30
    LLAMA_CPP.assert_same(other.extend(IDS[30:31]), expected)
    other.close()


def test_a_snapshot_that_is_torn_or_foreign_changes_nothing(tiny: LlamaCppRuntime, tiny_llama: Model, tmp_path: Path) -> None:
    tiny.extend(IDS[:30], rows=0)
    snapshot = tiny.snapshot()
    tiny.truncate(10)
    flipped = bytearray(snapshot)
    flipped[-7] ^= 1
    for torn in (b"", snapshot[:-1], bytes(flipped), snapshot + b"\0", snapshot[:40]):
        with pytest.raises(InvalidRequest, match="torn"):
            tiny.restore(torn)
    small = LlamaCppRuntime(tiny_llama, threads=1, context=16)
    with pytest.raises(InvalidRequest, match="holds 30 tokens, this runtime 16"):
        small.restore(snapshot)
    small.close()
    foreign = LlamaCppRuntime(load_model(write_tiny_llama(tmp_path / "other.gguf", seed=1)), threads=1, context=64)
    with pytest.raises(InvalidRequest, match="of another model"):
        foreign.restore(snapshot)
    assert (tiny.length, foreign.length) == (10, 0)
    foreign.close()


def test_a_cancellation_in_the_middle_of_a_decode_stops_it(tiny: LlamaCppRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    context = tiny._shared.context  # type: ignore[union-attr]
    decode: Callable[..., int] = context._lib.llama_decode
    statuses = []

    def cancelled_after_the_last_look(*arguments: object) -> int:
        tiny.cancel()
        statuses.append(decode(*arguments))
        return statuses[-1]

    tiny.extend(IDS[:3], rows=0)
    monkeypatch.setattr(context._lib, "llama_decode", cancelled_after_the_last_look)
    with pytest.raises(Cancelled):
        tiny.extend(IDS)
    monkeypatch.undo()
    assert statuses == [2]  # llama.cpp's word for "aborted": it did not compute to the end
    assert tiny.length == 3
    tiny.extend(IDS)
    assert tiny.length == 43


def test_a_file_that_llama_cpp_does_not_read_is_refused_with_its_reason(tiny_llama: Model, tmp_path: Path) -> None:
    torn = tmp_path / "torn.gguf"
    torn.write_bytes(tiny_llama.path.read_bytes()[:-2000])
    with pytest.raises(ModelFileError, match=r"llama\.cpp does not load torn\.gguf: .+"):
        LlamaCppRuntime(Model(tiny_llama.card, tiny_llama.architecture, {}, tiny_llama.tokenizer, None, torn))


def test_a_folder_is_refused_with_the_runtime_that_reads_it(tiny_llama: Model, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"reads GGUF files, and .+ is a folder .*--runtime native"):
        LlamaCppRuntime(Model(tiny_llama.card, tiny_llama.architecture, {}, tiny_llama.tokenizer, None, tmp_path))


def test_numbers_that_make_no_runtime_are_refused(tiny_llama: Model) -> None:
    with pytest.raises(ConfigError, match="threads"):
        LlamaCppRuntime(tiny_llama, threads=0)
    with pytest.raises(ConfigError, match="sequences"):
        LlamaCppRuntime(tiny_llama, sequences=0)
    with pytest.raises(ConfigError, match="the runtime 'other' is not known"):
        open_runtime(tiny_llama, "other")  # type: ignore[arg-type]


def test_a_session_answers_over_it(smollm2: Model) -> None:
    session = Session(open_runtime(smollm2, "llama_cpp", threads=1, context=256), smollm2)
    messages = [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}]
    params = SamplingParams(temperature=0.0, max_tokens=10)
    first = list(session.chat(messages, params))
    assert "Paris" in "".join(chunk.text for chunk in first)
    again = session.chat(messages, params)
    assert again.num_cached == again.num_prompt - 1
    assert len(list(again)) == len(first)
    assert all(np.isfinite(chunk.signal.logprob) for chunk in first)
    session.held.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # that it has threads is the point
def test_after_a_fork_during_a_decode_the_child_is_refused_and_does_not_hang(tiny: LlamaCppRuntime) -> None:
    tiny.extend(IDS[:5])
    tiny.fork()
    lock = tiny._shared.context._lock  # type: ignore[union-attr]
    lock.acquire()  # as a thread that is in a decode
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a hang ends the child by its signal
        try:
            tiny.extend([1])
        except EngineFailed as error:
            tiny.close()
            os._exit(0 if "before a fork" in str(error) else 2)
        os._exit(1)
    lock.release()
    assert os.waitpid(child, 0)[1] == 0
    assert tiny.length == 5
