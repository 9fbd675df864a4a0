"""Event streams: what an event is does not depend on where the network cut it."""

from __future__ import annotations

import pytest
from hybrid.edge.transport import sse
from hybrid.shared_protocol.errors import StreamInterrupted
from hypothesis import given
from hypothesis import strategies as st

STREAM = b': ping\r\n\r\ndata: {"a": "\xc3\xa9"}\r\n\r\ndata:two\n\nevent: x\nid: 1\ndata: three\ndata: lines\n\n\n\ndata: [DONE]\n\n'
EVENTS = [b'{"a": "\xc3\xa9"}', b"two", b"three\nlines", b"[DONE]"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    parser, found, at = sse.EventParser(), [], 0
    for cut in [*sorted(cuts), len(STREAM)]:
        found += parser.feed(STREAM[at:cut])
        at = cut
    assert found == EVENTS


def test_an_event_without_its_blank_line_is_not_complete() -> None:
    assert sse.EventParser().feed(b"data: half\n") == []


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 100)
    parser = sse.EventParser()
    with pytest.raises(StreamInterrupted):
        for _ in range(20):
            parser.feed(b"data: 1234567890\n")
