"""Answers as JSON, encoded from msgspec structs."""

from __future__ import annotations

import msgspec
from starlette.responses import Response


def json_response(data: object) -> Response:
    return Response(msgspec.json.encode(data), media_type="application/json")
