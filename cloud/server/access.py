"""Who gets in: the Host of a loopback bind, the Origin of a WebSocket, the key. Pure ASGI, before any route.

Without a check of Host, a web page could rebind its own name to 127.0.0.1 and talk to a server that trusts this machine.
Without a check of Origin, any page could open a WebSocket, which CORS does not guard.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ...shared_protocol.errors import AuthenticationError, HostNotAllowed, HybridError, NotFound, OriginNotAllowed, PermissionDenied
from .cors import OriginRule
from .errors_http import reject
from .request_info import info_of
from .settings import ServerSettings, is_loopback

PUBLIC = frozenset({"/health", "/ready", "/metrics"})  # they hold no tenant's data
ADMIN_PREFIX = "/internal/"


class HostCheck:
    """Refuses foreign names on every route, preflights included, when the server listens on loopback."""

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self._app = app
        self._loopback = settings.loopback
        self._listed = frozenset(name.lower() for name in settings.allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._loopback and scope["type"] in ("http", "websocket") and not self._allows(Headers(scope=scope).get("host")):
            error = HostNotAllowed("this server answers to names of this machine only", hint="call localhost, or use --allowed-host")
            await reject(error, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _allows(self, header: str | None) -> bool:
        if header is None:
            return False
        name = header.lower()
        host = name[: name.find("]") + 1] if name.startswith("[") else name.partition(":")[0]
        return is_loopback(host) or host in self._listed or name in self._listed


class Access:
    """Refuses WebSockets of foreign origins and callers without a key, and says who the others are."""

    def __init__(self, app: ASGIApp, *, settings: ServerSettings, origins: OriginRule) -> None:
        self._app = app
        self._settings = settings
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        error = self._refusal(scope, Headers(scope=scope))
        if error is not None:
            await reject(error, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> HybridError | None:
        if scope["type"] == "websocket" and not self._origins.allows(headers.get("origin")):
            return OriginNotAllowed("this origin may not open a WebSocket here", hint="start the server with --allowed-origin")
        if scope["path"] in PUBLIC or scope.get("method") == "OPTIONS":
            return None
        return self._authenticate(scope, headers)

    def _authenticate(self, scope: Scope, headers: Headers) -> HybridError | None:
        keys = self._settings.keys
        secret = secret_of(headers)
        caller = keys.caller(secret)
        admin_route = scope["path"].startswith(ADMIN_PREFIX)
        if admin_route and not keys.has_admin and not self._settings.loopback:
            return NotFound("there is no such route", hint="admin routes exist once HYBRID_ADMIN_KEY is set")
        if caller is None:
            found = "no key was sent" if secret is None else "this key is not known"
            return AuthenticationError(found, hint="send `Authorization: Bearer KEY` or `X-Api-Key: KEY`")
        if admin_route and keys.has_admin and not caller.admin:
            if secret is None:
                return AuthenticationError("admin routes need the admin key", hint="send `Authorization: Bearer KEY`")
            return PermissionDenied("this key may not use admin routes", hint="use the key of HYBRID_ADMIN_KEY")
        info_of(scope).caller = caller
        return None


def secret_of(headers: Headers) -> str | None:
    """The secret of `Authorization: Bearer`, else of `X-Api-Key`."""
    scheme, _, secret = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and secret.strip():
        return secret.strip()
    return headers.get("x-api-key") or None
