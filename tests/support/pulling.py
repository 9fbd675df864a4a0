"""Waiting for nothing, a server that is busy, and what a pull that broke off has left: for tests of pulls."""

from __future__ import annotations

from hybrid.shared_protocol.sources.download import Patience
from hybrid.shared_protocol.store import Store
from hybrid.tests.support.file_server import Fault

HURRY = Patience(attempts=3, sleep=lambda seconds: None)
BUSY = [Fault(status=503)] * 3  # one answer for each attempt of HURRY


def unfinished(store: Store) -> list[str]:
    """Names of the models of which something lies in ROOT/partial."""
    return sorted(entry.name.partition("+")[0] for entry in (store.root / "partial").glob("*"))
