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


def outcome_of(error: HybridError) -> str:
    """Its class's code: what a stranger's server calls it may hold anything."""
    return type(error).code


@contextmanager
def blame(target: Target, *, others: bool = False) -> Iterator[None]:
    """Faults of the target become TargetFailed; faults of the request, and cancellation, pass as they are. `others`: there are more
    targets of this kind, so that one which does not know the key or the model need not be the last."""
    try:
        yield
    except HybridError as error:
        if may_fall_back(error) or (others and error.status in (401, 403, 404)):
            raise TargetFailed(target, error) from error
        raise
    except TargetFailed:
        raise
    except Exception as fault:  # whatever a runtime trips over, the request can still be answered elsewhere
        raise TargetFailed(target, EngineFailed(f"the {target} failed: {type(fault).__name__}")) from fault
