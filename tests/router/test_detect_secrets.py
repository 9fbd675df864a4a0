"""Keys and passwords, and talk about them."""

import pytest
from hybrid.router.detect.scan import Scan
from hybrid.router.detect.secrets import find_secrets


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "a1B2_" * 6,
        "sk-" + "a1B2" * 6,
        "sk-proj-" + "a1B2" * 10,
        "sk_live_" + "a1B2" * 6,
        "xoxb-1234567890-abc",
        "AIza" + "a1B2-" * 7,
        "glpat-" + "a1B2" * 5,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
        "Authorization: Bearer a1B2c3D4e5F6g7H8",
        "password = 'hunter2!x'",
        "DB_PASSWORD=s3cr3tValue",
        "my password is Tr0ub4dor",
        '{"api_key": "9f8e7d6c5b4a"}',
        "client_secret: q8Zx71LmPw",
        "postgres://bob:hunter2@db/prod",
    ],
)
def test_a_secret_is_found(text: str) -> None:
    assert len(find_secrets(Scan(text))) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "Write a password strength checker.",
        "password: str",
        "password = os.environ['DB_PASSWORD']",
        "token = tokenizer.next_token()",
        "max_tokens=100000",
        "the secret is patience",
        "The secretary is friendly.",
        "password: aaaaaaa1",
        "risk-averse and task-oriented-people-everywhere",
        "key = value1234",
        "https://example.com:8080/path",
        "the token is 123456",
    ],
)
def test_talk_about_secrets_is_none(text: str) -> None:
    assert len(find_secrets(Scan(text))) == 0
