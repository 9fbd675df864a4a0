"""Answers as JSON, encoded from msgspec structs."""

from __future__ import annotations

import msgspec
from starlette.responses import Response


def json_response(data: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(data), status_code=status, media_type="application/json")
