"""Server-sent events, from bytes however they are cut to the text of each event."""

from __future__ import annotations

from ...shared_protocol.errors import StreamInterrupted

MAX_EVENT = 4 * 2**20  # bytes of one event; a longer one is no chunk of an answer


class EventParser:
    """`feed` bytes as they arrive; get the data of every event that is complete. Comments and other fields are skipped."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, received: bytes) -> list[bytes]:
        """Raises StreamInterrupted when an event grows beyond all reason."""
        events = []
        lines = (self._rest + received).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            line = line.removesuffix(b"\r")
            if not line and self._data:
                events.append(b"\n".join(self._data))
                self._data, self._size = [], 0
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
                self._size += len(line)
        if len(self._rest) + self._size > MAX_EVENT:
            raise StreamInterrupted(f"the cloud sent an event of more than {MAX_EVENT} bytes")
        return events
