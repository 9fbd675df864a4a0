"""Messages of several lines, and text that a terminal must not obey."""

from __future__ import annotations

import pytest
from hybrid.apps.cli.terminal import EndOfInput, Writer, printable, read_message


def message_of(*lines: str) -> tuple[str, list[bool]]:
    """The first message of `lines`, and for each line read whether it was read as a further one."""
    given, asked = iter(lines), []

    def read_line(more: bool) -> str:
        asked.append(more)
        try:
            return next(given)
        except StopIteration:
            raise EndOfInput from None

    return read_message(read_line), asked


@pytest.mark.parametrize(
    ("lines", "message", "read"),
    [
        (["hello", "next"], "hello", 1),
        (["one\\", "two\\", "three", "next"], "one\ntwo\nthree", 3),
        (["one\\"], "one", 2),
        (['"""', "def f():", "", "    pass", '"""', "next"], "def f():\n\n    pass", 5),
        (['"""one', 'two"""', "next"], "one\ntwo", 2),
        (['"""all in one"""', "next"], "all in one", 1),
        (['  """', "a \\", '"""'], "a \\", 3),
        (['"""', "cut off"], "cut off", 3),
        (['""""""'], "", 1),
        (["", "next"], "", 1),
    ],
)
def test_a_message_is_a_line_a_continued_line_or_a_block(lines: list[str], message: str, read: int) -> None:
    found, asked = message_of(*lines)
    assert found == message
    assert asked == [False] + [True] * (read - 1)


def test_no_message_is_the_end() -> None:
    with pytest.raises(EndOfInput):
        message_of()


def test_a_terminal_gets_words_and_no_orders() -> None:
    assert printable("a\x1b[2Jb\x07\r\x9b1m\x00") == "a�[2Jb���1m�"
    assert printable("pay \u202egro.live") == "pay �gro.live"  # right-to-left override: it would be read backwards
    assert printable("line\n\ttab é 日本 👩\u200d👩 \U0001f600") == "line\n\ttab é 日本 👩\u200d👩 \U0001f600"


def test_the_pace_is_of_the_tokens_after_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([10.0, 10.5, 11.0, 12.5])
    writer = Writer(lambda: next(times))
    assert writer.pace(0) == "0 tokens"
    for text in ("one", "", " two", " three"):
        writer.write(text)
    assert writer.pace(5) == "5 tokens, the first after 0.50 s, then 2.0 tokens/s"
    writer.end_line()
    writer.end_line()
    assert capsys.readouterr().out == "one two three\n"
