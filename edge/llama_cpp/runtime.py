"""llama.cpp as the device's runtime: the same protocol, another kernel. Its logits are near ours, not equal to them.

runtime ── fork() ──► runtime          each is one sequence; they share weights and the cells of their common past
     └── one LlamaContext ──┘          which goes when the last of them is closed
"""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...npu_backends.cpu.process import peak_bytes, usable_cpus
from ...shared_protocol.errors import ConfigError, EngineFailed, InvalidRequest, RuntimeClosed, Unavailable
from ...shared_protocol.model import Model
from ...shared_protocol.runtime import EdgeRuntime, MemoryReport
from ..checks import check_length, checked_ids, chosen_context
from ..cost_curve import CostCurve, key_of
from .batch import Feed
from .context import LlamaContext

MAX_THREADS, MAX_SEQUENCES = 1024, 64
_SNAPSHOT = struct.Struct("<32s32sI")  # SHA-256 of what follows it, of model and kernel; tokens


class LlamaCppRuntime(EdgeRuntime):
    """Every `extend` holds all of its ids or, when it raises, none of them.

    `sequences`: how many runtimes may share these weights by `fork`, this one included; each can hold `context` tokens.
    """

    def __init__(
        self,
        model: Model,
        threads: int | None = None,
        context: int | None = None,
        sequences: int = 1,
        clock: Callable[[], float] = time.perf_counter,
        curves: Path | None = None,
    ) -> None:
        """Raises LlamaCppUnavailable, ModelFileError when llama.cpp does not know the model, InvalidRequest, ConfigError, EngineFailed."""
        if threads is not None and not 1 <= threads <= MAX_THREADS:
            raise ConfigError(f"threads must be from 1 to {MAX_THREADS}, found {threads}", param="threads")
        if not 1 <= sequences <= MAX_SEQUENCES:
            raise ConfigError(f"sequences must be from 1 to {MAX_SEQUENCES}, found {sequences}", param="sequences")
        self.card = model.card
        self.context = chosen_context(context, model.card)
        threads = threads or usable_cpus()
        shared = LlamaContext(model.path, vocab_size=model.card.vocab_size, context=self.context, sequences=sequences, threads=threads)
        library = shared.library
        features = hashlib.sha256(library.features.encode()).hexdigest()[:8]
        self.kernel_id = f"llama.cpp:{library.found.origin}-{library.found.version}:{features}"
        self.can_truncate = shared.can_truncate
        curve = CostCurve(key_of(model.card.file_hash, "llama_cpp", self.kernel_id, threads), clock=clock, folder=curves)
        self._join(_Shared(shared, curve, sequences))

    def _join(self, shared: _Shared) -> None:
        self._shared: _Shared | None = shared
        self._sequence = shared.take()
        self._length = 0

    @property
    def length(self) -> int:
        return self._length

    def extend(self, ids: Sequence[int], rows: int = 1) -> NDArray[np.float32]:
        return self.extend_branches([(self, ids)], rows)[0]

    def extend_branches(self, branches: Sequence[tuple[LlamaCppRuntime, Sequence[int]]], rows: int = 1) -> list[NDArray[np.float32]]:
        """Feed several runtimes of one family together, in shared batches: for each what its own `extend` would return. All or none."""
        shared = self._opened()
        if any(branch._shared is not shared for branch, _ in branches) or len({id(branch) for branch, _ in branches}) != len(branches):
            raise InvalidRequest("branches must be different runtimes, forked from one another and open")
        vocab, context = shared.context.vocab_size, self.context
        fed = [(branch, checked_ids(ids, rows, held=branch._length, context=context, vocab=vocab)) for branch, ids in branches]
        parts: list[list[NDArray[np.float32]]] = [[np.empty((0, vocab), np.float32)] for _ in fed]
        try:
            shared.context.check_cancelled()
            for batch in _batches(fed, rows, shared.context.batch_size):
                logits = shared.context.decode([feed for _, feed in batch])
                at = 0
                for number, feed in batch:
                    count = len(feed.ids) - min(max(feed.first_row, 0), len(feed.ids))
                    parts[number].append(logits[at : at + count])
                    at += count
            shared.context.check_cancelled()
        except BaseException:
            for branch, _ in fed:
                branch._forget(branch._length)
            raise
        for branch, tokens in fed:
            branch._length += len(tokens)
        return [part[-1] if len(part) == 2 else np.concatenate(part) for part in parts]

    def truncate(self, length: int) -> None:
        """Raises InvalidRequest while `can_truncate` is False, but for 0 and the length held."""
        shared = self._opened()
        check_length(length, self._length)
        if not self.can_truncate and length not in (0, self._length):
            raise InvalidRequest(f"the past of {self.card.name} is not held any more", hint="truncate to 0, or restore a snapshot")
        if length < self._length:
            shared.context.forget(self._sequence, length)
        if length == 0:
            self.can_truncate = shared.context.can_truncate
        self._length = length

    def fork(self) -> LlamaCppRuntime:
        """Another runtime that holds what this one does. Raises Unavailable when all sequences are taken."""
        shared = self._opened()
        branch = object.__new__(LlamaCppRuntime)
        branch.card, branch.context, branch.can_truncate, branch.kernel_id = self.card, self.context, self.can_truncate, self.kernel_id
        branch._join(shared)
        shared.context.copy(self._sequence, branch._sequence)
        branch._length = self._length
        return branch

    def snapshot(self) -> bytes:
        """What is held, for `restore` of any runtime of this model and kernel: some 23 kB a token for a model of 135M."""
        state = self._opened().context.state(self._sequence)
        identity = self._identity()
        rest = _SNAPSHOT.pack(b"", identity, self._length)[32:] + state
        return hashlib.sha256(rest).digest() + rest

    def restore(self, snapshot: bytes) -> None:
        """Hold what the snapshot does, instead of what is held. Of layers with a sliding window only the window is in it: then
        `can_truncate` is False until the sequence begins anew. Raises InvalidRequest for one that is torn, of another model or kernel,
        or longer than the context; then what is held stays."""
        shared = self._opened()
        if len(snapshot) < _SNAPSHOT.size or hashlib.sha256(snapshot[32:]).digest() != snapshot[:32]:
            raise InvalidRequest("this snapshot is torn")
        _, identity, length = _SNAPSHOT.unpack_from(snapshot)
        if identity != self._identity():
            raise InvalidRequest("this snapshot is of another model or another version of the runtime")
        if length > self.context:
            raise InvalidRequest(f"this snapshot holds {length} tokens, this runtime {self.context}")
        before, held = shared.context.state(self._sequence), self._length
        if shared.context.set_state(self._sequence, snapshot[_SNAPSHOT.size :]):
            self._length = length
            self.can_truncate = shared.context.can_truncate and shared.context.holds_all(self._sequence)
            return
        self._length = held if shared.context.set_state(self._sequence, before) else 0
        raise InvalidRequest("llama.cpp does not take this snapshot")

    def cost_curve(self, k_max: int) -> NDArray[np.float64]:
        """Milliseconds of a k-token `extend` with logits for every row, k = 0..k_max, at the length held when it is first measured.

        The sequence is as before afterwards. Raises ContextOverflow without room for k_max more tokens.
        """
        start = self._length
        return self._opened().curve.upto(k_max, lambda k: self.extend([0] * k, rows=k), lambda: self._forget(start))

    def memory(self) -> MemoryReport:
        shared = self._shared
        if shared is None:
            return MemoryReport(0, 0, 0, peak_bytes())
        return MemoryReport(shared.context.weights, shared.context.kv, shared.context.scratch, peak_bytes())

    def cancel(self) -> None:
        shared = self._shared
        if shared is not None:
            shared.context.cancel()

    def close(self) -> None:
        """Free the sequence, and the weights with the last one; harmless when already closed."""
        shared, self._shared = self._shared, None
        if shared is not None:
            self._length = 0
            shared.give_back(self._sequence)

    def _opened(self) -> _Shared:
        if self._shared is None:
            raise RuntimeClosed
        return self._shared

    def _forget(self, length: int) -> None:
        """After a failure: what is held is `length` tokens again, or nothing where there is no way back."""
        shared = self._shared
        if shared is None:
            return
        if not shared.context.can_truncate:
            length = 0
        shared.context.forget(self._sequence, length)
        self._length = length

    def _identity(self) -> bytes:
        return hashlib.sha256(f"{self.card.file_hash} {self.kernel_id}".encode()).digest()


class _Shared:
    """What the forks of one runtime have in common, and which sequences are taken."""

    def __init__(self, context: LlamaContext, curve: CostCurve, sequences: int) -> None:
        self.context = context
        self.curve = curve
        self._total = sequences
        self._free = list(reversed(range(sequences)))

    def take(self) -> int:
        if not self._free:
            raise Unavailable(f"all {self._total} sequences of this runtime are taken", hint="open it with more sequences, or close a fork")
        return self._free.pop()

    def give_back(self, sequence: int) -> None:
        self._free.append(sequence)
        if len(self._free) == self._total:
            self.context.close()
        else:
            with suppress(EngineFailed):  # after a fork the sequence is the parent's
                self.context.forget(sequence, 0)


def _batches(fed: Sequence[tuple[LlamaCppRuntime, NDArray[np.int32]]], rows: int, size: int) -> list[list[tuple[int, Feed]]]:
    """All tokens in batches of at most `size`, the branches one after another: (number of the branch, what is fed of it)."""
    batches: list[list[tuple[int, Feed]]] = []
    room = 0
    for number, (branch, ids) in enumerate(fed):
        at = 0
        while at < len(ids):
            if room == 0:
                batches.append([])
                room = size
            part = ids[at : at + room]
            batches[-1].append((number, Feed(branch._sequence, branch._length + at, part, len(ids) - rows - at)))
            at += len(part)
            room -= len(part)
    return batches
