"""What the server knows about one request besides its content, kept in the ASGI scope."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from starlette.types import Scope

from .keys import LOCAL, Caller

_KEY = "hybrid.request"
_SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_SAFE_FIELD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
MAX_IGNORED = 20  # names shown; a header must not grow with the request


@dataclass(slots=True)
class RequestInfo:
    request_id: str
    caller: Caller = field(default_factory=lambda: Caller(LOCAL))
    ignored: list[str] = field(default_factory=list)  # fields of the body that had no effect
    prompt_tokens: int = 0
    completion_tokens: int = 0
    limits: Callable[[], Mapping[str, str]] = dict  # headers that say what the caller has left when the answer begins
    outcome: str | None = None  # code of the error inside a stream, `client_closed`

    def ignore(self, names: Iterable[str]) -> None:
        """Note fields that had no effect. A name that could break a header or a log is not repeated."""
        self.ignored += sorted(name if _SAFE_FIELD.fullmatch(name) else "?" for name in names)

    def ignored_header(self) -> str | None:
        shown = list(dict.fromkeys(self.ignored))
        more = len(shown) - MAX_IGNORED
        return ", ".join(shown[:MAX_IGNORED] + ([f"and-{more}-more"] if more > 0 else [])) or None


def begin(scope: Scope, asked_id: str | None) -> RequestInfo:
    """Attach the info to the scope, under the caller's request id if that is harmless, else one of our own."""
    request_id = asked_id if asked_id and _SAFE_ID.fullmatch(asked_id) else f"req-{uuid.uuid4().hex}"
    info = RequestInfo(request_id)
    scope[_KEY] = info
    return info


def info_of(scope: Scope) -> RequestInfo:
    info = scope[_KEY]
    assert isinstance(info, RequestInfo)
    return info
