"""Searching texts by all detectors that a policy asks for. It never raises, and waits for plug-ins no longer than the policy says.

texts ──┬── ours, here, one text after the other
        └── plug-ins, each in its thread ── the deadline ── what is late is a failure
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import dataclass

from ..policy.tables import PrivacyPolicy
from .budget import TooManyCandidates
from .finding import Finding
from .plugin import Answer
from .registry import detectors_of
from .scan import Scan


@dataclass(frozen=True, slots=True)
class Found:
    """What is in each text, and which detectors failed, with the reason: "presidio is missing". It holds none of the text.

    A text that could not be judged has a finding `unreadable` over all of it.
    """

    findings: list[list[Finding]]
    failed: tuple[str, ...] = ()


def search(texts: Sequence[str], policy: PrivacyPolicy) -> Found:
    """No clock is read: where there are plug-ins, one wait for all of them together ends at the policy's deadline (the first search of a
    plug-in also waits for its import)."""
    scans = [Scan(text) for text in texts]
    rules, plugins = detectors_of(policy)
    deadline_s = max((one.patience_s(policy.detector_deadline_ms / 1e3) for one in plugins), default=0.0)
    begun = [one.start(scans) for one in plugins]
    found: list[list[Finding]] = []
    failed: list[str] = []
    for scan in scans:
        here: list[Finding] = []
        for rule in rules:
            try:
                here += rule.find(scan)
            except Exception as error:  # whatever a detector trips over must not let the text out
                here.append(Finding("unreadable", 0, len(scan.written)))
                failed.append(f"{rule.name} {'had too many candidates' if isinstance(error, TooManyCandidates) else 'crashed'}")
        found.append(here)
    if begun:
        wait(begun, deadline_s)
    for one, running in zip(plugins, begun, strict=True):
        answer: Answer = running.result() if running.done() else "late"
        if isinstance(answer, str):
            failed.append(f"{one.name} is {answer}" if answer != "crashed" else f"{one.name} crashed")
            answer = [[Finding("unreadable", 0, len(text))] for text in texts]
        for here, more in zip(found, answer, strict=True):
            here += more
    return Found(found, tuple(dict.fromkeys(failed)))
