"""A lowered segment: kernels, and which values each operation runs its kernel on; checked before any of it runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from ...shared_protocol.compile_errors import ArtifactRejected
from ..ir.value import Value
from ..lowered import Lowered
from ..spec import Spec
from ..tile.calls import Call, call_of
from ..tile.computations import key_of
from ..tile.execute import slot_bytes
from ..tile.program import Kernel
from ..tile.verify import verify
from .intrinsics import INTRINSICS

ABI = "systolic-1"
LARGEST_SCRATCH = 8  # times the SRAM: what the simulation of a kernel holds, floats of codes among it


class Program(Lowered, frozen=True, forbid_unknown_fields=True):
    chip: str  # for which its kernels were cut
    kernels: tuple[Kernel, ...]
    calls: tuple[Call, ...]  # one for every operation


def chip_of(spec: Spec) -> str:
    """The name of a chip, and a digest of its numbers."""
    return f"{spec.name} {hashlib.sha256(repr(spec).encode()).hexdigest()[:16]}"


def check(program: Program, spec: Spec) -> None:
    """Raises ArtifactRejected for a program of another chip, or one that does not stay within what it is given."""
    if program.chip != chip_of(spec):
        raise ArtifactRejected(f"the artifact is for {program.chip}, and this is {chip_of(spec)}", hint="compile again")
    graph = program.segment.graph
    values = {value.name: value for value in graph.values()}
    if len(program.calls) != len(graph.ops):
        raise ArtifactRejected(f"the artifact has {len(program.calls)} calls for {len(graph.ops)} operations")
    checked: set[tuple[int, tuple[int, ...]]] = set()
    for op, call in zip(graph.ops, program.calls, strict=True):
        if not 0 <= call.kernel < len(program.kernels) or call != call_of(op, call.kernel):
            raise ArtifactRejected(f"the artifact's call for {op.name} is not one of {op.kind}")
        operands = [values[name] for name in call.operands]
        sizes = tuple(value.elements for value in operands)
        if (call.kernel, sizes) not in checked:
            _check_kernel(program.kernels[call.kernel], operands, spec)
            checked.add((call.kernel, sizes))


def _check_kernel(kernel: Kernel, operands: Sequence[Value], spec: Spec) -> None:
    verify(kernel, [value.elements for value in operands])
    if kernel.operands != tuple(value.dtype for value in operands):
        raise ArtifactRejected(f"a kernel takes {', '.join(kernel.operands)}, and is given {', '.join(map(str, operands))}")
    if slot_bytes(kernel) > LARGEST_SCRATCH * spec.sram.bytes:
        raise ArtifactRejected(f"a kernel needs {slot_bytes(kernel)} bytes to be simulated; {spec.name} has {spec.sram.bytes} of SRAM")
    if kernel.sram_bytes > spec.sram.bytes:
        raise ArtifactRejected(f"a kernel needs {kernel.sram_bytes} bytes of SRAM; {spec.name} has {spec.sram.bytes}")
    if kernel.dataflow not in spec.array.dataflows and any(instruction.op == "matmul" for instruction in kernel.instructions):
        raise ArtifactRejected(f"a kernel keeps {kernel.dataflow!r} in the array; {spec.name} has {', '.join(spec.array.dataflows)}")
    for instruction in kernel.instructions:
        if instruction.op not in ("load", "store", "see") and key_of(kernel, instruction) not in INTRINSICS:
            raise ArtifactRejected(f"the chip has nothing for {' of '.join(key_of(kernel, instruction))}")
