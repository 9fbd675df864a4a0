"""One HTTP connection, and how long its client is waited for.

    connected          first byte        head whole        body whole               answered
    ────┼──────────────────┼─────────────────┼─────────────────┼───────────────────────┼──────────────────────
        nothing, or too little: 408, closed                    the engine's time        60 s for another request,
                                                                                        or it reads: else cut off
Without it a handful of idle sockets, which cost their owner nothing, would hold the server's connections for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...shared_protocol.errors import HybridError, InvalidRequest, RequestTimedOut
from .errors_http import envelope

MIN_BYTES_PER_S = 1024  # what a request must bring on average, beyond the first seconds: slower than any phone, faster than a drip


def is_late(*, began: float, last: float, received: int, limit_s: float, now: float) -> bool:
    """Whether a request that is not whole is given up: silent for longer than `limit_s`, or too slow over all. Times in seconds."""
    return now - last > limit_s or now - began > limit_s + received / MIN_BYTES_PER_S


class PatientConnection(H11Protocol):
    """uvicorn's connection, which somebody must `look` at now and then; its own refusals are in the envelope of all others."""

    clock: Callable[[], float]  # seconds; of the class that `patient` makes
    limit_s: float

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._began = self._last = type(self).clock()
        self._received = 0  # bytes of the request that is coming
        self._waiting = True
        self._closing: tuple[float, int] | None = None  # since when a closing connection holds how many bytes that nobody reads

    def data_received(self, data: bytes) -> None:
        now = type(self).clock()
        if not self._waiting:
            self._began, self._received = now, 0
        self._last = now
        self._received += len(data)
        super().data_received(data)
        self._waiting = self._request_is_open()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waiting = self._request_is_open()

    def _request_is_open(self) -> bool:
        # between two requests uvicorn's own timer runs, until the first byte stops it
        return self.timeout_keep_alive_task is None and self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def look(self, now: float) -> None:
        """Close the connection if its client has had its time."""
        if self.transport.is_closing():
            self._look_at_the_rest(now)
        elif not self._waiting:
            pass
        elif self.flow.read_paused:  # it is we who do not read
            self._began = self._last = now
        elif is_late(began=self._began, last=self._last, received=self._received, limit_s=self.limit_s, now=now):
            late = RequestTimedOut(f"the request did not come within {self.limit_s:g} s", hint="send its head and body at once")
            self._refuse(late)

    def _look_at_the_rest(self, now: float) -> None:
        """A closed connection still sends what it holds, and would for ever to a client that does not read."""
        left = self.transport.get_write_buffer_size()
        if self._closing is None or left < self._closing[1]:
            self._closing = now, left
        elif now - self._closing[0] > self.limit_s:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self._refuse(InvalidRequest("this is no HTTP request that can be read"))

    def _refuse(self, error: HybridError) -> None:
        """Say why if something has come and no answer has begun, then close; whoever reads the request sees that its client is gone."""
        if self._received and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = envelope(error)
            headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
            start = h11.Response(status_code=error.status, headers=headers, reason=HTTPStatus(error.status).phrase)
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


def patient(clock: Callable[[], float], limit_s: float) -> type[PatientConnection]:
    """The class of one server's connections: uvicorn makes them itself, from nothing of ours."""
    return type("PatientConnection", (PatientConnection,), {"clock": staticmethod(clock), "limit_s": limit_s})
