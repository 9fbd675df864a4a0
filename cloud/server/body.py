"""From the bytes of a request to a checked schema. Errors name the field and the rule, never the value: it may be a prompt."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from ...shared_protocol.errors import Cancelled, InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from .request_info import info_of
from .schemas import RequestBody

MAX_ERRORS = 5  # named in one answer
LONG_BYTES = 64 * 1024  # from here on a body is decoded and checked off the event loop, which others wait for
_PATIENCE = 8  # a body over the limit is read, and dropped, up to this many times the limit, so that the client gets its answer


Body = TypeVar("Body", bound=RequestBody)
_UNION_MEMBERS = frozenset({"str", "int", "float", "bool"})  # pydantic puts the members of a union into an error's path


async def read_body(request: Request, schema: type[Body]) -> Body:
    """Read, decode and check one JSON object.

    Raises UnsupportedMediaType, PayloadTooLarge, InvalidRequest, UnsupportedParameter. Fields without effect are noted for a header.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not (media_type.startswith("application/") and media_type.endswith("+json")):
        # also keeps out web pages: a form or a text may be posted to any origin without asking it first
        raise UnsupportedMediaType("the body must be sent as application/json", hint="set the header content-type: application/json")
    raw = await _read(request, request.app.state.settings.max_body_bytes)
    return parse(raw, schema, request) if len(raw) < LONG_BYTES else await asyncio.to_thread(parse, raw, schema, request)


async def _read(request: Request, limit: int) -> bytes:
    body = bytearray()
    seen = 0
    try:
        async for piece in request.stream():
            seen += len(piece)
            if seen <= limit:
                body += piece
            elif seen > limit * _PATIENCE:
                break
    except ClientDisconnect as error:
        raise Cancelled("the client closed the connection") from error
    if seen > limit:
        raise PayloadTooLarge(f"the body has more than {limit} bytes, the limit", hint="send a shorter prompt")
    return bytes(body)


def parse(raw: bytes, schema: type[Body], request: Request) -> Body:
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidRequest("the body is not valid JSON", hint="send one JSON object in UTF-8") from error
    if not isinstance(fields, dict):
        raise InvalidRequest("the body must be a JSON object", hint='for example {"messages": [{"role": "user", "content": "Hello"}]}')
    schema.refuse_unserved(fields)
    try:
        body = schema.model_validate(fields)
    except ValidationError as error:
        raise _typed(error) from None  # its text holds the values
    info_of(request.scope).ignore(body.ignored())
    return body


def _typed(error: ValidationError) -> InvalidRequest:
    items = error.errors(include_url=False, include_context=False, include_input=False)
    too_long = [item for item in items if item["type"] == "too_long"]  # of a union, the member that fitted but for its length
    found = [(_dotted(item["loc"]), _rule(item["msg"])) for item in too_long or items]
    # a union complains once per member: of a field and something inside it, the inner one says more
    deepest = [(path, rule) for path, rule in found if not any(other.startswith(f"{path}.") for other, _ in found)]
    named = list(dict.fromkeys(deepest))[:MAX_ERRORS]
    return InvalidRequest("; ".join(f"{path}: {rule}" if path else rule for path, rule in named), param=named[0][0] or None)


def _dotted(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc if isinstance(part, int) or (part.isidentifier() and part not in _UNION_MEMBERS))[:120]


def _rule(message: str) -> str:
    return message.removeprefix("Value error, ")[:200]
