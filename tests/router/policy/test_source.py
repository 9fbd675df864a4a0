"""A policy file that changes is read again; one that is wrong changes nothing."""

import logging
import os
import threading
from pathlib import Path

import pytest
from hybrid.router.policy.policy import Policy
from hybrid.router.policy.source import PolicySource
from hybrid.shared_protocol.errors import ConfigError


def write(file: Path, text: str, second: int) -> None:
    """Write, as if at that second: what a file system notes may be too coarse for a quick test."""
    file.write_text(text)
    os.utime(file, (second, second))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write(tmp_path / "ours.toml", "[quota]\ncapacity = 1", 1)
    return tmp_path / "ours.toml"


def test_a_changed_file_is_the_policy_from_the_next_look_on(file: Path) -> None:
    source = PolicySource(file)
    assert source.current(0.0).quota.capacity == 1
    write(file, "[quota]\ncapacity = 2", 2)
    assert source.current(0.5).quota.capacity == 1  # it is looked at once a second
    assert source.current(1.0).quota.capacity == 2
    assert source.error is None


def test_an_unchanged_file_is_not_read_again(file: Path) -> None:
    source = PolicySource(file)
    assert source.current(0.0) is source.current(5.0) is source.current(10.0)


def test_a_wrong_file_is_reported_once_and_the_last_good_policy_kept(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = PolicySource(file)
    for number, text in enumerate(("[quota]\ncapacity = -1", "[quota", '[[rule]]\nname="a"\nroute="edge"\nwhen="tokenz > 1"', ""), 2):
        write(file, text, number)
        caplog.clear()
        with caplog.at_level(logging.INFO, "hybrid.policy"):
            assert source.current(number * 10.0).quota.capacity == 1
            assert source.current(number * 10.0 + 5).quota.capacity == 1
        assert source.error is not None and str(source.error) in caplog.text
        assert len(caplog.records) == 1
    write(file, "[quota]\ncapacity = 7", 9)
    assert source.current(100.0).quota.capacity == 7 and source.error is None


def test_a_file_that_goes_away_changes_nothing_until_it_is_back(file: Path) -> None:
    source = PolicySource(file)
    file.unlink()
    assert source.current(1.0).quota.capacity == 1
    assert source.error is not None and "No such file" in str(source.error)
    write(file, "[quota]\ncapacity = 3", 3)
    assert source.current(2.5).quota.capacity == 3 and source.error is None


def test_a_file_of_the_same_length_and_time_is_seen_by_its_place_on_the_disk(file: Path, tmp_path: Path) -> None:
    source = PolicySource(file)
    other = tmp_path / "other.toml"
    write(other, "[quota]\ncapacity = 8", 1)
    other.replace(file)
    assert source.current(1.0).quota.capacity == 8


def test_what_is_no_good_to_begin_with_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        PolicySource(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="best, cheapest"):
        PolicySource("preset:none")


def test_a_policy_or_a_preset_never_changes() -> None:
    ours = Policy.parse("[quota]\ncapacity = 5")
    assert PolicySource(ours).current(0.0) is PolicySource(ours).current(9.0) is ours
    assert PolicySource().current(0.0) == Policy.default()
    assert PolicySource("preset:offline").current(0.0) == Policy.load("preset:offline")


def test_threads_see_one_policy_or_the_other(file: Path) -> None:
    source = PolicySource(file)
    seen: set[int] = set()

    def ask(offset: int) -> None:
        for turn in range(200):
            seen.add(int(source.current(float(turn * 8 + offset)).quota.capacity))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for number in range(2, 30):
        write(file, f"[quota]\ncapacity = {1 if number % 2 else 2}", number)
    for thread in threads:
        thread.join()
    assert seen <= {1, 2}
    assert source.current(10_000.0).quota.capacity == 1 and source.error is None
