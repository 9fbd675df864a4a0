"""Who failed, when someone did, and whether another may answer instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from ...shared_protocol.errors import EngineFailed, HybridError
from ..transport.remote_errors import may_fall_back

Target = Literal["edge", "cloud", "speculation"]


class TargetFailed(Exception):
    """Never leaves the package: it tells the deciding loop which fact has changed."""

    def __init__(self, target: Target, error: HybridError) -> None:
        super().__init__(target)
        self.target = target
        self.error = error


@contextmanager
def blame(target: Target) -> Iterator[None]:
    """Faults of the target become TargetFailed; faults of the request, and cancellation, pass as they are."""
    try:
        yield
    except HybridError as error:
        if may_fall_back(error):
            raise TargetFailed(target, error) from error
        raise
    except TargetFailed:
        raise
    except Exception as fault:  # whatever a runtime trips over, the request can still be answered elsewhere
        raise TargetFailed(target, EngineFailed(f"the {target} failed: {type(fault).__name__}")) from fault
