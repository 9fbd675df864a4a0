"""Every error a user can meet: one class, one HTTP status, one `code`, one exit code of the command line. Those of compiling a model
stand beside it, in `compile_errors.py`.

A message says what was asked and what was found; `hint` says what to do. The server, the CLI and the SDK print the same sentence.
No message ever holds prompt text.
"""

from __future__ import annotations


class HybridError(Exception):
    """Root of all errors for users. `param` is the dotted path of the offending field, when one field is at fault."""

    status = 500
    code = "internal_error"
    exit_code = 1

    def __init__(self, message: str, *, param: str | None = None, hint: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.hint = hint
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    @property
    def type(self) -> str:
        """The envelope's `type`, by status, as OpenAI's clients know it."""
        return _TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")


_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
    503: "unavailable_error",
}


class InvalidRequest(HybridError):
    """A field is missing, of the wrong type, or out of range."""

    status, code, exit_code = 400, "invalid_request", 2


class UnsupportedParameter(InvalidRequest):
    """A known field that is not served yet, with a value that would change the answer."""

    code = "unsupported_parameter"


class ContextOverflow(InvalidRequest):
    """Prompt and answer do not fit; nothing is ever cut silently."""

    code = "context_length_exceeded"

    def __init__(self, *, asked: int, limit: int, param: str | None = None, hint: str | None = None, at_least: bool = False) -> None:
        """`at_least`: `asked` is a lower bound; the tokens were not counted."""
        over = asked - limit
        super().__init__(
            f"this request needs {'at least ' if at_least else ''}{asked} tokens, the limit is {limit}",
            param=param,
            hint=hint or f"shorten the prompt or lower max_tokens by at least {over}",
        )
        self.asked = asked
        self.limit = limit


class TemplateError(InvalidRequest):
    """The chat template refused the messages, reached into Python, or ran out of fuel."""

    code = "template_error"


class AuthenticationError(HybridError):
    status, code = 401, "invalid_api_key"


class PermissionDenied(HybridError):
    status, code = 403, "permission_denied"


class HostNotAllowed(PermissionDenied):
    """A server on loopback was reached under a foreign name: a web page may have rebound its own name to this machine."""

    code = "host_not_allowed"


class OriginNotAllowed(PermissionDenied):
    """A web page of an origin that is not on the server's list."""

    code = "origin_not_allowed"


class NotFound(HybridError):
    status, code, exit_code = 404, "not_found", 3


class ModelNotFound(NotFound):
    code = "model_not_found"


class MethodNotAllowed(InvalidRequest):
    status, code = 405, "method_not_allowed"


class Conflict(HybridError):
    status, code = 409, "conflict"


class FingerprintMismatch(Conflict):
    """Device and cloud do not share a vocabulary; both fingerprints are named."""

    code = "fingerprint_mismatch"


class PayloadTooLarge(InvalidRequest):
    status, code = 413, "payload_too_large"


class RequestTimedOut(InvalidRequest):
    """The client stopped in the middle of its request, or sent it too slowly."""

    status, code = 408, "request_timeout"


class UnsupportedMediaType(InvalidRequest):
    status, code = 415, "unsupported_media_type"


class QuotaExceeded(HybridError):
    status, code, exit_code = 429, "quota_exceeded", 6


class RequestExceedsQuota(QuotaExceeded):
    """Larger than a quota ever holds: it is refused at once, and no waiting helps."""

    status, code = 403, "request_exceeds_quota"


class EngineFailed(HybridError):
    """The engine broke an invariant or a kernel failed; the process reports itself unhealthy."""

    code = "engine_failed"


class InvalidLogits(EngineFailed):
    """The model produced NaN or +inf, or every token is masked: there is no distribution to draw from."""

    code = "invalid_logits"


class Unavailable(HybridError):
    """Draining, overloaded, or still loading."""

    status, code = 503, "unavailable"


class ClientClosed(Unavailable):
    """The SDK's client was closed before it answered, or while it did."""

    def __init__(self) -> None:
        super().__init__("this client is closed")


class RuntimeClosed(Unavailable):
    """A device's runtime was used after it was closed."""

    def __init__(self) -> None:
        super().__init__("this runtime is closed", hint="open another one")


class NoHiddenStates(Unavailable):
    """Hidden states were asked of a device's runtime that does not give them."""

    def __init__(self, model: str) -> None:
        super().__init__(f"the runtime of {model} gives no hidden states", hint="use the native runtime")


class ModelFileError(HybridError):
    """A model file is corrupt, truncated, hostile, or of a kind that is not supported; names the tensor or key."""

    status, code = 422, "invalid_model_file"


class ChecksumMismatch(ModelFileError):
    code = "checksum_mismatch"


class NotEnoughSpace(HybridError):
    """The disk cannot take what is to be written; nothing was kept."""

    status, code = 507, "not_enough_space"


class ProtocolError(HybridError):
    """A frame that the other side should never have sent. `code` is the one that travels in an `Error` frame."""

    status, code = 400, "protocol_error"

    def __init__(self, message: str, *, code: str = "protocol_error", round: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.round = round


class CloudUnreachable(HybridError):
    status, code, exit_code = 503, "cloud_unreachable", 4


class StreamInterrupted(CloudUnreachable):
    """The cloud began to answer and then was cut off, fell silent, or said something that cannot be read."""

    code = "stream_interrupted"


class NotShareable(HybridError):
    """Something that privacy has not cleared was handed to a cloud client. Always a bug of the caller; nothing was sent."""

    code = "not_shareable"


class RouteRefused(HybridError):
    """The router refuses: `code` is the decision's reason (`private_too_hard`, `over_quota`, `blocked`, ...)."""

    status, exit_code = 403, 6

    def __init__(
        self, message: str, *, reason: str, rule: str | None = None, hint: str | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, hint=hint, retry_after_s=retry_after_s)
        self.code = reason
        self.rule = rule  # the policy's key, or the built-in rule, that said so


class OverQuota(RouteRefused):
    """A quota holds too little now; `retry_after_s` says when it will hold enough if nobody else asks, None if nothing fills it."""

    status = 429


class ConfigError(HybridError):
    """A configuration or policy file is wrong; names the dotted key, and the line where it is known."""

    code, exit_code = "invalid_config", 5


class GateMismatch(ConfigError):
    """A confidence gate was calibrated for another model, quantisation or signal than the one it is to judge."""

    status, code = 409, "gate_mismatch"


class CannotPromise(HybridError):
    """No threshold keeps the error rate that was asked for: too few outcomes, or too many errors among them."""

    status, code, exit_code = 422, "cannot_promise", 6


class Cancelled(HybridError):
    """The work was cancelled from another thread or by its owner."""

    status, code, exit_code = 499, "cancelled", 130
