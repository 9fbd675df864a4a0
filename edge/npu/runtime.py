"""A compiled model on its chip, which may be a simulated one: programs replayed in arenas that were planned ahead."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...compiler.chips import NPU
from ...compiler.memory.lifetimes import STATES
from ...compiler.program import Compiled
from ...npu_backends.base import NOTHING, Adapter, Cost
from ...npu_backends.cpu.process import peak_bytes
from ...shared_protocol.compile_errors import ArtifactRejected
from ...shared_protocol.errors import ContextOverflow, EngineFailed, RuntimeClosed
from ...shared_protocol.model_card import ModelCard
from ...shared_protocol.runtime import EdgeRuntime, MemoryReport
from ..checks import check_cancelled, check_length, checked_ids
from .machine import Machine, Runnable
from .turns import Turn, Turns


@dataclass(frozen=True, slots=True)
class Simulated:
    """What the chip and the host would have taken so far."""

    runs: int
    chip: Cost  # cycles of the chip's clock
    seconds: float  # of both, by the cost model


class NpuRuntime(EdgeRuntime):
    """Every `extend` holds all of its ids or, when it raises, none of them. Results do not depend on how a sequence was cut into calls:
    every row is computed alone, whatever program it stands in."""

    def __init__(self, card: ModelCard, compiled: Compiled, adapters: Mapping[str, Adapter]) -> None:
        """Raises ArtifactRejected for a model that `compiled` is not of, or segments that no adapter here takes."""
        facts = compiled.facts
        if facts.file_hash != card.file_hash:
            raise ArtifactRejected(
                f"the artifact is of a model with the hash {facts.file_hash[:12]}; {card.name} has {card.file_hash[:12]}",
                hint="compile again",
            )
        self.card = card
        self.can_truncate = True
        self.context = facts.context
        moved = f"-smooth-{facts.smoothing.text_sha256[:12]}" if facts.smoothing else ""
        self.kernel_id = f"npu-{facts.target.name}-{facts.scheme}{moved}-{facts.compiler}-numpy-{np.__version__}"
        self._compiled = compiled
        self._machine: Machine | None = Machine(compiled, adapters)
        self._turns = Turns(compiled.programs, facts.context)
        self._vocab = self._machine.runnables[0].logits.shape[1]
        self._length = 0
        self._runs = [0] * len(compiled.programs)
        self._cancelled = threading.Event()
        self._process = os.getpid()

    @property
    def length(self) -> int:
        return self._length

    def extend(self, ids: Sequence[int], rows: int = 1) -> NDArray[np.float32]:
        self._check_open()
        tokens = checked_ids(ids, rows, held=self._length, context=self.context, vocab=self._vocab)
        start, found = self._length, np.empty((rows, self._vocab), np.float32)
        silent = len(tokens) if rows <= 1 else len(tokens) - rows  # fed for the cache, and the last of them for its logits
        try:
            check_cancelled(self._cancelled)
            filled = 0
            for count, logits in ((silent, False), (len(tokens) - silent, True)):
                for turn in self._turns.of(count, logits=logits, start=self._length):
                    at = self._length - start
                    made = self._run(turn, tokens[at : at + turn.tokens])
                    if logits:
                        found[filled : filled + turn.tokens] = made[len(made) - turn.tokens :]
                        filled += turn.tokens
                    elif rows == 1 and at + turn.tokens == len(tokens):
                        found[0] = made[-1]
                    check_cancelled(self._cancelled)
        except BaseException:
            self._length = start
            raise
        return found

    def truncate(self, length: int) -> None:
        self._check_open()
        check_length(length, self._length)
        self._length = length

    def cost_curve(self, k_max: int) -> NDArray[np.float64]:
        """Milliseconds of a k-token `extend` with logits for every row, k = 0..k_max, by the cost model: nothing is run or measured.

        Raises ContextOverflow without room for k_max more tokens.
        """
        self._check_open()
        if self._length + k_max > self.context:
            raise ContextOverflow(asked=self._length + k_max, limit=self.context)
        seconds = [self._turns.seconds(k, logits=k > 1, start=self._length) for k in range(k_max + 1)]
        return np.array(seconds, np.float64) * 1000.0

    def simulated(self) -> Simulated:
        """Since this runtime was opened."""
        chip, seconds = NOTHING, 0.0
        for count, program in zip(self._runs, self._compiled.programs, strict=True):
            one = program.cost_on(NPU)
            chip += Cost(one.cycles * count, one.bytes * count, one.joules * count)
            seconds += program.seconds * count
        return Simulated(sum(self._runs), chip, seconds)

    @property
    def tokens_per_second(self) -> float:
        """Of decoding, token by token, as the cost model has it."""
        return 1.0 / min(program.seconds for program in self._compiled.programs)

    def memory(self) -> MemoryReport:
        """What is held is what was planned; nothing once it is closed. `peak` is the process's."""
        if self._machine is None:
            return MemoryReport(0, 0, 0, peak_bytes())
        arenas, constants = self._machine.arenas, self._compiled.constants
        kv = arenas[STATES].nbytes if STATES in arenas else 0
        scratch = sum(arena.nbytes for arena in arenas.values()) - kv
        return MemoryReport(sum(array.nbytes for array in constants.values()), kv, scratch, peak_bytes())

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self._machine, self._length = None, 0

    def _run(self, turn: Turn, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
        """The program's logits, a view that the next run overwrites: of the last rows with a token, the last one's last."""
        machine = self._machine
        if machine is None:
            raise RuntimeClosed
        runnable: Runnable = machine.runnables[turn.program]
        runnable.ids[: len(tokens)] = tokens
        runnable.ids[len(tokens) :] = 0
        runnable.position[0] = self._length
        runnable.logit_index[:] = np.maximum(np.arange(len(tokens) - len(runnable.logit_index), len(tokens)), 0)
        runnable.run()
        if self._machine is None:
            raise RuntimeClosed
        self._length += len(tokens)
        self._runs[turn.program] += 1
        return runnable.logits

    def _check_open(self) -> None:
        if self._machine is None:
            raise RuntimeClosed
        if os.getpid() != self._process:
            raise EngineFailed("this runtime was opened before a fork, which shares its memory", hint="open another one in the child")
