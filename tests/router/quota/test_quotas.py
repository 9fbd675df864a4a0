"""User, tenant, model and money must all admit a request; what is reserved is settled once, or given back when its lease ends."""

from __future__ import annotations

import itertools
import math

import pytest
from hybrid.router.policy.policy import Policy
from hybrid.router.quota.account import Account, Hold, InvalidUse, Use
from hybrid.router.quota.quotas import Quotas
from hybrid.tests.support.parallel import in_parallel
from hypothesis import given
from hypothesis import strategies as st

ANN, BOB = Account("ann", "acme", "big"), Account("bob", "acme", "big")


def quotas_of(text: str, **options: object) -> Quotas:
    return Quotas(Policy.parse(f"[quota]\n{text}").quota, new_name=map(str, itertools.count()).__next__, **options)  # type: ignore[arg-type]


def left(quotas: Quotas, account: Account, now: float = 0.0) -> dict[str, float]:
    view = quotas.view(account, now)
    return {one.level: one.available for one in (view, *view.above)}


LEVELS = """
capacity = 100
refill_per_s = 0
tenant_capacity = 150
model_capacity = 1000
"""


def test_all_levels_must_admit_and_one_that_does_not_leaves_the_others_untouched() -> None:
    quotas = quotas_of(LEVELS)
    assert quotas.reserve(ANN, Use(90), 0.0) is not None
    assert quotas.reserve(BOB, Use(90), 0.0) is None  # bob has 100, but acme only 60
    assert left(quotas, BOB) == {"user": 100, "tenant": 60, "model": 910}
    assert quotas.reserve(BOB, Use(60), 0.0) is not None
    assert left(quotas, BOB) == {"user": 40, "tenant": 0, "model": 850}


def test_a_user_of_one_tenant_is_not_the_user_of_that_name_of_another() -> None:
    quotas = quotas_of(LEVELS)
    assert quotas.reserve(ANN, Use(100), 0.0) is not None
    other = Account("ann", "globex", "big")
    assert left(quotas, other) == {"user": 100, "tenant": 150, "model": 900}
    assert left(quotas, Account("ann", None, "small")) == {"user": 100, "tenant": 150, "model": 1000}


def test_what_was_reserved_is_settled_on_every_level_once() -> None:
    quotas = quotas_of(LEVELS)
    hold = quotas.reserve(ANN, Use(90), 0.0)
    assert hold is not None
    for _ in range(3):
        quotas.settle(hold, Use(25), 0.0)
    assert left(quotas, ANN) == {"user": 75, "tenant": 125, "model": 975}


@pytest.mark.parametrize(
    ("told", "charged"),
    [
        (Use(20, 1.0), (20, 1.0, 0)),
        (Use(3_000, 3.0, 3_000), (3_000, 3.0, 3_000)),  # a tokenizer may be as wrong
        (Use(3_001, 3.0), (30, 2.0, 0)),
        (Use(10**12, 10.0**9), (30, 2.0, 0)),
        (Use(30, 2.0, 10**12), (30, 2.0, 3_000)),
    ],
)
def test_a_report_that_is_absurd_is_not_believed(told: Use, charged: tuple[float, ...], caplog: pytest.LogCaptureFixture) -> None:
    quotas = quotas_of("capacity = 1000\nrefill_per_s = 0\nbudget = 10\nrejected_capacity = 1000")
    hold = quotas.reserve(ANN, Use(30, 2.0), 0.0)
    assert hold is not None
    quotas.settle(hold, told, 0.0)
    now = left(quotas, ANN)
    assert (1000 - now["user"], 10 - now["budget"], 1000 - quotas.rejected(ANN, 0.0).available) == charged
    absurd = (told.tokens, told.rejected) != (charged[0], charged[2])
    assert (f"{told.tokens} tokens and {told.rejected} rejected drafts were reported" in caplog.text) is absurd


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, -0.5])
@pytest.mark.parametrize("name", ["tokens", "money", "rejected"])
def test_nobody_uses_less_than_nothing_or_what_is_no_number(name: str, value: float) -> None:
    with pytest.raises(InvalidUse, match=f"{name}") as refused:
        Use(**{name: value})  # type: ignore[arg-type]
    assert refused.value.param == name


def test_a_limit_of_zero_means_nothing_and_not_unlimited() -> None:
    for level in ("capacity", "tenant_capacity", "model_capacity", "budget"):
        quotas = quotas_of(f"{level} = 0")
        assert quotas.reserve(ANN, Use(1, 0.01), 1e6) is None, level
        assert not quotas.view(ANN, 1e6).admits(1, 0.01), level


def test_eight_threads_with_budget_for_one_admit_exactly_one() -> None:
    for level in ("capacity", "tenant_capacity", "model_capacity"):
        quotas = quotas_of(f"{level} = 60\n" + "refill_per_s = 0")
        assert sum(hold is not None for hold in in_parallel(8, lambda quotas=quotas: quotas.reserve(ANN, Use(60), 0.0))) == 1


def test_a_reservation_whose_owner_died_comes_back_when_its_lease_ends() -> None:
    quotas = quotas_of("capacity = 100\nrefill_per_s = 0\nlease_s = 60")
    assert quotas.reserve(ANN, Use(100), 10.0) is not None
    assert quotas.reserve(ANN, Use(1), 69.9) is None
    assert quotas.reserve(ANN, Use(100), 70.0) is not None


def test_an_answer_that_outlives_its_lease_is_still_charged_once() -> None:
    quotas = quotas_of("capacity = 100\nrefill_per_s = 0\nlease_s = 60")
    hold = quotas.reserve(ANN, Use(100), 0.0)
    assert hold is not None
    assert left(quotas, ANN, 61.0)["user"] == 100
    quotas.settle(hold, Use(30), 62.0)
    quotas.settle(hold, Use(30), 63.0)
    assert left(quotas, ANN, 64.0)["user"] == 70


def test_drafts_in_vain_do_not_drain_the_user_s_quota_but_a_bucket_of_their_own() -> None:
    quotas = quotas_of("capacity = 100\nrefill_per_s = 0\nrejected_capacity = 50\nrejected_refill_per_s = 10")
    hold = quotas.reserve(ANN, Use(40), 0.0)
    assert hold is not None
    quotas.settle(hold, Use(40, rejected=48), 0.0)
    assert left(quotas, ANN)["user"] == 60
    assert quotas.rejected(ANN, 0.0).available == 2
    assert not quotas.rejected(ANN, 0.0).admits(8)
    assert quotas.rejected(ANN, 1.0).admits(8)
    assert quotas.rejected(BOB, 0.0).available == 50


def test_money_is_a_quota_too_and_a_model_without_a_price_is_neither_free_nor_everybody_s_problem() -> None:
    quotas = quotas_of("budget = 1.5\nbudget_refill_per_s = 0.5")
    assert quotas.reserve(ANN, Use(10, money=None), 0.0) is None  # nobody knows what it costs
    assert not quotas.view(ANN, 0.0).admits(10, None)
    hold = quotas.reserve(ANN, Use(10, money=1.0), 0.0)
    assert hold is not None
    assert quotas.view(ANN, 0.0).wait_s(10, 1.0) == 1.0
    quotas.settle(hold, Use(10, money=0.25), 0.0)
    assert left(quotas, ANN)["budget"] == 1.25


def test_the_wait_is_that_of_the_slowest_level_and_none_where_no_waiting_helps() -> None:
    quotas = quotas_of("capacity = 100\nrefill_per_s = 10\ntenant_capacity = 200\ntenant_refill_per_s = 3")
    for account in (ANN, BOB):
        assert quotas.reserve(account, Use(100), 0.0) is not None
    view = quotas.view(ANN, 0.0)
    assert view.wait_s(50) == 50 / 3
    assert math.ceil(view.wait_s(50) or 0) == 17
    blocking = view.blocking(50)
    assert blocking is not None and blocking.rule == "quota.tenant_capacity"
    assert view.wait_s(101) is None and not view.can_ever_admit(101)
    assert view.can_ever_admit(100)


def test_a_flood_of_names_is_bounded_and_forgives_no_debt() -> None:
    quotas = quotas_of("capacity = 10\nrefill_per_s = 1\nrejected_capacity = 'unlimited'", max_buckets=3)
    for user in ("ann", "bob", "eve"):
        assert quotas.reserve(Account(user), Use(10), 0.0) is not None
    assert sum(quotas.reserve(Account(f"user {i}"), Use(10), 0.0) is not None for i in range(100)) == 1  # they share one bucket
    assert left(quotas, Account("ann"))["user"] == 0


def test_a_bucket_that_is_full_again_makes_room() -> None:
    quotas = quotas_of("capacity = 10\nrefill_per_s = 1", max_buckets=1)
    hold = quotas.reserve(Account("ann"), Use(10), 0.0)
    assert hold is not None
    quotas.settle(hold, Use(10), 0.0)
    assert quotas.reserve(Account("bob"), Use(10), 10.0) is not None
    assert left(quotas, Account("bob"), 10.0)["user"] == 0
    assert left(quotas, Account("ann"), 20.0)["user"] == 10


def test_nothing_drifts_over_ten_thousand_small_refills() -> None:
    quotas = quotas_of("capacity = 1_000_000\nrefill_per_s = 0.1")
    hold = quotas.reserve(ANN, Use(1_000_000), 0.0)
    assert hold is not None
    quotas.settle(hold, Use(1_000_000), 0.0)
    for tenths in range(1, 10_001):
        quotas.view(ANN, tenths / 10)
    assert left(quotas, ANN, 1000.0)["user"] == 100


STEPS = st.lists(
    st.tuples(st.sampled_from(["reserve", "settle", "wait", "crash"]), st.integers(0, 3), st.integers(0, 60), st.integers(0, 80)),
    max_size=60,
)


@given(STEPS)
def test_no_interleaving_admits_more_than_there_is_and_what_is_charged_is_what_was_used(steps: list[tuple[str, int, int, int]]) -> None:
    """Against a count in plain integers: with nothing refilling, admitted and not yet given back never exceeds the limits."""
    quotas = quotas_of("capacity = 100\nrefill_per_s = 0\ntenant_capacity = 160\nlease_s = 50")
    accounts = [ANN, BOB, Account("eve", "globex"), Account("ann", "globex")]
    open_holds: list[tuple[Hold, int, float]] = []  # hold, reserved, until when
    charged = dict.fromkeys(accounts, 0)
    now = 0.0
    for what, who, amount, used in steps:
        account = accounts[who]
        lent = {a: sum(r for h, r, until in open_holds if h.account == a and until > now) for a in accounts}
        if what == "reserve":
            hold = quotas.reserve(account, Use(amount), now)
            fits_user = charged[account] + lent[account] + amount <= 100
            peers = [a for a in accounts if a.tenant == account.tenant]
            fits_tenant = sum(charged[a] + lent[a] for a in peers) + amount <= 160
            assert (hold is not None) == (fits_user and fits_tenant)
            if hold is not None:
                open_holds.append((hold, amount, now + 50))
        elif what == "settle" and open_holds:
            hold, reserved, until = open_holds.pop(amount % len(open_holds))
            spent = used if until <= now else min(used, reserved)
            quotas.settle(hold, Use(spent), now)
            quotas.settle(hold, Use(spent), now)
            charged[hold.account] += spent
        elif what == "wait":
            now += amount
        elif what == "crash" and open_holds:
            now = max(until for _, _, until in open_holds)  # all leases end; their owners never come back
            open_holds.clear()
    now += 1000
    for account in accounts:
        assert left(quotas, account, now)["user"] == 100 - charged[account]


def test_what_comes_late_is_charged_also_where_nothing_was_reserved() -> None:
    quotas = quotas_of("capacity = 100\nrefill_per_s = 0\nlease_s = 50")
    hold = quotas.reserve(ANN, Use(0), 0.0)
    assert hold is not None
    assert left(quotas, ANN, 60.0)["user"] == 100
    quotas.settle(hold, Use(7), 60.0)
    quotas.settle(hold, Use(7), 60.0)
    assert left(quotas, ANN, 60.0)["user"] == 93


def test_the_bookkeeping_of_eight_threads_loses_no_token() -> None:
    quotas = quotas_of("capacity = 100_000\nrefill_per_s = 0\ntenant_capacity = 100_000")

    def work() -> int:
        used = 0
        for step in range(100):
            hold = quotas.reserve(ANN, Use(7 + step % 5), 0.0)
            assert hold is not None
            quotas.settle(hold, Use(step % 7), 0.0)
            used += step % 7
        return used

    used = sum(in_parallel(8, work))
    assert left(quotas, BOB)["tenant"] == left(quotas, ANN)["user"] == 100_000 - used


def test_an_answer_of_unknown_price_is_charged_its_tokens_all_the_same() -> None:
    quotas = quotas_of("capacity = 100\nrefill_per_s = 0")
    hold = quotas.reserve(ANN, Use(60), 0.0)
    assert hold is not None
    quotas.change(Policy.parse("[quota]\ncapacity = 100\nrefill_per_s = 0\nbudget = 5\nbudget_refill_per_s = 0").quota)
    quotas.settle(hold, Use(40, money=None), 0.0)
    assert left(quotas, ANN) == {"user": 60, "budget": 5}
