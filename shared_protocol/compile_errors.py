"""The errors of compiling a model for a chip, and of opening what was compiled: kinds of `CompileError`, each with a `code` of its own."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import HybridError


class CompileError(HybridError):
    """A model could not be compiled for a chip."""

    status, code, exit_code = 422, "compile_failed", 1


class GraphInvalid(CompileError):
    """A graph of operations is wrong: a shape, a type, a name."""

    code = "invalid_graph"


class PlanInvalid(CompileError):
    """A memory plan breaks a rule: two buffers that live at once overlap, or one stands outside its arena or off its alignment."""

    code = "invalid_plan"


class DoesNotFit(CompileError):
    """The model, or one operation of it, is too large for the chip; the message says what would fit."""

    code = "does_not_fit"


class TooInexact(CompileError):
    """A quantised model strays further from its source than the limit says."""

    code = "too_inexact"


class OperationRefused(CompileError):
    """No chip takes an operation. `reasons`: by the chip's name, why not."""

    code = "operation_refused"

    def __init__(self, kind: str, name: str, reasons: Mapping[str, str]) -> None:
        told = "; ".join(f"{chip}: {reason}" for chip, reason in reasons.items())
        super().__init__(f"no chip takes {kind} {name}: {told}", hint="add a chip that does, such as the host's processor")
        self.reasons = dict(reasons)


class ArtifactRejected(CompileError):
    """A compiled file is torn, of another form, or for another chip or model."""

    code = "artifact_rejected"
