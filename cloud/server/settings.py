"""What a server is told when it starts; nothing here changes afterwards."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field

from ...shared_protocol.errors import ConfigError
from .keys import KeyRing

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s@?#]+/?")


def is_loopback(host: str) -> bool:
    """Whether a name or address reaches this machine only."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Raises ConfigError when it would open a server without keys to other machines, and for what could not work."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free one
    keys: KeyRing = field(default_factory=KeyRing)
    allowed_hosts: tuple[str, ...] = ()  # further names in the Host header of a loopback bind
    allowed_origins: tuple[str, ...] = ()  # web pages that may call; pages of this machine may always call a loopback bind
    model_id: str | None = None  # as clients name the model; None: the name of its card
    max_body_bytes: int = 4 * 1024 * 1024
    max_requests: int = 256  # admitted at once, running and waiting
    tokens_per_minute: int | None = None  # of each key but the admin's, prompts and answers; None: no limit
    max_choices: int = 128  # of one request, prompts times n
    ping_s: float = 10.0  # a silent stream gets a comment this often
    receive_s: float = 30.0  # a client may be silent this long within a request, or before its first
    drain_s: float = 30.0  # what runs at SIGTERM may go on this long
    retry_after_s: float = 5.0  # told to those who are turned away
    ticket_secret: bytes | None = field(
        default=None, repr=False
    )  # signs what speculative sessions stand for; None: one of this server alone

    def __post_init__(self) -> None:
        if not self.loopback and not self.keys:
            raise ConfigError(
                f"without API keys the server listens on this machine only, asked for {self.host}",
                hint="set HYBRID_API_KEYS_FILE to a file of `id:secret` lines, or use --host 127.0.0.1",
            )
        if "*" in self.allowed_origins and not self.keys:
            raise ConfigError("without API keys any web page could use this server", hint="list the origins instead of '*', or set keys")
        for origin in self.allowed_origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ConfigError(f"{origin!r:.80} is no origin, so no page could match it", hint="write it as https://app.example")
        if not self.drain_s >= 0:  # nor is "nan"
            raise ConfigError(f"drain_s must be 0 or more seconds, found {self.drain_s}", param="drain_s")
        if not self.receive_s > 0:
            raise ConfigError(f"receive_s must be more than 0 seconds, found {self.receive_s}", param="receive_s")

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)
