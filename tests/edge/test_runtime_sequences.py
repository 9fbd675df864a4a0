"""Whatever is called in whatever order, a runtime holds what a list of tokens says it holds, and computes what follows from that alone."""

from __future__ import annotations

import pytest
from hybrid.shared_protocol.errors import Cancelled, ContextOverflow, InvalidRequest, Unavailable
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.runtime import Branching, EdgeRuntime, Snapshotting
from hybrid.tests.edge.conformance import KINDS, LLAMA_CPP, Expected, Kind
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

CONTEXT, SEQUENCES = 12, 3
TOKENS = st.lists(st.integers(1, 2), max_size=5)  # few ids and short sequences, so that the same pasts come back
BAD = st.sampled_from([[-1], [320], [1, 2**40], [1] * (CONTEXT + 1)])


class Sequences(RuleBasedStateMachine):
    """`held[i]` is what `runtimes[i]` should hold; the first is opened once for all examples."""

    kind: Kind
    first: EdgeRuntime
    expected: Expected

    @initialize()
    def start(self) -> None:
        self.first.truncate(0)
        self.runtimes: list[EdgeRuntime] = [self.first]
        self.held: list[list[int]] = [[]]
        self.snapshots: list[tuple[bytes, list[int]]] = []

    @rule(which=st.integers(0, 9), ids=TOKENS, wanted=st.integers(0, 5))
    def extend(self, which: int, ids: list[int], wanted: int) -> None:
        runtime, held = self._one(which)
        rows = min(wanted, len(ids))
        if len(held) + len(ids) > CONTEXT:
            with pytest.raises(ContextOverflow):
                runtime.extend(ids, rows)
            return
        logits = runtime.extend(ids, rows)
        held += ids
        self.kind.assert_same(logits, self.expected.rows(held, rows))

    @rule(which=st.integers(0, 9), share=st.floats(0, 1))
    def truncate(self, which: int, share: float) -> None:
        runtime, held = self._one(which)
        length = round(share * len(held))
        runtime.truncate(length)
        del held[length:]

    @rule(which=st.integers(0, 9), ids=BAD)
    def what_is_refused_changes_nothing(self, which: int, ids: list[int]) -> None:
        runtime, held = self._one(which)
        with pytest.raises(InvalidRequest):
            runtime.extend(ids)
        with pytest.raises(InvalidRequest):
            runtime.truncate(len(held) + 1)

    @rule(which=st.integers(0, 9), ids=TOKENS)
    def cancelled(self, which: int, ids: list[int]) -> None:
        runtime, held = self._one(which)
        if len(held) + len(ids) <= CONTEXT:
            runtime.cancel()
            with pytest.raises(Cancelled):
                runtime.extend(ids, rows=0)

    @precondition(lambda self: isinstance(self.first, Branching))
    @rule(which=st.integers(0, 9))
    def fork(self, which: int) -> None:
        runtime, held = self._one(which)
        if len(self.runtimes) == SEQUENCES:
            with pytest.raises(Unavailable):
                runtime.fork()  # type: ignore[attr-defined]
            return
        self.runtimes.append(runtime.fork())  # type: ignore[attr-defined]
        self.held.append(list(held))

    @precondition(lambda self: len(getattr(self, "runtimes", ())) > 1)
    @rule(ids=st.lists(TOKENS, min_size=SEQUENCES, max_size=SEQUENCES), rows=st.integers(0, 1))
    def extend_together(self, ids: list[list[int]], rows: int) -> None:
        fed = [[*more, 1] for more in ids[: len(self.runtimes)]]
        if any(len(held) + len(more) > CONTEXT for held, more in zip(self.held, fed, strict=True)):
            with pytest.raises(ContextOverflow):
                self.first.extend_branches(list(zip(self.runtimes, fed, strict=True)), rows)  # type: ignore[attr-defined]
            return
        logits = self.first.extend_branches(list(zip(self.runtimes, fed, strict=True)), rows)  # type: ignore[attr-defined]
        for found, held, more in zip(logits, self.held, fed, strict=True):
            held += more
            self.kind.assert_same(found, self.expected.rows(held, rows))

    @precondition(lambda self: len(getattr(self, "runtimes", ())) > 1)
    @rule()
    def close_a_fork(self) -> None:
        self.runtimes.pop().close()
        self.held.pop()

    @precondition(lambda self: isinstance(self.first, Snapshotting))
    @rule(which=st.integers(0, 9))
    def snapshot(self, which: int) -> None:
        runtime, held = self._one(which)
        self.snapshots.append((runtime.snapshot(), list(held)))  # type: ignore[attr-defined]

    @precondition(lambda self: getattr(self, "snapshots", ()))
    @rule(which=st.integers(0, 9), number=st.integers(0, 9))
    def restore(self, which: int, number: int) -> None:
        runtime, held = self._one(which)
        state, then = self.snapshots[number % len(self.snapshots)]
        runtime.restore(state)  # type: ignore[attr-defined]
        held[:] = then

    @invariant()
    def lengths_are_known(self) -> None:
        assert [runtime.length for runtime in getattr(self, "runtimes", ())] == [len(held) for held in getattr(self, "held", ())]

    def teardown(self) -> None:
        for fork in getattr(self, "runtimes", ())[1:]:
            fork.close()

    def _one(self, which: int) -> tuple[EdgeRuntime, list[int]]:
        return self.runtimes[which % len(self.runtimes)], self.held[which % len(self.runtimes)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_any_order_of_calls(kind: Kind, tiny_llama: Model) -> None:
    options = {"sequences": SEQUENCES} if kind is LLAMA_CPP else {}
    first, fresh = kind.open(tiny_llama, context=CONTEXT, **options), kind.open(tiny_llama, context=CONTEXT)
    machine = type("Bound", (Sequences,), {"kind": kind, "first": first, "expected": Expected(fresh)})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=kind.examples, stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck)),
    )
    first.close()
    fresh.close()
