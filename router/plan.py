"""Whether device and cloud should write one answer together, and how many tokens the device drafts per round.

Source of the cost model: Leviathan et al., arXiv 2211.17192, with the network in it. k drafted tokens, acceptance a:

    expected tokens per round   E(a, k) = 1 + a + a^2 + ... + a^k
    seconds per token, sync     (draft(k) + round trip + bytes / bandwidth + verify(k)) / E(a, k)
    seconds per token, plain    verify(0): the cloud streams and pays the round trip once

Speculation pays while the round trip stays below max over k of E * verify(0) - draft(k) - verify(k) - bytes / bandwidth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .policy.tables import SpeculationPolicy

Mode = Literal["plain", "sync", "off"]
ROUND_BYTES = 640  # one padded frame of 256 each way, and the headers of WebSocket, TCP and IP


@dataclass(frozen=True, slots=True)
class SpeculationFacts:
    """What is known of a device, a link and a cloud that can speculate together; None is unknown."""

    rtt_s: float | None = None
    bandwidth_bytes_s: float | None = None  # None: the bytes of a round are taken as free
    draft_s: tuple[float, ...] | None = None  # entry k: seconds in which the device drafts k tokens
    verify_s: tuple[float, ...] | None = None  # entry k: seconds of the cloud's step over 1 + k positions
    acceptance: float | None = None  # probability that one drafted token is kept
    queue_s: float = 0.0  # seconds a round waits at the cloud


@dataclass(frozen=True, slots=True)
class Plan:
    """`draft_len` is 0 unless `mode` is sync. Seconds are per output token; None where they are unknown."""

    mode: Mode
    draft_len: int
    plain_s: float | None = None
    sync_s: tuple[float, ...] | None = None  # entry k: drafting k tokens a round; entry 0 is a round trip per token
    break_even_rtt_s: float | None = None  # sync beats plain below this; negative: never
    why: str = ""


DEFAULT_DRAFT_LEN = 4  # where "always" has nothing to choose by


def draft_curve(extend_ms: Sequence[float], k_max: int) -> tuple[float, ...]:
    """Seconds to draft 0..k_max tokens from a runtime's `cost_curve`: the first extend feeds two tokens at worst, the others one."""
    one = extend_ms[1] / 1000
    first = (extend_ms[2] if len(extend_ms) > 2 else extend_ms[1]) / 1000
    return tuple(0.0 if k == 0 else first + (k - 1) * one for k in range(k_max + 1))


def expected_tokens(acceptance: float, k: int) -> float:
    """Tokens that a round of k drafts brings on average, the cloud's own one included: 1..k + 1."""
    return sum(acceptance**i for i in range(k + 1))


def plan_speculation(facts: SpeculationFacts | None, policy: SpeculationPolicy) -> Plan:
    """Choose. `off` never drafts, `always` drafts the best length of at least 1, `auto` drafts when that is `min_gain` times faster."""
    if policy.mode == "off" or facts is None:
        return Plan("off", 0, why="switched off by the policy" if facts is not None else "device and cloud cannot speculate together")
    model = _Model.of(facts, policy.max_draft)
    if model is None:
        if policy.mode == "always":
            return Plan("sync", min(DEFAULT_DRAFT_LEN, policy.max_draft), why="the policy says always; the link is not measured")
        return Plan("plain", 0, why="the link, the device or the cloud is not measured")
    plain, sync = model.plain_s, model.sync_s
    best = min(range(1, len(sync)), key=lambda k: (sync[k], k))
    found = Plan("plain", 0, plain, sync, model.break_even_rtt_s)
    gain = plain / sync[best] if sync[best] > 0 else math.inf
    words = f"{gain:.2f} times as fast as the cloud alone, drafting {best}"
    if policy.mode == "always":
        return _with(found, "sync", best, f"the policy says always: {words}")
    if gain >= policy.min_gain:
        return _with(found, "sync", best, words)
    return _with(found, "plain", 0, f"drafting would be {words}")


def _with(plan: Plan, mode: Mode, draft_len: int, why: str) -> Plan:
    return Plan(mode, draft_len, plan.plain_s, plan.sync_s, plan.break_even_rtt_s, why)


@dataclass(frozen=True, slots=True)
class _Model:
    plain_s: float
    sync_s: tuple[float, ...]
    break_even_rtt_s: float

    @staticmethod
    def of(facts: SpeculationFacts, max_draft: int) -> _Model | None:
        """None when a number is unknown, is none, or the curves do not reach one drafted token."""
        rtt, draft, verify, acceptance = facts.rtt_s, facts.draft_s, facts.verify_s, facts.acceptance
        if rtt is None or draft is None or verify is None or acceptance is None:
            return None
        bandwidth = math.inf if facts.bandwidth_bytes_s is None else facts.bandwidth_bytes_s
        numbers = (rtt, facts.queue_s, acceptance, *draft, *verify)
        if not all(math.isfinite(x) and x >= 0 for x in numbers) or acceptance > 1 or not bandwidth > 0:
            return None
        longest = min(max_draft, len(draft) - 1, len(verify) - 1)
        if longest < 1 or verify[0] <= 0:
            return None
        fixed = ROUND_BYTES / bandwidth + facts.queue_s
        gain = [expected_tokens(acceptance, k) for k in range(longest + 1)]
        work = [draft[k] + verify[k] + fixed for k in range(longest + 1)]
        return _Model(
            plain_s=verify[0],
            sync_s=tuple((work[k] + rtt) / gain[k] for k in range(longest + 1)),
            break_even_rtt_s=max(gain[k] * verify[0] - work[k] for k in range(1, longest + 1)),
        )
