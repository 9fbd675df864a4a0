"""Files of JSON lines are read in one way, and what is wrong with one is said without its text."""

from pathlib import Path

import msgspec
import pytest
from hybrid.shared_protocol.errors import HybridError, InvalidRequest, NotFound
from hybrid.shared_protocol.json_lines import line_as, lines_in


class Row(msgspec.Struct):
    said: str


def all_of(error: BaseException | None) -> str:
    """The error with all that it drags along."""
    return "" if error is None else f"{error!r} {getattr(error, 'object', '')!r} {all_of(error.__context__)}"


def test_lines_keep_their_numbers_and_those_without_anything_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "file.jsonl").write_bytes('\ufeff{"said": "a"}\n\n \r\n{"said": "\u2028b"}\r\n{"said": "c"}'.encode())
    lines = lines_in(tmp_path / "file.jsonl", 99, hint="no")
    assert [where for where, _ in lines] == ["file.jsonl:1", "file.jsonl:4", "file.jsonl:5"]
    assert [line_as(Row, line, where, what="row", hint="no").said for where, line in lines] == ["a", "\u2028b", "c"]


@pytest.mark.parametrize(
    ("content", "limit", "kind", "said"),
    [
        (None, 99, NotFound, "No such file"),
        (b"{}" * 50, 99, NotFound, "File too large"),
        (b'{"said": "swordfish\xff"}', 99, InvalidRequest, "file.jsonl is not UTF-8 at byte 19"),
        (b'\n{"said": 3, "swordfish": 1}', 99, InvalidRequest, "file.jsonl:2: no row: Expected `str`, got `int`"),
        (b'{"said": "swordfish}', 99, InvalidRequest, "file.jsonl:1: no row: "),
        (b"[" * 90, 99, InvalidRequest, "file.jsonl:1: no row: "),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_without_its_text(
    tmp_path: Path, content: bytes | None, limit: int, kind: type[HybridError], said: str
) -> None:
    if content is not None:
        (tmp_path / "file.jsonl").write_bytes(content)
    with pytest.raises(kind) as refused:
        for where, line in lines_in(tmp_path / "file.jsonl", limit, hint="name a file"):
            line_as(Row, line, where, what="row", hint="a row has: said")
    assert said in str(refused.value) and "swordfish" not in all_of(refused.value)
