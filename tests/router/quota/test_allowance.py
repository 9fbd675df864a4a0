"""What a device may use while the quota's store is away: signed, bounded, expiring, and paid back exactly once."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hybrid.router.policy.policy import Policy
from hybrid.router.quota.account import Account, Use
from hybrid.router.quota.allowance import AllowanceBook, Grant, InvalidAllowance, Receipt, read_receipt, sign_grant
from hybrid.router.quota.quotas import Quotas
from hybrid.router.quota.store import MemoryStore
from hybrid.tests.support.parallel import in_parallel
from hybrid.tests.support.quota_files import store_of

KEY, OTHER = b"k" * 32, b"o" * 32
ANN = Account("ann", "acme")
GRANT = Grant("g1", "ann", "acme", 100, issued=1000.0, expires=2000.0)


def book_at(tmp_path: Path, grant: Grant = GRANT, key: bytes = KEY) -> AllowanceBook:
    return AllowanceBook(tmp_path / "allowance", sign_grant(grant, key), KEY)


def test_a_grant_that_was_not_signed_with_the_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidAllowance):
        book_at(tmp_path, key=OTHER)
    signed = sign_grant(GRANT, KEY)
    for forged in ("", "x", signed[:-2], "A" + signed[1:], signed + ".x", sign_grant(GRANT, KEY).replace(".", "")):
        with pytest.raises(InvalidAllowance) as refused:
            AllowanceBook(tmp_path / "allowance", forged, KEY)
        assert "ann" not in str(refused.value)
    with pytest.raises(InvalidAllowance, match="at least 16 bytes"):
        sign_grant(GRANT, b"short")
    with pytest.raises(InvalidAllowance):
        read_receipt(signed, KEY)  # signed, but a grant


def test_no_more_is_spent_than_was_granted_also_over_restarts(tmp_path: Path) -> None:
    assert book_at(tmp_path).spend(60, 1100.0)
    again = book_at(tmp_path)
    assert again.left(1100.0) == 40
    assert not again.spend(41, 1100.0)
    assert again.spend(40, 1100.0)
    assert sum(in_parallel(8, lambda: again.spend(1, 1100.0))) == 0


def test_eight_threads_with_an_allowance_for_one_spend_it_once(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    assert sum(in_parallel(8, lambda: book.spend(60, 1100.0))) == 1


def test_an_expired_grant_stays_expired_when_the_clock_is_set_back(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    assert book.spend(1, 1999.0)
    assert book.left(2000.0) == 0
    assert book.left(1500.0) == 0
    assert not book.spend(1, 1500.0)


def test_the_latest_time_seen_is_on_disk_once_something_was_asked_for(tmp_path: Path) -> None:
    book = book_at(tmp_path)
    assert not book.spend(1, 2001.0)
    assert book_at(tmp_path).left(1500.0) == 0


def test_a_clock_before_the_grant_was_issued_counts_as_then(tmp_path: Path) -> None:
    assert book_at(tmp_path).left(3.0) == 100


def test_a_book_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    book_at(tmp_path).spend(60, 1100.0)
    path = tmp_path / "allowance"
    text = path.read_text()
    path.write_text(("A" if text[0] != "A" else "B") + text[1:])
    with pytest.raises(InvalidAllowance):
        book_at(tmp_path)


def test_a_disk_that_fails_lets_nothing_be_spent(tmp_path: Path) -> None:
    book = AllowanceBook(tmp_path / "gone" / "allowance", sign_grant(GRANT, KEY), KEY)
    assert not book.spend(1, 1100.0)
    assert book.left(1100.0) == 100


def test_a_receipt_is_charged_exactly_once_however_often_it_comes(tmp_path: Path) -> None:
    authority = Quotas(Policy.parse("[quota]\ncapacity = 1000\nrefill_per_s = 0").quota, MemoryStore(), new_name=str)
    book = book_at(tmp_path)
    assert book.spend(60, 1100.0)
    book.settle(60, 45)
    early = read_receipt(book.receipt(), KEY)
    assert [authority.settle_receipt(early, 1200.0) for _ in range(3)] == [45, 0, 0]
    assert book.spend(20, 1250.0)
    late = read_receipt(book.receipt(), KEY)
    assert sum(in_parallel(8, lambda: authority.settle_receipt(late, 1300.0))) == 20
    assert authority.settle_receipt(early, 1300.0) == 0  # out of order
    assert authority.view(ANN, 1300.0).available == 1000 - 65
    with pytest.raises(InvalidAllowance, match="too late"):
        authority.settle_receipt(late, 2000.0 + 91 * 86_400)


@pytest.mark.parametrize("used", [-1, 10_001, 10**15])
def test_a_receipt_of_what_cannot_have_been_used_is_refused(used: int) -> None:
    quotas = Quotas(Policy.parse("[quota]\ncapacity = 1000").quota, new_name=map(str, itertools.count()).__next__)
    with pytest.raises(InvalidAllowance, match=f"{used} tokens"):
        quotas.settle_receipt(Receipt(GRANT, used), 1500.0)
    assert quotas.view(ANN, 1500.0).available == 1000


def test_while_the_store_is_away_the_allowance_admits_and_it_is_charged_when_the_store_is_back(tmp_path: Path) -> None:
    path = tmp_path / "quota.json"
    policy = Policy.parse('[quota]\ncapacity = 1000\nrefill_per_s = 0\non_store_failure = "allowance"').quota
    names = map(str, itertools.count())
    quotas = Quotas(policy, store_of(path), allowance=book_at(tmp_path), new_name=names.__next__)
    path.write_text("{torn")
    assert quotas.view(ANN, 1100.0).available == 100
    hold = quotas.reserve(ANN, Use(70), 1100.0)
    assert hold is not None
    assert quotas.reserve(ANN, Use(31), 1100.0) is None
    assert quotas.reserve(Account("bob", "acme"), Use(1), 1100.0) is None  # it is not his
    quotas.settle(hold, Use(50), 1100.0)
    quotas.settle(hold, Use(50), 1100.0)
    assert quotas.view(ANN, 1100.0).available == 50
    path.unlink()
    for _ in range(3):
        back = quotas.reserve(ANN, Use(10), 1200.0)
        assert back is not None
        quotas.settle(back, Use(0), 1200.0)
    assert quotas.view(ANN, 1200.0).available == 950
    restarted = Quotas(policy, store_of(path), allowance=book_at(tmp_path), new_name=names.__next__)
    assert restarted.reserve(ANN, Use(1), 1300.0) is not None
    assert restarted.view(ANN, 1300.0).available == 949
