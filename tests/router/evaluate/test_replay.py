"""A replay decides each row as the dry run would, and adds up what the decisions cost."""

from dataclasses import replace
from pathlib import Path

import pytest
from hybrid.router.costs import CostModel
from hybrid.router.evaluate.replay import World, at, replay, shares, usual
from hybrid.router.evaluate.rows import read_rows
from hybrid.router.policy.policy import Policy
from hybrid.router.request import Moment, RouteContext
from hybrid.shared_protocol.runtime import LinkState
from hybrid.tests.router.evaluate.test_outcomes import written

EASY = "What is the capital of France?"
MIDDLE = "Write a Python function that reverses a string."
HARD = "Design a distributed rate limiter, analyse its failure modes, and implement it in Rust."
PRIVATE = "mail bob@example.com"
BLOCKED = "What does AKIAIOSFODNN7EXAMPLE open?"
COSTS = CostModel(edge_prefill_s=0.001, edge_decode_s=0.01, cloud_prefill_s=0, cloud_decode_s=0.002, price_in=1, price_out=10)


def priced(policy: Policy) -> RouteContext:
    return replace(usual(policy), costs=COSTS, link=LinkState(reachable=True, rtt_s=0.5))


PRICED = World(priced)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    prompts = {EASY: (1, 1), MIDDLE: (0, 0.5), HARD: (0, 1), PRIVATE: (1, 1), BLOCKED: (1, 1)}
    rows = [{"prompt": prompt, "weak": weak, "strong": strong, "max_tokens": 10} for prompt, (weak, strong) in prompts.items()]
    return written(tmp_path / "a.jsonl", *rows)


def test_each_row_goes_where_the_dry_run_sends_it(file: Path) -> None:
    found = replay(read_rows(file), Policy.default())
    assert [one.route for one in found] == ["edge", "cascade", "cloud", "edge", "refuse"]
    assert [one.reason for one in found] == ["simple", "low_confidence", "hard", "private", "blocked"]
    assert [one.quality for one in found] == [1, 0.5, 1, 1, 0]  # a refusal answers nothing
    assert [one.cost for one in found] == [0, None, None, 0, 0] and not any(one.seconds for one in found)
    assert not any(word in repr(found) for word in ("France", "bob", "AKIA", "Rust"))


def test_the_shares_are_of_all_rows_and_a_cascade_counts_at_worst(file: Path) -> None:
    rows, policy = read_rows(file), Policy.default()
    found = shares(replay(rows, policy))
    assert found.route == {"edge": 0.4, "cascade": 0.2, "cloud": 0.2, "refuse": 0.2} and found.cloud_share == 0.4
    assert found.privacy == {"public": 0.6, "local_only": 0.2, "block": 0.2} and sum(found.rule.values()) == pytest.approx(1)
    assert found.cost is None and found.seconds is None
    assert shares(replay(rows, policy, World(handover=0.25))).cloud_share == pytest.approx(0.25)


def test_costs_and_times_by_hand(file: Path) -> None:
    edge, cascade, cloud, private, refused = replay(read_rows(file), Policy.default(), PRICED)
    assert (edge.cost, private.cost, refused.cost, refused.seconds) == (0, 0, 0, 0)
    assert edge.seconds == pytest.approx(edge.tokens * 0.001 + 0.1)
    assert cloud.seconds == pytest.approx(0.5 + 10 * 0.002) and cloud.cost == pytest.approx(cloud.tokens + 100)
    assert cascade.seconds == pytest.approx(cascade.tokens * 0.001 + 0.1 + 0.52)
    half = replay(read_rows(file), Policy.default(), World(priced, handover=0.5))[1]
    assert half.cost == pytest.approx((cascade.tokens + 100) / 2) and half.seconds == pytest.approx(cascade.seconds - 0.26)
    assert half.quality == 0.25


def test_rows_without_outcomes_have_shares_only(tmp_path: Path) -> None:
    found = replay(read_rows(written(tmp_path / "a.jsonl", {"prompt": EASY})), Policy.default())
    assert found[0].quality is None and shares(found).rows == 1


@pytest.mark.parametrize(
    ("time", "moment"),
    [(0.0, Moment(0, 4)), (86_399.0, Moment(23, 4)), (4 * 86_400.0, Moment(0, 1)), (-1.0, Moment(23, 3)), (1767323045.0, Moment(3, 5))],
)
def test_a_row_is_decided_at_its_own_time(time: float, moment: Moment) -> None:
    assert at(time, usual(Policy.default())).moment == moment
    assert at(None, usual(Policy.default())).moment is None


def test_a_rule_over_the_time_sees_the_row_s(tmp_path: Path) -> None:
    policy = Policy.parse('[[rule]]\nname = "night"\nwhen = "hour < 6"\nroute = "cloud"')
    rows = [{"prompt": EASY, "time": "2026-01-02T03:00Z"}, {"prompt": EASY, "time": "2026-01-02T12:00Z"}, {"prompt": EASY}]
    found = replay(read_rows(written(tmp_path / "a.jsonl", *rows)), policy)
    assert [one.rule for one in found] == ["rule.night", "complexity.cascade_from", "complexity.cascade_from"]
