"""A comparison names each prompt whose route changes, with the rules of both sides, and what it changes in all."""

from pathlib import Path

import pytest
from hybrid.router.evaluate.compare import compare, figures_of
from hybrid.router.evaluate.figure import Undefined
from hybrid.router.evaluate.replay import replay
from hybrid.router.evaluate.rows import read_rows
from hybrid.router.policy.policy import Policy
from hybrid.tests.router.evaluate.test_outcomes import written
from hybrid.tests.router.evaluate.test_replay import EASY, HARD, MIDDLE, PRICED, PRIVATE

OURS = Policy.parse('[complexity]\ncascade_from = 0.6\nhard_from = 0.6\n[[rule]]\nname = "all"\nwhen = "complexity < 0.2"\nroute = "edge"')


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = {EASY: (1, 1), MIDDLE: (0, 1), HARD: (0, 1), PRIVATE: (1, 1)}
    return written(
        tmp_path / "a.jsonl", *({"id": p[:4], "prompt": p, "weak": w, "strong": s, "max_tokens": 9} for p, (w, s) in rows.items())
    )


def test_each_change_with_both_sides(file: Path) -> None:
    rows = read_rows(file)
    found = compare(replay(rows, Policy.default(), PRICED), replay(rows, OURS, PRICED))
    assert [change.id for change in found.changes] == ["Writ"] and found.changed == 0.25
    assert found.moves == {"cascade -> edge": 1} and found.causes == {"complexity.hard_from -> complexity.cascade_from": 1}
    assert found.same_route_other_rule == 1  # the easy one, now by a rule
    assert (found.before.cloud_share, found.after.cloud_share, found.accuracy) == (0.5, 0.25, -0.25)
    assert found.cost is not None and found.cost < 0 and found.seconds is not None and found.seconds < 0
    assert figures_of(found)["cloud_share_change"] == -0.25


def test_a_policy_against_itself_changes_nothing(file: Path) -> None:
    decided = replay(read_rows(file), Policy.default())
    found = compare(decided, decided)
    assert found.changes == () and found.moves == {} and found.accuracy == 0 and found.interval == (0, 0)
    assert isinstance(figures_of(found)["cost_change"], Undefined)


def test_without_outcomes_the_accuracy_is_not_known(tmp_path: Path) -> None:
    decided = replay(read_rows(written(tmp_path / "a.jsonl", {"prompt": EASY})), Policy.default())
    assert isinstance(compare(decided, decided).accuracy, Undefined)
