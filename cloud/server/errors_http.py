"""One envelope for every failure that a client can meet: {"error": {message, type, param, code}}."""

from __future__ import annotations

import math
from http import HTTPStatus

import msgspec
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from ...shared_protocol.errors import HybridError, InvalidRequest, MethodNotAllowed, NotFound
from ...shared_protocol.openai import ErrorBody, ErrorEnvelope

MAX_MESSAGE = 2_000  # characters; an answer never grows with the request


def envelope(error: HybridError) -> bytes:
    """The JSON that stands for `error`, in a response or inside a stream."""
    message = str(error)
    if len(message) > MAX_MESSAGE:
        message = message[:MAX_MESSAGE] + " ..."
    return msgspec.json.encode(ErrorEnvelope(ErrorBody(message=message, type=error.type, param=error.param, code=error.code)))


def error_response(error: HybridError) -> Response:
    headers = {}
    if error.status == 401:
        headers["www-authenticate"] = 'Bearer realm="hybrid"'
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    return Response(envelope(error), status_code=error.status, headers=headers, media_type="application/json")


def internal_error() -> HybridError:
    """What a client is told about a fault of ours: nothing of what went through it."""
    return HybridError("the server failed on this request", hint="its log names the fault under this response's x-request-id")


async def reject(error: HybridError, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer `error` before any route has seen the request; a WebSocket is denied at its handshake."""
    response = error_response(error)
    if scope["type"] == "http":
        await response(scope, receive, send)
        return
    socket = WebSocket(scope, receive, send)
    await socket.receive()  # the connect message
    if "websocket.http.response" in scope.get("extensions", {}):
        await socket.send_denial_response(response)
    else:
        await socket.close(1008)


async def unknown_route(scope: Scope, receive: Receive, send: Send) -> None:
    """Where no route leads."""
    await reject(_no_such_route(), scope, receive, send)


def install_handlers(app: FastAPI) -> None:
    """Turn typed errors, unknown routes and wrong methods into envelopes."""

    async def on_hybrid_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HybridError)
        return error_response(error)

    async def on_http_exception(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = error_response(_typed(error, request))
        response.headers.update(error.headers or {})
        if response.headers.get("allow") == "GET":
            response.headers["allow"] = "GET, HEAD"
        return response

    async def on_fault(request: Request, error: Exception) -> Response:
        return error_response(internal_error())

    app.add_exception_handler(HybridError, on_hybrid_error)
    app.add_exception_handler(HTTPException, on_http_exception)
    app.add_exception_handler(Exception, on_fault)


def _typed(error: HTTPException, request: Request) -> HybridError:
    if error.status_code == 404:
        return _no_such_route()
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another one")
        return MethodNotAllowed(f"this route does not answer {request.method[:16]}", hint=f"use {allowed}")
    status = error.status_code
    typed = InvalidRequest(HTTPStatus(status).phrase) if 400 <= status < 500 else internal_error()
    typed.status = status
    return typed


def _no_such_route() -> NotFound:
    return NotFound("there is no such route", hint="GET /openapi.json lists all routes")
