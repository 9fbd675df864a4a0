"""Where the cloud is and who asks, checked before anything is sent there."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

from ...shared_protocol.errors import ConfigError


def cloud_address(url: str) -> str:
    """The address without a trailing /v1. Raises ConfigError for what is no http(s)://HOST[:PORT][/PATH]; never shows a password."""
    parts, problem = _split(url)
    if parts is not None and (parts.username is not None or parts.password is not None):
        raise ConfigError("the cloud's address holds a user or a password", hint="pass the key as api_key")
    if parts is None or problem:
        raise ConfigError(f"the cloud's address must be http://HOST or https://HOST, found {url[:200]!r}{problem}")
    return parts.geturl().rstrip("/").removesuffix("/v1")


def _split(url: str) -> tuple[SplitResult | None, str]:
    """The parts, and what is wrong with them."""
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
        host = parts.hostname or ""
        host.encode("idna")
    except ValueError as error:
        return None, f" ({error})"
    if parts.scheme not in ("http", "https") or not host or " " in parts.netloc:
        return None, ""
    return parts, " (it has a query or a fragment)" if parts.query or parts.fragment else ""


def authorization(api_key: str | None) -> dict[str, str]:
    """The header that carries the key, if there is one. Raises ConfigError, without the key, for one that no header can carry."""
    if not api_key:
        return {}
    if not api_key.isascii() or not api_key.isprintable():
        raise ConfigError("api_key holds a character that cannot be sent: line ends and letters beyond ASCII are refused")
    return {"authorization": f"Bearer {api_key}"}
