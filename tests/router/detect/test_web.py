"""Addresses of the web, whole, and what only looks like them."""

import pytest
from hybrid.router.detect.scan import Scan
from hybrid.router.detect.web import find_urls


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("see https://www.example.com/a_(b)?q=1&r=2#top.", ["https://www.example.com/a_(b)?q=1&r=2#top"]),
        ("(https://example.org/a_(b))", ["https://example.org/a_(b)"]),
        ("(http://example.org)", ["http://example.org"]),
        ("[docs](https://example.org/x), or <ftp://files.example.net/y>", ["https://example.org/x", "ftp://files.example.net/y"]),
        ("**https://example.org/x**", ["https://example.org/x"]),
        ('href="http://10.0.0.1:8080/"', ["http://10.0.0.1:8080/"]),
        ("http://[2001:db8::1]/x", ["http://[2001:db8::1]/x"]),
        ("www.example.de/path, please", ["www.example.de/path"]),
        ("Go to Example.com/a?b=c or shop.example.co.", ["Example.com/a?b=c"]),
        ("https://bücher.example/ä", ["https://bücher.example/ä"]),
        ("https://a.example https://b.example", ["https://a.example", "https://b.example"]),
        ("HTTP://EXAMPLE.COM", ["HTTP://EXAMPLE.COM"]),
    ],
)
def test_an_address_is_found_whole(text: str, values: list[str]) -> None:
    assert [text[one.start : one.end] for one in find_urls(Scan(text))] == values


@pytest.mark.parametrize(
    "text",
    [
        "a://",
        "x = y://z",
        "://example",
        "bob@example.com",
        "example.community",
        "main.py",
        "Yes.Come in",
        "www.",
        "awww.x.y",
        "x.commit()",
        "a.com.br",
    ],
)
def test_names_of_files_mail_and_operators_are_no_addresses(text: str) -> None:
    assert [text[one.start : one.end] for one in find_urls(Scan(text))] == []
