"""What pip is told about its package indexes, by its files and its environment variables. Credentials stay in memory."""

from __future__ import annotations

import configparser
import os
import ssl
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..errors import ConfigError
from .web import Access, authorization, basic_auth, shown

_DEFAULT_INDEX = "https://pypi.org/simple"
_OFF = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class PipSettings:
    indexes: tuple[str, ...]  # addresses, in the order in which they are asked; may hold credentials
    find_links: tuple[str, ...]  # folders, or pages of links
    trusted_hosts: frozenset[str]
    certificates: str | None = None
    client_certificate: str | None = None
    proxy: str | None = None

    def access(self, url: str) -> tuple[str, Access]:
        """`url` without its credentials, and how to ask it. Raises ConfigError for certificates that cannot be read."""
        bare, headers = basic_auth(url)
        host = urlsplit(bare).hostname or ""
        if not headers:
            headers = _netrc(host)
        try:
            context = ssl.create_default_context(cafile=self.certificates)
            if self.client_certificate:
                context.load_cert_chain(self.client_certificate)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"pip's certificates cannot be read: {error.strerror}", hint="pip config list shows cert, client-cert"
            ) from None
        if host in self.trusted_hosts:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return bare, Access(headers, self.trusted_hosts, context, self.proxy)


def pip_settings() -> PipSettings:
    """As `pip download` of this Python would see them. Raises ConfigError."""
    values = _configured() | {
        name[4:].lower().replace("_", "-"): value for name, value in os.environ.items() if name.startswith("PIP_") and value
    }
    without_index = values.get("no-index", "").lower() not in _OFF
    indexes = [values.get("index-url", _DEFAULT_INDEX), *values.get("extra-index-url", "").split()]
    find_links = values.get("find-links", "").split()
    for place in (*indexes, *find_links):
        try:
            urlsplit(place)
        except ValueError:  # what it says of the address may hold a password
            raise ConfigError("an address in pip's configuration cannot be read", hint="pip config list shows it") from None
    return PipSettings(
        () if without_index else tuple(indexes),
        tuple(find_links),
        frozenset(host.partition(":")[0] for host in values.get("trusted-host", "").split()),
        values.get("cert"),
        values.get("client-cert"),
        values.get("proxy"),
    )


def _configured() -> dict[str, str]:
    """Of pip's files, the later ones over the earlier: what stands under [global], and over that under [download]."""
    parser = configparser.RawConfigParser()
    try:
        for path in _files():
            parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"pip's configuration {path} cannot be read ({type(error).__name__})", hint="pip config list shows it") from None
    return {
        key.replace("_", "-"): value
        for section in ("global", "download")
        if parser.has_section(section)
        for key, value in parser.items(section)
        if value
    }


def _files() -> list[Path]:
    """Where pip's documentation says that its configuration lies: the machine's, the user's, the environment's, the one that is named."""
    named = os.environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path(os.path.expanduser("~"))
    if sys.platform == "darwin":
        machine = [Path("/Library/Application Support/pip/pip.conf")]
        user = home / "Library/Application Support/pip/pip.conf"
    else:
        folders = os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
        machine = [*(Path(folder) / "pip/pip.conf" for folder in folders.split(":")), Path("/etc/pip.conf")]
        user = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf"
    return [*machine, home / ".pip/pip.conf", user, Path(sys.prefix) / "pip.conf", *([Path(named)] if named else [])]


def _netrc(host: str) -> dict[str, str]:
    import netrc  # here: few have such a file

    try:
        entry = netrc.netrc(os.environ.get("NETRC") or None).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return {}
    return authorization(entry[0], entry[2]) if entry else {}


def names_of(settings: PipSettings) -> str:
    """Where wheels are looked for, in words, without credentials."""
    return ", ".join(shown(place) if "://" in place else place for place in (*settings.indexes, *settings.find_links)) or "no place at all"
