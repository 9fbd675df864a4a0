"""What a client learns of drafting: worked out by hand."""

from __future__ import annotations

import math

import pytest
from hybrid.edge.learned import FORGET, PRIOR_ACCEPTANCE, PRIOR_GROWTH, Learned, Round
from hybrid.router.plan import plan_speculation
from hybrid.router.policy.policy import Policy

AUTO = Policy.parse('[speculation]\nmode = "auto"\nmin_gain = 1.05\nmax_draft = 4\n').speculation
DRAFT = (0.0, 0.01, 0.02, 0.03, 0.04)


def test_nothing_is_known_of_a_cloud_before_its_first_answer() -> None:
    facts = Learned().facts(rtt_s=0.01, bandwidth_bytes_s=None, draft_s=DRAFT)
    assert facts.verify_s is None
    assert facts.acceptance == pytest.approx(PRIOR_ACCEPTANCE)
    assert plan_speculation(facts, AUTO).mode == "plain"


def test_a_streamed_answer_tells_the_cloud_s_step() -> None:
    learned = Learned().after_plain(10, 2.0)
    assert learned.step_s == pytest.approx(0.2)
    assert learned.after_plain(10, 1.0).step_s == pytest.approx(0.2 + 0.2 * (0.1 - 0.2))
    facts = learned.facts(rtt_s=0.01, bandwidth_bytes_s=1e6, draft_s=DRAFT)
    assert facts.verify_s == pytest.approx([0.2 * (1 + PRIOR_GROWTH * k) for k in range(5)])
    assert (facts.rtt_s, facts.bandwidth_bytes_s, facts.draft_s) == (0.01, 1e6, DRAFT)


def test_of_an_answer_in_one_piece_its_prompt_is_taken_into_account() -> None:
    assert Learned().after_whole(100, 10, 3.0).step_s == pytest.approx(0.1)  # 10 steps, and 100 tokens at a fifth of one


@pytest.mark.parametrize(("tokens", "seconds"), [(0, 1.0), (-1, 1.0), (5, 0.0), (5, -1.0), (5, math.nan), (5, math.inf)])
def test_times_that_are_none_teach_nothing(tokens: int, seconds: float) -> None:
    assert Learned().after_plain(tokens, seconds) == Learned()
    assert Learned().after_whole(0, tokens, seconds) == Learned()


def test_acceptance_counts_tokens_up_to_the_first_that_is_refused() -> None:
    learned = Learned().after_rounds([Round(4, 4, 1.0), Round(4, 1, 1.0)], None)
    assert learned.kept == pytest.approx(4 * FORGET + 1)
    assert learned.refused == pytest.approx(1.0)
    many = Learned()
    for _ in range(400):
        many = many.after_rounds([Round(4, 0, 1.0)], None)
    assert many.acceptance < 0.2
    for _ in range(400):
        many = many.after_rounds([Round(4, 4, 1.0)], None)
    assert many.acceptance > 0.9  # old rounds are forgotten


def test_rounds_tell_what_further_positions_cost_but_for_the_first() -> None:
    learned = Learned(step_s=0.1)
    assert learned.after_rounds([Round(4, 4, 9.0)], 0.02).growth == PRIOR_GROWTH
    # 0.18 s for 5 positions of 0.1 s: each further one costs 0.2 of it; then 0.34 s: 0.6, of which a fifth is taken over
    assert learned.after_rounds([Round(4, 4, 9.0), Round(4, 2, 0.20)], 0.02).growth == pytest.approx(0.2)
    assert learned.after_rounds([Round(4, 4, 9.0), Round(4, 2, 0.36)], 0.02).growth == pytest.approx(0.2 + 0.2 * 0.4)
    # a plain step tells the step itself
    assert learned.after_rounds([Round(4, 4, 9.0), Round(0, 0, 0.22)], 0.02).step_s == pytest.approx(0.1 + 0.2 * 0.1)
    # what came sooner than light allows, or with no round trip known, teaches no time
    assert learned.after_rounds([Round(4, 4, 9.0), Round(4, 2, 0.01)], 0.02).growth == PRIOR_GROWTH
    assert learned.after_rounds([Round(4, 4, 9.0), Round(4, 2, 0.36)], None).growth == PRIOR_GROWTH


def test_the_plan_follows_what_is_learned() -> None:
    slow_cloud = Learned().after_plain(10, 2.0)
    together = plan_speculation(slow_cloud.facts(rtt_s=0.01, bandwidth_bytes_s=None, draft_s=DRAFT), AUTO)
    assert together.mode == "sync"
    disliked = slow_cloud
    for _ in range(50):
        disliked = disliked.after_rounds([Round(4, 0, 0.4)], 0.01)
    alone = plan_speculation(disliked.facts(rtt_s=0.01, bandwidth_bytes_s=None, draft_s=DRAFT), AUTO)
    assert alone.mode == "plain"
    assert "times as fast as the cloud alone" in alone.why
