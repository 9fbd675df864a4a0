"""The adapters of the product pass the kit, and an adapter with a fault does not."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hybrid.npu_backends.base import Artifact, Cost, Plan, Segment, Tiling
from hybrid.npu_backends.conformance.cases import ALL_SIZES, TAILS
from hybrid.npu_backends.conformance.kit import check
from hybrid.npu_backends.cpu.adapter import CpuAdapter
from hybrid.npu_backends.ir.op import Op
from hybrid.npu_backends.preset import load_preset, preset_names
from hybrid.npu_backends.systolic.adapter import SystolicAdapter

THOROUGH = ("systolic-32",)  # the one that takes most


@pytest.mark.parametrize("preset", preset_names())
def test_the_simulated_chip_passes_as_every_preset(preset: str) -> None:
    assert check(SystolicAdapter(load_preset(preset)), sizes=ALL_SIZES if preset in THOROUGH else (TAILS,)) == []


def test_the_processor_passes() -> None:
    assert check(CpuAdapter(load_preset("host-cpu"))) == []


class Refusing(CpuAdapter):
    """It takes only what its faults are shown on."""

    def supports(self, op: Op) -> str | None:
        return None if op.kind in ("add", "cache_write") else "this adapter takes additions only"


class Silent(CpuAdapter):
    def supports(self, op: Op) -> str | None:
        return ""


class Wrong(Refusing):
    def run(self, handle: Any, buffers: Mapping[str, Any]) -> None:
        super().run(handle, buffers)
        last = buffers[handle.graph.outputs[0].name]
        last.reshape(-1)[-1:] += 1


class Straying(Refusing):
    def run(self, handle: Any, buffers: Mapping[str, Any]) -> None:
        super().run(handle, buffers)
        output = buffers[handle.graph.outputs[0].name]
        arena = output
        while arena.base is not None:
            arena = arena.base
        arena[output.__array_interface__["data"][0] - arena.__array_interface__["data"][0] - 1] = 0


class Spoiling(Refusing):
    def run(self, handle: Any, buffers: Mapping[str, Any]) -> None:
        super().run(handle, buffers)
        buffers[handle.graph.inputs[-1].name].reshape(-1)[:1] = 0


class Cheaper(Refusing):
    def cost(self, op: Op, tiling: Tiling | None = None) -> Cost:
        cost = super().cost(op, tiling)
        return Cost(max(1, 1000 - cost.cycles), cost.bytes, cost.joules)


class Restless(Refusing):
    def lower(self, segment: Segment, plan: Plan) -> Artifact:
        turned = dict(sorted(plan.tilings.items()))
        self.times = getattr(self, "times", 0) + 1
        return super().lower(segment, Plan(plan.placements, {**plan.arenas, "unused": self.times}, turned))


class Trusting(Refusing):
    def load(self, artifact: Artifact, constants: Mapping[str, Any]) -> Any:
        return super().load(Artifact.of(artifact.data, "cpu-1"), constants)


class Hoarding(Refusing):
    def run(self, handle: Any, buffers: Mapping[str, Any]) -> None:
        super().run(handle, buffers)
        self.kept = [np.array(array) for array in buffers.values()]


@pytest.mark.parametrize(
    ("adapter", "kept_not"),
    [
        (Silent, "refusals"),
        (Wrong, "numbers"),
        (Straying, "places"),
        (Spoiling, "places"),
        (Cheaper, "costs"),
        (Restless, "artifacts"),
        (Trusting, "artifacts"),
        (Hoarding, "memory"),
    ],
)
def test_an_adapter_with_a_fault_is_found_out(adapter: type[CpuAdapter], kept_not: str) -> None:
    findings = check(adapter(load_preset("host-cpu")), sizes=(TAILS,))
    assert {finding.check for finding in findings} >= {kept_not}
    assert all(str(finding).startswith(f"{finding.check}: {finding.subject}: ") for finding in findings)


def test_an_adapter_that_takes_nothing_does_not_pass() -> None:
    class Idle(CpuAdapter):
        def supports(self, op: Op) -> str | None:
            return f"{op.kind} is not for this chip"

    assert "takes none" in str(check(Idle(load_preset("host-cpu")), sizes=(TAILS,))[0])


class Rounding(Refusing):
    def run(self, handle: Any, buffers: Mapping[str, Any]) -> None:
        super().run(handle, buffers)
        output = buffers[handle.graph.outputs[0].name]
        output[...] = output.astype(np.float16)


def test_floats_that_round_in_another_way_pass_within_a_tolerance_only() -> None:
    chip = Rounding(load_preset("host-cpu"))
    assert {finding.check for finding in check(chip, sizes=(TAILS,))} == {"numbers"}
    assert check(chip, sizes=(TAILS,), tolerance=1e-3) == []


def test_an_adapter_without_a_fault_is_not() -> None:
    assert check(Refusing(load_preset("host-cpu")), sizes=(TAILS,)) == []
