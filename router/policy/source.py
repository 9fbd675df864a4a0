"""A policy that may change while requests are answered: a file is read again when it has changed, and the last good one kept."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from ...shared_protocol.errors import ConfigError
from .policy import PRESET, Policy

LOOK_S = 1.0  # the file is looked at no more often

_log = logging.getLogger("hybrid.policy")
Stamp = tuple[int, int, int]  # of a file: modified (ns), bytes, inode


class PolicySource:
    """Ask `current` once per request and keep what it gives until the request ends. Thread-safe.

    `error` says what is wrong with the file as it is now; None when it is the policy in force. It is logged once per change.
    """

    def __init__(self, policy: Policy | str | Path | None = None) -> None:
        """`policy`: one that never changes, the path of a file that may, or "preset:NAME"; None: the default one.

        Raises ConfigError when there is no good policy to begin with.
        """
        self.error: ConfigError | None = None
        self._path = None if policy is None or isinstance(policy, Policy) or str(policy).startswith(PRESET) else Path(policy)
        self._stamp = self._look()  # before it is read: a change meanwhile is seen later
        self._policy = policy if isinstance(policy, Policy) else Policy.default() if policy is None else Policy.load(policy)
        self._looked: float | None = None
        self._lock = threading.Lock()

    def current(self, now: float) -> Policy:
        """The policy in force at `now` (seconds of a clock that never runs backward). Never raises."""
        if self._path is not None and (self._looked is None or now - self._looked >= LOOK_S):
            with self._lock:
                self._looked = now
                self._read_again(self._path)
        return self._policy

    def _read_again(self, path: Path) -> None:
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            if stamp is not None and stamp[1] == 0:  # an editor has emptied it, and will fill it: no policy says nothing at all
                raise ConfigError(f"policy {path} is empty", hint="to say that all keys keep their defaults, write a comment")
            policy = Policy.load(path)
        except ConfigError as error:
            self.error = error
            _log.warning("the policy in force stays %s: %s", self._policy.hash, error)
            return
        if self._look() != stamp:  # changed while it was read: what was read may be half of it
            self._stamp = None
            return
        self._policy, self.error = policy, None
        _log.info("the policy in force is now %s", policy.hash)

    def _look(self) -> Stamp | None:
        """None when the file cannot be looked at."""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
