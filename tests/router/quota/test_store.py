"""The file in which quotas live: whole at any moment, shared by processes, and given up on when it is slow or broken."""

from __future__ import annotations

import fcntl
import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hybrid.router.policy.policy import Policy
from hybrid.router.quota.account import Account, Use
from hybrid.router.quota.quotas import Quotas
from hybrid.router.quota.store import FileStore, QuotaStoreFailed
from hybrid.tests.support.parallel import in_parallel
from hybrid.tests.support.quota_files import store_of

ANN = Account("ann", "acme")
NUMBERS = itertools.count()


def quotas_at(path: Path, text: str = "", **options: object) -> Quotas:
    names = (f"{path}-{number}-{id(options)}" for number in NUMBERS)
    policy = Policy.parse(f"[quota]\ncapacity = 100\nrefill_per_s = 1\n{text}").quota
    return Quotas(policy, store_of(path), new_name=names.__next__, **options)  # type: ignore[arg-type]


def test_what_was_used_and_what_is_reserved_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "quota.json"
    first = quotas_at(path)
    hold = first.reserve(ANN, Use(40), 0.0)
    assert hold is not None and first.reserve(ANN, Use(50), 0.0) is not None
    first.settle(hold, Use(30), 0.0)
    again = quotas_at(path)
    assert again.view(ANN, 0.0).available == 20
    assert again.view(ANN, 5.0).available == 25  # the time in between counts
    assert again.view(ANN, 900.0).available == 100  # and the lease of the one that was never settled ends
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []


def test_money_that_was_spent_stays_spent_after_a_restart(tmp_path: Path) -> None:
    path, budget = tmp_path / "quota.json", "budget = 2.0\nbudget_refill_per_s = 0\n"
    first = quotas_at(path, budget)
    hold = first.reserve(ANN, Use(10, money=1.5), 0.0)
    assert hold is not None
    first.settle(hold, Use(10, money=1.25), 0.0)
    again = quotas_at(path, budget).view(ANN, 0.0)
    assert again.admits(10, 0.75) and not again.admits(10, 0.76)


def test_the_file_holds_no_name_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "quota.json"
    assert quotas_at(path).reserve(ANN, Use(40), 0.0) is not None
    assert b"ann" not in path.read_bytes() and b"acme" not in path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0


def test_a_clock_that_is_set_back_refills_nothing(tmp_path: Path) -> None:
    path = tmp_path / "quota.json"
    assert quotas_at(path).reserve(ANN, Use(100), 1000.0) is not None
    assert quotas_at(path).view(ANN, 10.0).available == 0
    assert quotas_at(path).view(ANN, 1001.0).available == 1


def test_threads_and_processes_with_budget_for_one_admit_exactly_one(tmp_path: Path) -> None:
    path = tmp_path / "quota.json"
    stores = [FileStore(path, clock=lambda: 0.0, sleep=lambda s: None) for _ in range(8)]  # as many processes would have
    policy = Policy.parse("[quota]\ncapacity = 60\nrefill_per_s = 0").quota
    numbers = iter(range(8))
    admitted = in_parallel(
        8, lambda: (n := next(numbers), Quotas(policy, stores[n], new_name=lambda: f"p{n}").reserve(ANN, Use(60), 0.0))[1]
    )
    assert sum(hold is not None for hold in admitted) == 1


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    """A quota's file that another process holds."""
    path = tmp_path / "quota.json"
    code = f"import fcntl, sys; f = open({str(path) + '.lock'!r}, 'a'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        yield path
        holder.kill()


def test_a_store_that_is_locked_for_too_long_fails_and_changes_nothing(locked: Path) -> None:
    with pytest.raises(QuotaStoreFailed, match="locked for"):
        store_of(locked).transact(lambda ledger: None)
    assert not locked.exists()


@pytest.mark.parametrize(("mode", "admits"), [("refuse", False), ("admit", True), ("allowance", False)])
def test_a_store_that_is_slow_or_broken_really_fails_closed_or_open_as_declared(tmp_path: Path, mode: str, admits: bool) -> None:
    path = tmp_path / "quota.json"
    path.write_text("{torn")
    quotas = quotas_at(path, f'on_store_failure = "{mode}"')
    view = quotas.view(ANN, 0.0)
    assert view.admits(1) == admits
    assert (quotas.reserve(ANN, Use(1), 0.0) is not None) == admits
    assert quotas.rejected(ANN, 0.0).admits(1) == admits
    if not admits:
        assert view.blocking(1).rule == "quota.on_store_failure"  # type: ignore[union-attr]
        assert view.wait_s(1) is None
    assert path.read_text() == "{torn"  # whatever it was, it is not written over


def test_what_could_not_be_written_is_charged_once_when_the_store_is_back(tmp_path: Path) -> None:
    path = tmp_path / "quota.json"
    quotas = quotas_at(path, 'on_store_failure = "admit"')
    reserved = quotas.reserve(ANN, Use(50), 0.0)
    whole = path.read_bytes()
    path.write_text("{torn")
    free = quotas.reserve(ANN, Use(50), 0.0)
    assert reserved is not None and free is not None
    for _ in range(2):
        quotas.settle(reserved, Use(10), 0.0)
        quotas.settle(free, Use(20), 0.0)
    path.write_bytes(whole)
    assert [quotas.view(ANN, 0.0).available for _ in range(3)] == [70, 70, 70]


def test_a_folder_that_is_not_there_is_a_store_that_fails(tmp_path: Path) -> None:
    with pytest.raises(QuotaStoreFailed, match="cannot be used"):
        store_of(tmp_path / "gone" / "quota.json").transact(lambda ledger: None)


def test_the_lock_is_free_after_every_transaction(tmp_path: Path) -> None:
    path = tmp_path / "quota.json"
    store = store_of(path)
    with pytest.raises(ZeroDivisionError):
        store.transact(lambda ledger: 1 // 0)
    store.transact(lambda ledger: None)
    with open(f"{path}.lock") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
