"""Keys and passwords, and talk about them."""

import re

import pytest
from hybrid.router.detect.scan import Scan
from hybrid.router.detect.secrets import _LONG_SHAPES, _SHAPES, _SHORTEST, find_secrets
from hypothesis import given, settings
from hypothesis import strategies as st


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
        "https://x.blob.example/c?sv=1&sig=" + "aB1%2" * 8,
        "https://b.example/k?X-Amz-Signature=" + "0a1b" * 16,
        "AGE-SECRET-KEY-1" + "Q0Z1" * 14 + "Q0",
        "AccountKey=" + "aB1/" * 21 + "==",
        "GOCSPX-" + "a1B2" * 7,
        "SG." + "a1B2" * 5 + "cd." + "a1B2" * 10,
        "dapi" + "0a1b" * 8,
        "dop_v1_" + "0a1b" * 16,
        "glsa_" + "a1B2" * 8 + "_0a1b2c3d",
        "hvs." + "a1B2" * 8,
        "key-" + "0a1b" * 8,
        "npm_" + "a1B2" * 9,
        "pypi-AgEIcHlwaS5vcmc" + "a1B2" * 12,
        "rk_live_" + "a1B2" * 6,
        "shpat_" + "0a1b" * 8,
        "https://hooks.slack.com/services/T00000000/B00000000/" + "a1B2" * 6,
        "xai-" + "a1B2" * 15,
        "ya29." + "a1B2" * 10,
        "123456789:AA" + "a1B2" * 8 + "c",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQ",
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
        "key-value stores and keyboards",
        "a monkey-" + "0a1b" * 8,
        "design-" + "sk-ip the first part of this",
        "glossary_of_terms, ghost_writers_and_others, shpat_x",
        "see 12:AA",
    ],
)
def test_talk_about_secrets_is_none(text: str) -> None:
    assert len(find_secrets(Scan(text))) == 0


def test_no_long_key_is_shorter_than_the_run_that_a_text_must_have_to_be_searched_for_it() -> None:
    shapes = [shape for shapes in _LONG_SHAPES.values() for shape in shapes]
    assert len(shapes) > 50
    for begins, pattern in shapes:
        shortest, _ = re._parser.parse(pattern.pattern).getwidth()  # type: ignore[attr-defined]
        assert shortest >= _SHORTEST, begins


@settings(max_examples=15)
@given(data=st.data())
def test_a_key_of_any_shape_is_found(data: st.DataObject) -> None:
    begins, pattern = data.draw(st.sampled_from(_SHAPES))
    key = data.draw(st.from_regex(re.compile(pattern.pattern, re.ASCII), fullmatch=True).filter(lambda found: found.startswith(begins)))
    assert find_secrets(Scan(f"({key})")), begins
