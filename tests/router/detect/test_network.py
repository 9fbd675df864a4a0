"""E-mail addresses and addresses of machines, and what only looks like them."""

import pytest
from hybrid.router.detect.network import find_addresses, find_emails
from hybrid.router.detect.scan import Scan


@pytest.mark.parametrize(
    "text",
    [
        "bob@example.com",
        "<b.o+b@mail.example.co.uk>",
        "jörg@müller.de",
        "bob＠example.com",
        "bob [at] example [dot] com",
        "x b@c.io.",
        "bob at example dot com",
        "?to=bob%40example.com&",
        "_bob@example.com_",
        "bob@mu\u0308ller.de",
        "bob@example\u3002com",
        "git@example.com",
        "my.git@example.com: hello",
    ],
)
def test_an_email_is_found(text: str) -> None:
    assert len(find_emails(Scan(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "@app.route",
        "a@b",
        "git@github.com:o/r",
        "5 @ 3.99",
        "user@",
        "@",
        "meet @ noon. ok",
        "ssh://git@github.com/o/r",
        "connect it at the dot matrix",
        "`@app.some_name`",
    ],
)
def test_an_at_sign_is_no_email(text: str) -> None:
    assert len(find_emails(Scan(text))) == 0


@pytest.mark.parametrize(
    "text",
    [
        "10.1.2.3",
        "http://81.2.69.142:80/",
        "2001:db8::8a2e:370:7334",
        "[fe80::1]",
        "2001:db8:0:0:1:0:0:1",
        "64:ff9b::192.0.2.33",
        "_10.1.2.3_",
        "010.001.002.003",
    ],
)
def test_the_address_of_a_machine_is_found(text: str) -> None:
    assert len(find_addresses(Scan(text))) >= 1


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1", "255.255.255.0", "0.0.0.0", "::1", "v1.2.3.4", "1.2.3.4.5", "300.1.1.1", "std::vector", "a::b", "12:30:45", "1.2.3"],
)
def test_loopback_versions_times_and_names_are_no_addresses(text: str) -> None:
    assert len(find_addresses(Scan(text))) == 0
