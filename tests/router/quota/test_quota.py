"""A bucket is reserved from before dispatch and settled after; time is passed in, so nothing here sleeps."""

import math
import random
import threading

import pytest
from hybrid.router.quota import QuotaView, Reservation, TokenBucket
from hybrid.tests.support.parallel import in_parallel


def test_a_bucket_starts_full_drains_and_fills_at_its_rate() -> None:
    bucket = TokenBucket(100, 2.0, now=10.0)
    assert bucket.reserve(70, 10.0) is not None
    assert bucket.view(10.0).available == 30
    assert bucket.view(15.0).available == 40
    assert bucket.view(1000.0).available == 100  # never more than its capacity


def test_a_clock_that_runs_backward_refills_nothing() -> None:
    bucket = TokenBucket(100, 1.0, now=50.0)
    bucket.reserve(100, 50.0)
    assert bucket.view(0.0).available == 0
    assert bucket.view(50.0).available == 0
    assert bucket.view(60.0).available == 10


def test_what_was_not_used_comes_back_and_what_was_used_beyond_is_charged() -> None:
    bucket = TokenBucket(100, 0.0, now=0.0)
    first, second = bucket.reserve(60, 0.0), bucket.reserve(40, 0.0)
    assert first is not None and second is not None
    bucket.settle(first, 10, 0.0)
    assert bucket.view(0.0).available == 50
    bucket.settle(second, 100, 0.0)  # the estimate was wrong
    assert bucket.view(0.0).available == -10
    assert bucket.reserve(1, 0.0) is None


def test_a_reservation_is_settled_once_and_only_by_its_own_bucket() -> None:
    bucket = TokenBucket(100, 0.0, now=0.0)
    reservation = bucket.reserve(60, 0.0)
    assert reservation is not None
    for _ in range(3):
        bucket.settle(reservation, 20, 0.0)
    bucket.settle(Reservation(50), 0, 0.0)
    assert bucket.view(0.0).available == 80


def test_giving_back_never_overfills() -> None:
    bucket = TokenBucket(100, 10.0, now=0.0)
    reservation = bucket.reserve(100, 0.0)
    assert reservation is not None
    bucket.settle(reservation, 0, 5.0)
    assert bucket.view(5.0).available == 100


def test_a_request_larger_than_the_capacity_is_refused_and_never_told_to_wait() -> None:
    bucket = TokenBucket(100, 5.0, now=0.0)
    assert bucket.reserve(101, 0.0) is None
    assert bucket.view(0.0).wait_s(101) is None
    bucket.reserve(100, 0.0)
    assert bucket.view(0.0).wait_s(30) == 6.0
    assert bucket.view(0.0).wait_s(0) == 0.0
    assert QuotaView(available=0, capacity=100, refill_per_s=0).wait_s(1) is None


def test_a_capacity_of_zero_lets_nothing_through() -> None:
    assert TokenBucket(0, 100.0, now=0.0).reserve(1, 1e9) is None


@pytest.mark.parametrize("seed", range(5))
def test_five_parallel_requests_of_60_against_100_a_minute_admit_one(seed: int) -> None:
    """Row H67: reserved at admission, so the sum admitted is at most the limit."""
    bucket = TokenBucket(100, 100 / 60, now=0.0)
    admitted = in_parallel(5, lambda: bucket.reserve(60, 0.0))
    assert sum(reservation is not None for reservation in admitted) == 1
    assert bucket.view(0.0).available == 40


def test_eight_threads_with_budget_for_one_admit_exactly_one() -> None:
    for _ in range(20):
        bucket = TokenBucket(10, 0.0, now=0.0)
        assert sum(r is not None for r in in_parallel(8, lambda bucket=bucket: bucket.reserve(10, 0.0))) == 1


def test_parallel_reserving_and_settling_loses_no_token() -> None:
    bucket = TokenBucket(1_000, 0.0, now=0.0)

    def work() -> int:
        source, used = random.Random(threading.get_ident()), 0
        for _ in range(200):
            if (reservation := bucket.reserve(source.randrange(50), 0.0)) is not None:
                spent = source.randrange(2)
                bucket.settle(reservation, spent, 0.0)
                used += spent
        return used

    used = sum(in_parallel(8, work))
    assert bucket.view(0.0).available == 1_000 - used


def test_without_a_quota_everything_is_admitted() -> None:
    assert QuotaView().admits(10**12)
    assert QuotaView().wait_s(10**12) == 0.0
    assert QuotaView().available == math.inf
