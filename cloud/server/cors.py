"""Which web pages may call, and what their browsers are told."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...shared_protocol.errors import OriginNotAllowed
from .errors_http import reject
from .settings import ServerSettings, is_loopback

METHODS = "GET, HEAD, POST, OPTIONS"
EXPOSED = ", ".join(
    ["x-request-id", "x-hybrid-ignored", "retry-after", *(f"x-ratelimit-{what}-tokens" for what in ("limit", "remaining", "reset"))]
)


class OriginRule:
    """A listed origin may call; so may pages of this machine when the server listens on this machine only."""

    def __init__(self, settings: ServerSettings) -> None:
        self._listed = frozenset(origin.rstrip("/").lower() for origin in settings.allowed_origins)
        self._local = settings.loopback

    def allows(self, origin: str | None) -> bool:
        """No origin means no browser: such callers are held to their key alone."""
        if origin is None or "*" in self._listed or origin.lower() in self._listed:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return self._local and parts.scheme in ("http", "https") and parts.hostname is not None and is_loopback(parts.hostname)


class Cors:
    def __init__(self, app: ASGIApp, *, origins: OriginRule) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        allowed = origin is not None and self._origins.allows(origin)
        if scope["method"] == "OPTIONS":
            if origin is not None and not allowed:
                await reject(
                    OriginNotAllowed("this origin may not call", hint="start the server with --allowed-origin"), scope, receive, send
                )
                return
            response = Response(status_code=204, headers={"allow": METHODS})
            if not allowed:
                response.headers["vary"] = "Origin"
            else:
                response.headers["access-control-allow-methods"] = METHODS
                response.headers["access-control-allow-headers"] = headers.get("access-control-request-headers", "*")
                response.headers["access-control-max-age"] = "600"
            await response(scope, receive, _with_origin(send, origin) if allowed else send)
            return
        await self._app(scope, receive, _with_origin(send, origin) if allowed else send)


def _with_origin(send: Send, origin: str | None) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin or ""
            headers["access-control-expose-headers"] = EXPOSED
            headers.add_vary_header("Origin")
        await send(message)

    return marked
