"""Logs that nobody reads."""

import io
import threading

from hybrid.cloud.server.log_writer import LogWriter


class StuckPipe(io.StringIO):
    """Takes nothing until `drained` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.drained = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        self.entered.set()
        self.drained.wait()
        return super().write(text)


def test_lines_are_written_in_order_and_all_of_them_before_the_end() -> None:
    stream = io.StringIO()
    writer = LogWriter(stream)
    for number in range(1_000):
        writer.write(f"{number}\n")
    writer.close()
    assert stream.getvalue() == "".join(f"{number}\n" for number in range(1_000))


def test_a_stream_that_is_not_read_holds_up_nobody_and_what_was_dropped_is_counted() -> None:
    stream = StuckPipe()
    writer = LogWriter(stream, max_lines=3)
    writer.write("a\n")
    stream.entered.wait()  # the thread holds "a" now
    for text in "bcdefg":
        writer.write(f"{text}\n")
    writer.close(timeout_s=0)  # returns
    stream.drained.set()
    writer.close(timeout_s=60)
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if "{" not in line] == ["a", "b", "c", "d"]
    assert '"3 lines were dropped"' in lines[1]


def test_a_stream_whose_reader_has_gone_is_given_up() -> None:
    stream = io.StringIO()
    stream.close()
    writer = LogWriter(stream)
    writer.write("a\n")
    writer.close(timeout_s=60)
    writer.write("b\n")
