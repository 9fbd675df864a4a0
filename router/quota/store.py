"""Where a quota's ledger lives: in this process, or in one small file that several processes share and that survives a restart.

A change is one transaction: read, change, write, with everybody else kept out. The file is replaced by a rename, so it is whole at any
moment; a process that dies in the middle has changed nothing, and its lock dies with it.
"""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from ...shared_protocol.errors import Unavailable
from ...shared_protocol.whole_file import replace_whole
from .ledger import Ledger

T = TypeVar("T")
MAX_BYTES = 16 * 2**20
LOOK_S = 0.002  # between two attempts to get the lock


class QuotaStoreFailed(Unavailable):
    """The quota's store is slow, broken, or holds what is no ledger. What then happens is the policy's `quota.on_store_failure`."""

    code = "quota_store_failed"


class QuotaStore(Protocol):
    def transact(self, change: Callable[[Ledger], T]) -> T:
        """Run `change` on the ledger, alone. Raises QuotaStoreFailed, and then nothing has changed."""
        ...


class MemoryStore(QuotaStore):
    """For one process; threads exclude each other."""

    def __init__(self) -> None:
        self._ledger = Ledger()
        self._lock = threading.Lock()

    def transact(self, change: Callable[[Ledger], T]) -> T:
        with self._lock:
            return change(self._ledger)


class FileStore(QuotaStore):
    """A JSON file, and a lock file beside it. Whoever does not get the lock within `deadline_s` gives up: slow is as bad as broken."""

    def __init__(
        self,
        path: str | Path,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        deadline_s: float = 0.5,
    ) -> None:
        self.path = Path(path)
        self._deadline_s = deadline_s
        self._clock = clock
        self._sleep = sleep
        self._turn = threading.Lock()

    def transact(self, change: Callable[[Ledger], T]) -> T:
        try:
            with self._alone():
                ledger = self._read()
                result = change(ledger)
                self._write(ledger)
                return result
        except OSError as error:
            raise QuotaStoreFailed(f"the quota's file {self.path} cannot be used: {error.strerror or error}") from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Threads by a lock of theirs, processes by the kernel's."""
        late = QuotaStoreFailed(f"the quota's file {self.path} was locked for {self._deadline_s:g} s", hint="who holds it?")
        until = self._clock() + self._deadline_s
        if not self._turn.acquire(timeout=self._deadline_s):
            raise late
        try:
            with open(self.path.with_name(self.path.name + ".lock"), "a") as lock:
                while True:
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        if self._clock() >= until:
                            raise late from None
                        self._sleep(LOOK_S)
                yield
        finally:
            self._turn.release()

    def _read(self) -> Ledger:
        try:
            data = self.path.read_bytes()
            if len(data) > MAX_BYTES:
                raise QuotaStoreFailed(f"the quota's file {self.path} is larger than {MAX_BYTES} bytes")
            return msgspec.json.decode(data, type=Ledger)
        except FileNotFoundError:
            return Ledger()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise QuotaStoreFailed(f"the quota's file {self.path} holds no ledger", hint="remove it to begin anew") from None

    def _write(self, ledger: Ledger) -> None:
        replace_whole(self.path, msgspec.json.encode(ledger), mode=0o600)
