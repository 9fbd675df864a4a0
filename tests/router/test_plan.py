"""The plan of speculation against the table of break-evens in published form: t = 30 ms plain, 35 ms verify (Leviathan's formula)."""

import pytest
from hybrid.router.plan import DEFAULT_DRAFT_LEN, ROUND_BYTES, SpeculationFacts, draft_curve, expected_tokens, plan_speculation
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.tables import SpeculationPolicy


def policy(mode: str = "auto", max_draft: int = 16) -> SpeculationPolicy:
    return Policy.parse(f'[speculation]\nmode = "{mode}"\nmax_draft = {max_draft}\nmin_gain = 1.0').speculation


def facts(rtt_ms: float = 0, draft_ms: float = 5, acceptance: float = 0.8, **more: object) -> SpeculationFacts:
    fixed = {
        "rtt_s": rtt_ms / 1000,
        "draft_s": tuple(draft_ms * k / 1000 for k in range(17)),
        "verify_s": (0.030, *[0.035] * 16),
        "acceptance": acceptance,
    }
    return SpeculationFacts(**{**fixed, **more})


def test_a_round_brings_between_one_and_all_tokens() -> None:
    assert expected_tokens(0.0, 5) == 1
    assert expected_tokens(1.0, 5) == 6
    assert expected_tokens(0.5, 2) == 1.75


@pytest.mark.parametrize(
    ("draft_ms", "acceptance", "speed_ups"),
    [
        (5, 0.7, {0: 1.52, 10: 1.28, 20: 1.11}),
        (5, 0.8, {0: 1.84, 10: 1.58, 20: 1.39, 50: 1.04}),
        (5, 0.9, {0: 2.45, 50: 1.54, 100: 1.16}),
        (10, 0.8, {0: 1.36, 10: 1.19, 20: 1.06}),
        (10, 0.9, {0: 1.65, 20: 1.37, 50: 1.12}),
    ],
)
def test_speed_ups_over_streaming_equal_the_published_ones(draft_ms: float, acceptance: float, speed_ups: dict[int, float]) -> None:
    for rtt_ms, expected in speed_ups.items():
        plan = plan_speculation(facts(rtt_ms, draft_ms, acceptance), policy())
        assert plan.mode == "sync" and plan.sync_s is not None and plan.plain_s == 0.030
        assert plan.plain_s / plan.sync_s[plan.draft_len] == pytest.approx(expected, abs=0.0051)


@pytest.mark.parametrize(
    ("draft_ms", "acceptance", "break_even_ms"), [(5, 0.7, 28), (5, 0.8, 55), (5, 0.9, 135), (10, 0.8, 26), (10, 0.9, 71)]
)
def test_drafting_pays_exactly_below_the_break_even(draft_ms: float, acceptance: float, break_even_ms: float) -> None:
    found = plan_speculation(facts(0, draft_ms, acceptance), policy()).break_even_rtt_s
    assert found == pytest.approx(break_even_ms / 1000, abs=0.0006)
    assert plan_speculation(facts(found * 1000 - 0.1, draft_ms, acceptance), policy()).mode == "sync"
    assert plan_speculation(facts(found * 1000 + 0.1, draft_ms, acceptance), policy()).mode == "plain"


def test_a_slow_drafter_never_pays_and_auto_says_so() -> None:
    plan = plan_speculation(facts(0, draft_ms=20), policy())
    assert (plan.mode, plan.draft_len) == ("plain", 0)
    assert plan.break_even_rtt_s is not None and plan.break_even_rtt_s < 0
    assert "0.98 times" in plan.why


def test_always_drafts_the_best_length_even_at_a_loss() -> None:
    plan = plan_speculation(facts(200, draft_ms=20), policy("always"))
    assert plan.mode == "sync" and plan.draft_len >= 1 and plan.sync_s is not None
    assert plan.sync_s[plan.draft_len] == min(plan.sync_s[1:])


def test_off_and_a_pair_that_cannot_speculate_never_draft() -> None:
    assert plan_speculation(facts(), policy("off")).mode == "off"
    assert plan_speculation(None, policy("always")).mode == "off"


@pytest.mark.parametrize(
    "unknown",
    [
        {"rtt_s": None},
        {"draft_s": None},
        {"verify_s": None},
        {"acceptance": None},
        {"rtt_s": float("nan")},
        {"rtt_s": -1.0},
        {"acceptance": 1.5},
        {"verify_s": (0.03,)},
        {"verify_s": (0.0, 0.0)},
        {"draft_s": ()},
        {"bandwidth_bytes_s": 0.0},
        {"bandwidth_bytes_s": float("nan")},
    ],
)
def test_what_is_not_known_is_neither_good_nor_bad_news(unknown: dict[str, object]) -> None:
    assert plan_speculation(facts(**unknown), policy()).mode == "plain"  # type: ignore[arg-type]
    forced = plan_speculation(facts(**unknown), policy("always"))  # type: ignore[arg-type]
    assert (forced.mode, forced.draft_len) == ("sync", DEFAULT_DRAFT_LEN)


def test_bytes_and_queue_cost_time() -> None:
    slow = plan_speculation(facts(bandwidth_bytes_s=ROUND_BYTES / 0.010, queue_s=0.005), policy())
    assert slow.sync_s == pytest.approx(plan_speculation(facts(15), policy()).sync_s)


def test_the_draft_length_is_bounded_by_policy_and_curves() -> None:
    assert plan_speculation(facts(0, 0.1, 1.0), policy(max_draft=3)).draft_len == 3
    assert plan_speculation(facts(0, 0.1, 1.0, verify_s=(0.030, 0.030, 0.030)), policy()).draft_len == 2


def test_a_small_gain_is_not_worth_it() -> None:
    wanted = Policy.parse("[speculation]\nmin_gain = 1.5").speculation
    assert plan_speculation(facts(20), wanted).mode == "plain"  # 1.39 times
    assert plan_speculation(facts(10), wanted).mode == "sync"  # 1.58 times


def test_drafting_feeds_two_tokens_at_first_and_then_one_each() -> None:
    assert draft_curve([0.0, 4.0, 6.0], 3) == (0.0, 0.006, 0.010, 0.014)
    assert draft_curve([0.0, 4.0], 2) == (0.0, 0.004, 0.008)
