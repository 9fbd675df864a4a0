"""The cloud's address and key, as they are written."""

from __future__ import annotations

import pytest
from hybrid.edge.transport.cloud import CloudClient
from hybrid.shared_protocol import errors


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://host",
        "http://",
        "http://[::1",
        "http://host:port",
        "http://host:99999",
        "http://ho st",
        "http://" + "a" * 64,
        "http://host?x=1",
        "http://host/#f",
        "http://user:sesame@host",
    ],
)
def test_an_address_that_is_none_is_a_configuration_error_and_shows_no_password(url: str) -> None:
    with pytest.raises(errors.ConfigError) as told:
        CloudClient(url)
    assert "sesame" not in str(told.value)


@pytest.mark.parametrize("url", ["http://host", "http://host/", "http://host/v1", " http://host/v1/", "HTTP://host"])
def test_an_address_may_be_written_as_people_do(url: str) -> None:
    assert CloudClient(url).url == "http://host"


@pytest.mark.parametrize("key", ["sesame\n", "sesame\x00", "s\N{LATIN SMALL LETTER E WITH ACUTE}same"])
def test_a_key_that_no_header_can_carry_is_a_configuration_error_and_not_shown(key: str) -> None:
    with pytest.raises(errors.ConfigError) as told:
        CloudClient("http://host", key)
    assert "same" not in str(told.value)
