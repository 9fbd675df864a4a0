"""Log lines: JSON, without other people's words, and no flood."""

import json
import logging

from hybrid.cloud.server.logs import JsonLines, NoFlood

SECRET = "ada@example.org"


def record_of(message: object, name: str = "asyncio", fault: BaseException | None = None) -> logging.LogRecord:
    told = None if fault is None else (type(fault), fault, fault.__traceback__)
    return logging.LogRecord(name, logging.ERROR, "x.py", 1, message, None, told)


def test_what_a_library_writes_of_an_exception_is_not_repeated() -> None:
    fault = ValueError(SECRET)
    text = f"Task exception was never retrieved\nfuture: <Task finished coro=<f()> exception={fault!r}>"
    line = JsonLines().format(record_of(text, fault=fault))
    assert SECRET not in line
    assert json.loads(line)["message"] == "Task exception was never retrieved"
    assert json.loads(line)["kind"] == "ValueError"


def test_a_library_s_sentence_is_let_through_once_a_second_our_own_lines_always() -> None:
    now = [0.0]
    passes = NoFlood(1.0, lambda: now[0])
    full = "socket.accept() out of system resource\nsocket: <TransportSocket fd=6>"
    assert [passes(record_of(full)) for _ in range(3)] == [True, False, False]
    assert passes(record_of("another sentence"))
    assert passes(record_of(full, name="uvicorn.error"))
    now[0] = 1.0
    assert [passes(record_of(full)) for _ in range(2)] == [True, False]
    assert all(passes(record_of(message, name="hybrid.server")) for message in ({"event": "request"}, "a frame failed") for _ in range(3))
    for number in range(1_000):
        assert passes(record_of(f"sentence {number}"))
