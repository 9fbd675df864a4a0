"""The outermost layer: request ids, one log line and one count per request, and a net for our own faults.

Nothing here sees a body. A fault is logged by its class and its place in the code, never by its message, which may quote a prompt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...shared_protocol.errors import Unavailable
from .errors_http import error_response, internal_error, reject
from .logs import places_of
from .metrics import Metrics
from .request_info import RequestInfo, begin

log = logging.getLogger("hybrid.server")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_QUIET = frozenset({"/health", "/ready", "/metrics"})  # asked every few seconds by machines


class Observe:
    """`paths`: those of routes that do not name themselves in the scope."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics, clock: Callable[[], float], paths: Collection[str] = ()) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        info = begin(scope, Headers(scope=scope).get("x-request-id"))
        started = self._clock()
        status = 0  # until an answer begins

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start", "websocket.accept"):
                status = message.get("status", 101)
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = info.request_id
                ignored = info.ignored_header()
                if ignored:
                    headers["x-hybrid-ignored"] = ignored
                headers.update(info.limits())
            elif message["type"] == "websocket.close" and status == 0:  # instead of accepting
                status = 403
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except asyncio.CancelledError:  # the server ends without waiting any longer
            if status or scope["type"] != "http":
                raise
            error = Unavailable("the server stopped before it could answer", hint="ask again, or ask another", retry_after_s=1)
            await error_response(error)(scope, receive, observed)
        except Exception as fault:
            log_fault(fault, info.request_id)
            if status == 0 and scope["type"] == "http":
                await error_response(internal_error())(scope, receive, observed)
            elif status == 0:
                await reject(internal_error(), scope, receive, observed)
        finally:
            self._finish(scope, info, status, self._clock() - started)

    def _finish(self, scope: Scope, info: RequestInfo, status: int, seconds: float) -> None:
        unnamed = scope["path"] if scope["path"] in self._paths else "unmatched"
        route = getattr(scope.get("route"), "path", unnamed)  # the template: a raw path would make a label per visitor
        method = scope.get("method", "GET")
        method = "WEBSOCKET" if scope["type"] == "websocket" else method if method in _METHODS else "other"
        status = status or 499  # nothing was sent: the client had gone
        self._metrics.http_requests.labels(route, method, str(status)).inc()
        line = {
            "event": "request",
            "request_id": info.request_id,
            "key": info.caller.key_id,
            "method": method,
            "route": route,
            "status": status,
            "seconds": round(seconds, 6),
            "prompt_tokens": info.prompt_tokens,
            "completion_tokens": info.completion_tokens,
        }
        if info.outcome:
            line["outcome"] = info.outcome
        log.log(logging.DEBUG if route in _QUIET else logging.INFO, line)


def log_fault(fault: BaseException, request_id: str) -> None:
    """One line: the class of the fault and its last places in the code, without any value."""
    log.error({"event": "fault", "request_id": request_id, "kind": type(fault).__name__, "places": places_of(fault)})
