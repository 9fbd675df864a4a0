"""Asking a web server: which addresses may be asked, whom a redirect may lead to, and what goes wrong, as typed errors.

Proxies come from the environment (HTTPS_PROXY, NO_PROXY, ...). Nothing that is said or kept holds the user, the password or the query
of an address: those may be credentials.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from ..errors import AuthenticationError, CloudUnreachable, HybridError, InvalidRequest, ModelNotFound, PermissionDenied, StreamInterrupted
from .disk import GOES_ON

MAX_REDIRECTS = 8
BLOCK = 1 << 18  # bytes read or written at once
_TRICKLE = 1024  # bytes that must come in `stall_s`
_MAX_DOCUMENT = 32 << 20  # bytes of a listing
_LONGEST_WAIT_S = 60.0  # that a server may ask for
_AGENT = "hybrid-pull"


@dataclass(frozen=True, slots=True)
class Access:
    """How a server is asked."""

    headers: Mapping[str, str] = field(default_factory=dict)  # sent to the host that was named, and to no other that it leads to
    plain_hosts: frozenset[str] = frozenset()  # hosts that may be asked without TLS, beside this machine
    context: ssl.SSLContext | None = None  # None: the system's certificates
    proxy: str | None = None  # None: as the environment says


class RangeRefused(StreamInterrupted):
    """The server has no bytes from there on: what we have is of another file."""


def shown(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def check_url(url: str, plain_hosts: frozenset[str] = frozenset()) -> str:
    """Return `url` when it may be asked: https, or http to this machine or to one of `plain_hosts`. Raises InvalidRequest."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidRequest("the address cannot be read: is it https://HOST/PATH?", param="name") from None
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or any(letter <= " " for letter in url):
        raise InvalidRequest(f"{shown(url)[:200]!r} is no address of the form https://HOST/PATH", param="name")
    if parts.scheme == "http" and not is_loopback(host) and host not in plain_hosts:
        problem = f"{shown(url)[:200]} is not asked: without TLS anybody on the way can change or read what is sent"
        raise InvalidRequest(problem, param="name", hint="use https://; http:// is for servers on this machine only")
    return url


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def basic_auth(url: str) -> tuple[str, dict[str, str]]:
    """The address without its user and password, and the header that carries them."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, authorization(unquote(parts.username), unquote(parts.password or ""))


def authorization(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def open_url(url: str, access: Access, headers: Mapping[str, str], timeout_s: float) -> http.client.HTTPResponse:
    """The answer to a GET, its status 200 to 299; `timeout_s` bounds each wait for bytes, now and in later reads.

    Raises ModelNotFound, AuthenticationError, PermissionDenied, InvalidRequest; CloudUnreachable with `retry_after_s` when it may be
    asked again.
    """
    check_url(url, access.plain_hosts)
    request = urllib.request.Request(url, headers={"User-Agent": _AGENT, "Accept-Encoding": "identity", **access.headers, **headers})
    try:
        answer: http.client.HTTPResponse = _opener(url, access).open(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(error, url) from None
    except (OSError, http.client.HTTPException) as error:
        raise unreachable(error, url) from None
    except ValueError:  # a host that no name system can be asked for, or a redirect to what is no address
        raise CloudUnreachable(f"{shown(url)} has a host, or leads to an address, that cannot be read", hint="is it right?") from None
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        answer.close()
        raise CloudUnreachable(f"{shown(url)} was sent in an encoding that nobody asked for", hint="is there a proxy that changes answers?")
    return answer


def blocks_of(answer: http.client.HTTPResponse, url: str, stall_s: float, clock: Callable[[], float]) -> Iterator[bytes]:
    """What comes, as it comes. Raises StreamInterrupted when nothing comes for `stall_s`, or next to nothing; CloudUnreachable."""
    began, came = clock(), 0
    while True:
        try:
            block = answer.read1(BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise unreachable(error, url) from None
        if not block:
            return
        yield block
        came += len(block)
        now = clock()
        if now - began >= stall_s:
            if came < _TRICKLE:
                raise StreamInterrupted(f"{shown(url)} sent {came} bytes in {now - began:.0f} s", hint=GOES_ON, retry_after_s=0.0)
            began, came = now, 0


def get_document(
    url: str, access: Access, headers: Mapping[str, str], stall_s: float, clock: Callable[[], float] = time.monotonic
) -> tuple[bytes, str, str]:
    """A small document: its bytes, content type, and the address that it came from. Errors as for `open_url`."""
    with open_url(url, access, headers, stall_s) as answer:
        raw = bytearray()
        for block in blocks_of(answer, url, stall_s, clock):
            raw += block
            if len(raw) > _MAX_DOCUMENT:
                raise CloudUnreachable(f"{shown(url)} sends more than {_MAX_DOCUMENT:,} bytes, which no listing has")
        length = length_of(answer)
        if length is not None and len(raw) < length:
            raise StreamInterrupted(f"{shown(url)} was cut off after {len(raw):,} of {length:,} bytes", retry_after_s=0.0)
        return bytes(raw), answer.headers.get_content_type(), answer.geturl()


def length_of(answer: http.client.HTTPResponse) -> int | None:
    """Bytes of the body, where the server says so."""
    stated: str = answer.headers.get("Content-Length", "")
    return int(stated) if stated.isascii() and stated.isdecimal() and len(stated) < 19 else None


def unreachable(error: Exception, url: str) -> HybridError:
    """What a failure of the network is called. `retry_after_s` is set where another attempt may help."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, HybridError):
        return reason
    where, host = shown(url), urlsplit(url).hostname
    if isinstance(reason, ssl.SSLCertVerificationError):
        problem = f"the certificate of {host} is not trusted: {reason.verify_message}"
        return CloudUnreachable(problem, hint="SSL_CERT_FILE names certificates of your own")
    if isinstance(reason, TimeoutError):
        return StreamInterrupted(f"{where} sent nothing for too long", hint="check the network", retry_after_s=0.0)
    said = reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
    return CloudUnreachable(f"{where} cannot be reached: {said}", hint="check the network, and HTTPS_PROXY", retry_after_s=0.0)


def _opener(url: str, access: Access) -> urllib.request.OpenerDirector:
    opener = urllib.request.OpenerDirector()
    proxies: dict[str, str] | None = {"http": access.proxy, "https": access.proxy} if access.proxy else None
    if is_loopback(urlsplit(url).hostname or ""):
        proxies = {}  # a proxy's loopback is another machine
    for handler in (
        urllib.request.ProxyHandler(proxies),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=access.context),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _Redirects(access),
    ):  # and none for file:, ftp: or data:
        opener.add_handler(handler)
    return opener


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = MAX_REDIRECTS
    max_repeats = 2

    def __init__(self, access: Access) -> None:
        self.access = access

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        before = urlsplit(req.full_url)
        if before.scheme == "https" and urlsplit(newurl).scheme != "https":
            raise CloudUnreachable(f"{shown(req.full_url)} leads to an address without TLS, {shown(newurl)[:200]}: not followed")
        after = urlsplit(check_url(newurl, self.access.plain_hosts))
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and (before.scheme, before.netloc) != (after.scheme, after.netloc):
            for name in self.access.headers:
                request.remove_header(name.capitalize())
        return request


def _refusal(error: urllib.error.HTTPError, url: str) -> HybridError:
    status, where = error.code, shown(url)
    detail = error.headers.get("X-Error-Code", "")
    if status in (404, 410) or detail in ("RepoNotFound", "EntryNotFound", "RevisionNotFound"):
        return ModelNotFound(f"{where} is not there (HTTP {status})", hint="is the name right? A private one needs a token")
    if status == 401:
        return AuthenticationError(f"{where} asks for credentials (HTTP 401)", hint="HF_TOKEN, or https://USER:PASSWORD@HOST/")
    if status == 403:
        return PermissionDenied(f"{where} may not be read with these credentials (HTTP 403)", hint="are its terms accepted?")
    if status == 416:
        return RangeRefused(f"{where} has changed", retry_after_s=0.0)
    if 300 <= status < 400:
        return CloudUnreachable(f"{where} leads on and on, or nowhere (HTTP {status})")
    wait = error.headers.get("Retry-After", "0")
    again = min(float(wait), _LONGEST_WAIT_S) if wait.isdecimal() else 0.0
    passing = status in (408, 425, 429) or status >= 500
    return CloudUnreachable(f"{where} answers HTTP {status}", hint="try again later", retry_after_s=again if passing else None)
