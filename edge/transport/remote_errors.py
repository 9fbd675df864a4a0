"""From the cloud's error envelopes back to the typed errors that they were."""

from __future__ import annotations

import math
import re

import msgspec

from ...shared_protocol import errors
from ...shared_protocol.compile_errors import CompileError
from ...shared_protocol.errors import ContextOverflow, HybridError

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
MAX_MESSAGE = 1000  # characters; what a stranger's server says is shown, not repeated at length
_OVERFLOW = re.compile(r"needs (\d+) tokens, the limit is (\d+)")


class _Body(msgspec.Struct):
    message: str
    param: str | None = None
    code: str | int | None = None


class _Envelope(msgspec.Struct):
    error: _Body


# what only this side can know of itself: no cloud may say so in its stead
_OURS = (errors.Cancelled, errors.ClientClosed, errors.ConfigError, errors.NotShareable)


def _simple_classes(root: type[HybridError]) -> dict[str, type[HybridError]]:
    """code -> class, for every class of a cloud's error that is made from a message alone."""
    if root in _OURS:
        return {}
    found = {} if "__init__" in root.__dict__ and root is not HybridError else {root.code: root}
    for child in root.__subclasses__():
        found |= _simple_classes(child)
    return found


_BY_CODE = _simple_classes(HybridError) | _simple_classes(CompileError)
_BY_STATUS: dict[int, type[HybridError]] = {
    401: errors.AuthenticationError,
    403: errors.PermissionDenied,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.PayloadTooLarge,
    429: errors.QuotaExceeded,
    502: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.Unavailable,
}


def error_of(status: int, body: bytes, retry_after: str | None = None) -> HybridError:
    """The error that a response of `status` (400 and above) stands for; an unknown code keeps the code and the status it came with."""
    try:
        said = msgspec.json.decode(body, type=_Envelope).error
    except _UNREADABLE:
        said = _Body(f"the cloud answered with status {status}")
    return _typed(status, said, _seconds(retry_after))


def error_in_stream(event: bytes) -> HybridError | None:
    """The error that an event of a stream carries, None when it is no error. Some servers give a status as the code."""
    try:
        said = msgspec.json.decode(event, type=_Envelope).error
    except _UNREADABLE:
        return None
    known = _BY_CODE.get(str(said.code))
    status = said.code if isinstance(said.code, int) and 400 <= said.code < 600 else 500
    return _typed(known.status if known else status, said, None)


def error_of_code(code: str, message: str, retry_after_s: float | None = None) -> HybridError:
    """The error of an `Error` frame; a code that names no class of ours is a protocol error."""
    known = _BY_CODE.get(code)
    if known is None:
        return errors.ProtocolError(message[:MAX_MESSAGE], code=code)
    return known(message[:MAX_MESSAGE], retry_after_s=_waitable(retry_after_s))


def may_fall_back(error: HybridError) -> bool:
    """Whether another target might answer: the cloud is gone, busy, over its quota or broken, and neither the request nor how this
    client was set up is at fault."""
    return (error.status == 429 or error.status >= 500) and not isinstance(error, _OURS)


def _typed(status: int, said: _Body, retry_after_s: float | None) -> HybridError:
    message = said.message[:MAX_MESSAGE]
    numbers = _OVERFLOW.search(message)
    if said.code == ContextOverflow.code and numbers:
        return ContextOverflow(asked=int(numbers[1]), limit=int(numbers[2]), param=said.param)
    known = _BY_CODE.get(str(said.code))
    if known is not None and known.status == status:
        return known(message, param=said.param, retry_after_s=retry_after_s)
    fallback = _BY_STATUS.get(status, errors.InvalidRequest if status < 500 else HybridError)
    error = fallback(message, param=said.param, retry_after_s=retry_after_s)
    error.status = status
    if isinstance(said.code, str) and said.code:
        error.code = said.code
    return error


def _seconds(retry_after: str | None) -> float | None:
    """The header in seconds; its other form, a date, is not used by any server that we know, and reads as not given."""
    try:
        return _waitable(float(retry_after)) if retry_after else None
    except ValueError:
        return None


def _waitable(seconds: float | None) -> float | None:
    """`inf` and `nan` tell nobody when to come back."""
    return max(0.0, seconds) if seconds is not None and math.isfinite(seconds) else None
