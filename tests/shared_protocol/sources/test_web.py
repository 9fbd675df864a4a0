"""Which addresses are asked, what a redirect may do, and what is never said."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from urllib.request import Request

import pytest
from hybrid.shared_protocol.errors import CloudUnreachable, InvalidRequest, StreamInterrupted
from hybrid.shared_protocol.sources.pip_settings import PipSettings
from hybrid.shared_protocol.sources.web import Access, _Redirects, basic_auth, check_url, get_document, shown
from hybrid.tests.support.file_server import Fault, FileServer, serving

CERTIFICATE = Path(__file__).parents[2] / "data" / "loopback.pem"  # for 127.0.0.1, signed by nobody, with its key


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(FileServer({"/list": b"{}"}, faulty=("",))) as running:
        yield running


@pytest.mark.parametrize("url", ["https://host/x", "http://127.0.0.1:80/x", "http://localhost/x", "http://[::1]/x"])
def test_tls_or_this_machine(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://host/x", "http://127.0.0.1.evil.org/x", "http://127.0.0.1@evil.org/x", "ftp://host/x", "https:///x", "https://h:99999/x",
        "https://[::1/x", "https://host/a b", "https://host/a\r\nX: y", "file:///etc/passwd", "https://hö/x",
    ],
)  # fmt: skip
def test_any_other_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        check_url(url)


def test_a_host_without_tls_is_asked_where_pip_trusts_it() -> None:
    assert check_url("http://mirror/simple", frozenset({"mirror"}))


def test_what_may_be_a_secret_is_not_shown() -> None:
    assert shown("https://me:s3cret@host:8/a/b.gguf?token=s3cret#s3cret") == "https://host:8/a/b.gguf"
    bare, headers = basic_auth("https://me:s3%40cret@host/a")
    assert bare == "https://host/a"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"me:s3@cret"


def test_a_redirect_never_leaves_tls() -> None:
    with pytest.raises(CloudUnreachable, match="without TLS"):
        _Redirects(Access()).redirect_request(Request("https://host/a?s3cret"), BytesIO(), 302, "", {}, "http://127.0.0.1/a")


def test_over_tls_a_certificate_must_be_trusted_and_a_redirect_stays_within(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FileServer({"/list": b"{}"}, faulty=("",)), CERTIFICATE) as server:
        with pytest.raises(CloudUnreachable, match=r"certificate of 127\.0\.0\.1 is not trusted.*SSL_CERT_FILE") as caught:
            get_document(f"{server.url}/list", Access(), {}, 30.0)
        assert caught.value.retry_after_s is None  # asking again would not help
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        assert get_document(f"{server.url}/list", Access(), {}, 30.0)[0] == b"{}"
        server.faults = [Fault(302, {"Location": server.url.replace("https", "http") + "/list"})]
        with pytest.raises(CloudUnreachable, match="without TLS"):
            get_document(f"{server.url}/list", Access(), {}, 30.0)
        monkeypatch.delenv("SSL_CERT_FILE")
        settings = PipSettings((server.url,), (), frozenset(), certificates=str(CERTIFICATE))
        assert get_document(*settings.access(f"{server.url}/list"), {}, 30.0)[0] == b"{}"


@pytest.mark.parametrize("there", ["http://203.0.113.1/x", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://[::1"])
def test_a_redirect_leads_only_where_one_may_ask(server: FileServer, there: str) -> None:
    server.faults = [Fault(302, {"Location": there})]
    with pytest.raises((InvalidRequest, CloudUnreachable)):
        get_document(f"{server.url}/list", Access(), {}, 30.0)
    assert len(server.asked) == 1


@pytest.mark.parametrize("url", ["https://a..b/x", f"https://{'a' * 64}.org/x"])
def test_a_host_that_nobody_can_look_up_is_a_typed_error(url: str) -> None:
    with pytest.raises(CloudUnreachable, match="cannot be read"):
        get_document(url, Access(), {}, 5.0)


def test_redirects_in_a_circle_end(server: FileServer) -> None:
    server.faults = [Fault(307, {"Location": f"/list?{number}"}) for number in range(99)]
    with pytest.raises(CloudUnreachable, match="leads on and on"):
        get_document(f"{server.url}/list", Access(), {}, 30.0)
    assert len(server.asked) < 12


def test_a_proxy_of_the_environment_is_asked_and_its_password_not_told(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, server.url.replace("http://", "http://me:s3cret@"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(CloudUnreachable) as caught:
        get_document("https://models.invalid/list", Access(), {}, 30.0)
    (asked,) = server.asked
    assert asked.path == "models.invalid:443"
    assert "Proxy-Authorization" in asked.headers
    assert "s3cret" not in str(caught.value)


def test_this_machine_is_asked_without_a_proxy(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert get_document(f"{server.url}/list", Access(), {}, 30.0)[0] == b"{}"


def test_a_listing_that_hardly_comes_is_left(server: FileServer) -> None:
    ticks = iter(range(0, 10_000, 20))  # seconds
    server.faults = [Fault(headers={"Content-Length": "3000"}, stall_after=2)]
    with pytest.raises(StreamInterrupted, match="sent 2 bytes in 20 s"):
        get_document(f"{server.url}/list", Access(), {}, 20.0, lambda: next(ticks))


def test_what_is_compressed_unasked_is_refused(server: FileServer) -> None:
    server.faults = [Fault(headers={"Content-Encoding": "gzip"})]
    with pytest.raises(CloudUnreachable, match="encoding"):
        get_document(f"{server.url}/list", Access(), {}, 30.0)


def test_a_listing_that_is_cut_off_is_no_listing(server: FileServer) -> None:
    server.faults = [Fault(cut_after=1)]
    with pytest.raises(CloudUnreachable, match="cut off"):
        get_document(f"{server.url}/list", Access(), {}, 30.0)
