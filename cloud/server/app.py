"""The server as one ASGI application, put together.

Observe      request id, log line, faults
  Cors       preflight, headers for listed pages
    Access   Host, Origin, key
      routes
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import cast

from fastapi import FastAPI
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from ... import __version__
from ..engine.frontend import Frontend
from . import chat, completions, status, tokens
from .access import Access, HostCheck
from .cors import Cors, OriginRule
from .errors_http import install_handlers, unknown_route
from .generation import Service
from .metrics import Metrics
from .observe import Observe
from .openapi import describe
from .request_info import info_of
from .settings import ServerSettings
from .speculate.handler import SpeculateService
from .speculate.websocket import PATH, speculate_route


class ServerApp:
    """`app(scope, receive, send)`; `service` holds the admission that a shutdown closes."""

    def __init__(self, service: Service, app: ASGIApp) -> None:
        self.service = service
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}  # whoever writes to the socket has a scope of its own, and leaves the body out
        await self._app(scope, receive, send)


def create_app(
    frontend: Frontend,
    settings: ServerSettings | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> ServerApp:
    """The OpenAI-compatible server over one front-end. `clock` times requests, `wall` dates answers; both in seconds."""
    settings = settings or ServerSettings()
    metrics = Metrics(frontend.client.stats, settings.model_id or frontend.model.card.name)
    service = Service(frontend, settings, metrics, clock, wall)
    api = FastAPI(title="Hybrid", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    api.state.service = service
    api.state.settings = settings
    get, post = ["GET"], ["POST"]
    for path, route, methods in (
        ("/v1/models", status.list_models, get),
        ("/v1/models/{model_id:path}", status.show_model, get),
        ("/v1/chat/completions", chat.chat_completions, post),
        ("/v1/completions", completions.completions, post),
        ("/tokenize", tokens.tokenize, post),
        ("/detokenize", tokens.detokenize, post),
        ("/tokenizer_info", tokens.tokenizer_info, get),
        ("/health", status.health, get),
        ("/ready", status.ready, get),
        ("/metrics", status.metrics, get),
        ("/version", status.version, get),
        ("/internal/state", status.internal_state, get),
    ):
        api.add_api_route(path, route, methods=methods, response_model=None)
    api.router.routes.append(_speculation(service))
    api.router.default = unknown_route
    install_handlers(api)
    describe(api)
    origins = OriginRule(settings)
    guarded = Cors(Access(cast(ASGIApp, api), settings=settings, origins=origins), origins=origins)
    paths = {PATH, str(api.openapi_url)}
    return ServerApp(service, Observe(HostCheck(guarded, settings=settings), metrics=metrics, clock=clock, paths=paths))


def _speculation(service: Service) -> WebSocketRoute:
    """/v1/speculate: sessions count as requests, so that a shutdown waits for them, and belong to the key of their handshake."""
    speculation = SpeculateService(
        service.frontend,
        secret=service.settings.ticket_secret or secrets.token_bytes(32),
        model_id=service.model_id,
        metrics=service.metrics,
        admit=service.admission.enter,
        hold=service.key_quotas.hold,
        monotonic=service.clock,
        wall=service.wall,
    )
    return speculate_route(speculation, lambda scope: info_of(scope).caller.key_id)
