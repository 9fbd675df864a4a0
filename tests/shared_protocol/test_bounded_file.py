"""A file that may be anything is read up to a bound, and no further."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hybrid.router.confidence import outcome_file
from hybrid.router.evaluate import recording, rows
from hybrid.router.policy.policy import MAX_BYTES, Policy
from hybrid.shared_protocol.bounded_file import lines_of, read_at_most
from hybrid.shared_protocol.errors import ConfigError, HybridError


def test_what_fits_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_at_most(file, 5) == b"12345"
    with pytest.raises(OSError, match="too large"):
        read_at_most(file, 4)


def test_lines_are_those_of_the_file_and_a_long_one_is_not_held(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a\n\nbcd\ne")
    with file.open() as opened:
        assert list(lines_of(opened, 4)) == ["a\n", "\n", "bcd\n", "e"]
    with file.open() as opened, pytest.raises(OSError, match="too large"):
        list(lines_of(opened, 3))


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no /dev/zero")
@pytest.mark.parametrize(
    "read",
    [
        lambda: Policy.load("/dev/zero"),
        lambda: rows.read_rows("/dev/zero"),
        lambda: recording.read_records("/dev/zero"),
        lambda: outcome_file.read_outcome_file("/dev/zero"),
    ],
)
def test_a_file_without_an_end_is_a_typed_error(read: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((rows, "MAX_LINE"), (recording, "MAX_BYTES"), (outcome_file, "MAX_BYTES")):
        monkeypatch.setattr(module, name, 2**20)
    with pytest.raises(HybridError, match="File too large"):
        read()


def test_a_policy_of_the_largest_size_is_one_and_a_name_that_none_can_have_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text("#" * MAX_BYTES)
    assert Policy.load(file).hash == Policy.default().hash
    with pytest.raises(ConfigError, match="Invalid argument"):
        Policy.load("a\0b")
