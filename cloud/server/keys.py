"""Who may call: secrets are kept as SHA-256 only and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...shared_protocol.errors import ConfigError

LOCAL = "local"  # everyone, on a server without keys
ADMIN = "admin"
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SECRET = re.compile(r"[ -~]+")  # what a header can carry as it stands


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking, as logs, cache salts and quotas name them."""

    key_id: str
    admin: bool = False


class KeyRing:
    """Known keys. Without any, every caller is `local`; the server then listens on loopback only."""

    def __init__(self, secrets: Mapping[str, str] | Iterable[tuple[str, str]] = (), admin: str | None = None) -> None:
        pairs = secrets.items() if isinstance(secrets, Mapping) else secrets
        self._digests = [(key_id, _digest(secret)) for key_id, secret in pairs]
        self._admin = _digest(admin) if admin else None

    def __bool__(self) -> bool:
        return bool(self._digests)

    @property
    def has_admin(self) -> bool:
        return self._admin is not None

    def caller(self, secret: str | None) -> Caller | None:
        """The caller of this secret; None when it is missing or wrong. Takes as long for a wrong key as for a right one."""
        found: Caller | None = None if self._digests else Caller(LOCAL)
        if secret is None:
            return found
        asked = _digest(secret)
        for key_id, digest in self._digests:
            if hmac.compare_digest(asked, digest):
                found = Caller(key_id)
        if self._admin is not None and hmac.compare_digest(asked, self._admin):
            found = Caller(ADMIN, admin=True)
        return found


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def read_keys(path: Path) -> list[tuple[str, str]]:
    """Read `id:secret` lines; blank lines and those that begin with `#` are skipped.

    Raises ConfigError with the line's number, never with its text. An empty file is an error: it would open the server. So is a secret
    that no client could send, or that would not tell whose it is.
    """
    try:
        lines = path.read_text("utf-8-sig").splitlines()  # some editors begin a file with a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read the keys file {path}: {why}", hint="HYBRID_API_KEYS_FILE names it") from None
    keys: dict[str, str] = {}
    secrets: set[str] = set()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key_id, colon, secret = (part.strip() for part in text.partition(":"))
        if not colon or not secret or not _ID.fullmatch(key_id):
            raise ConfigError(f"{path}, line {number}: expected `id:secret`, the id of letters, digits, `_`, `.` and `-`")
        if key_id in keys or key_id in (LOCAL, ADMIN):
            raise ConfigError(f"{path}, line {number}: the id is taken")
        if not _SECRET.fullmatch(secret):
            raise ConfigError(f"{path}, line {number}: a secret is of printable ASCII characters, others do not survive in a header")
        if secret in secrets:
            raise ConfigError(f"{path}, line {number}: another id has the same secret")
        keys[key_id] = secret
        secrets.add(secret)
    if not keys:
        raise ConfigError(f"{path} holds no key", hint="add a line `id:secret`, or unset HYBRID_API_KEYS_FILE")
    return list(keys.items())


def keys_from_environment(environment: Mapping[str, str]) -> KeyRing:
    """The keys named by HYBRID_API_KEYS_FILE and HYBRID_ADMIN_KEY. Raises ConfigError."""
    path, told = environment.get("HYBRID_API_KEYS_FILE"), environment.get("HYBRID_ADMIN_KEY", "")
    keys, admin = read_keys(Path(path)) if path else [], told.strip()
    if told and not _SECRET.fullmatch(admin):
        raise ConfigError("HYBRID_ADMIN_KEY must be of printable ASCII characters, others do not survive in a header")
    if admin in (secret for _, secret in keys):
        raise ConfigError("HYBRID_ADMIN_KEY is also the secret of an API key, whose callers would all be admins")
    return KeyRing(keys, admin=admin or None)
