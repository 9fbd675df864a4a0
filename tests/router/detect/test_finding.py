"""Where findings stand: whole values, in the text as it was written, and never one over another."""

import pytest
from hybrid.router.detect.finding import Finding, resolve
from hybrid.router.detect.registry import OURS
from hybrid.router.detect.scan import Scan
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import find
from hypothesis import given, settings
from hypothesis import strategies as st

POLICY = Policy.default()
KINDS = ("card", "email", "phone")
findings = st.builds(
    lambda kind, start, length: Finding(kind, start, start + length), st.sampled_from(KINDS), st.integers(0, 60), st.integers(1, 20)
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Write to b.o+b@mail.example.com, please", ["b.o+b@mail.example.com"]),
        ("?to=bob%40example.com&x=1", ["bob%40example.com"]),
        ("_bob@example.com_ and 'amy@example.org'", ["bob@example.com", "amy@example.org"]),
        ("a_b_@example.com", ["a_b_@example.com"]),
        ("bob [at] example [dot] com!", ["bob [at] example [dot] com"]),
        ("ring +49 30 1234567.", ["+49 30 1234567"]),
        ("ring (415) 555-0123 ext 4 now", ["(415) 555-0123 ext 4"]),
        ("+(44) 20 7946 0958", ["+(44) 20 7946 0958"]),
        ("415-555-0123, 415.555.0124x88", ["415-555-0123", "415.555.0124x88"]),
        ("415-555-0123 212-555-0124", ["415-555-0123", "212-555-0124"]),
        ("+49 30\n1234567 now", ["+49 30\n1234567"]),
        ("card 4111 1111 1111 1111 12/27", ["4111 1111 1111 1111"]),
        ("card 4111 1111\n1111 1111", ["4111 1111\n1111 1111"]),
        ("DE89 3704 0044 0532 0130 00 is mine", ["DE89 3704 0044 0532 0130 00"]),
        ("at 81.2.69.142:80 or [2001:db8::8a2e]", ["81.2.69.142", "2001:db8::8a2e"]),
        ("My\nblood-pressure, and HIV", ["blood-pressure", "HIV"]),
        ("password = 'hunter2!x'", ["hunter2!x"]),
        (
            "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nbye",
            ["-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"],
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", ["-----BEGIN PRIVATE KEY-----\nMIIE"]),
    ],
)
def test_a_finding_covers_a_whole_value_and_no_more(text: str, values: list[str]) -> None:
    assert [text[one.start : one.end] for one in find(text, POLICY)] == values


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("\u200b\u200b\u00e9: <", "bob@example.com", ">\u200b"),
        ("\uff20\u0301 \u00ad<", "b\u200bo\u0301b\uff20ex\u00adample.com", ">"),
        ("\u0130\u0130 <", "bob at example dot com", ">"),
        ("\u0130 pass\u200bword: ", "Tr0u\u200bb4dor", ""),
        ("\u200e", "\uff14\uff11\uff11\uff11 1111 1111 1111\u200b", "!\u200e"),
        ("\u2067", "4\ufe0f\u20e31\ufe0f\u20e311-1111\u2060-1111-111\ufe0f1\ufe0f\u20e3", ">"),
    ],
)
def test_positions_are_those_of_the_text_as_it_was_written(before: str, value: str, after: str) -> None:
    """What is drawn as nothing belongs to the character before it."""
    (one,) = find(before + value + after, Policy.parse('[privacy]\nsecret = "local_only"'))
    assert (one.start, one.end) == (len(before), len(before + value))


@given(st.text(st.one_of(st.sampled_from("a1@\u200b\u0301\ufe0f\u20e3\u00ad\u0130\uff11"), st.characters()), max_size=60))
def test_every_position_of_a_folded_text_has_its_own_in_the_text(text: str) -> None:
    scan = Scan(text)
    spans = [scan.finding("x", at, at + 1) for at in range(len(scan.text))]
    assert [spans[at].end == spans[at + 1].start for at in range(len(spans) - 1)] == [True] * (len(spans) - 1)
    assert all(Scan(text[one.start : one.end]).text == scan.text[at] for at, one in enumerate(spans))
    assert not spans or spans[-1].end == len(text)


@given(st.lists(findings, max_size=8))
def test_resolved_findings_cover_the_same_characters_and_none_twice(some: list[Finding]) -> None:
    resolved = resolve(some)
    covered = [at for one in resolved for at in range(one.start, one.end)]
    assert covered == sorted({at for one in some for at in range(one.start, one.end)})
    assert resolved == resolve(reversed(some))
    text = "".join(chr(0x100 + at) for at in range(100))
    rest = "".join(
        text[left.end : right.start] for left, right in zip([Finding("", 0, 0), *resolved], [*resolved, Finding("", 100, 100)], strict=True)
    )
    assert set(rest).isdisjoint(text[at] for at in covered) and len(rest) == 100 - len(covered)


@given(st.lists(findings, min_size=1, max_size=8))
def test_the_longest_of_overlapping_findings_names_them_all(some: list[Finding]) -> None:
    for one in resolve(some):
        inside = [f for f in some if f.start >= one.start and f.end <= one.end]
        assert one.kind == min(inside, key=lambda f: (f.start - f.end, f.start, f.kind)).kind


def test_what_the_policy_calls_public_is_not_among_what_must_be_replaced() -> None:
    assert find("bob@example.com", Policy.parse('[privacy]\nemail = "public"')) == []
    assert find("hello", Policy.parse("[privacy]\nmax_characters = 3")) == [Finding("unreadable", 0, 5)]


# fmt: off
ATOMS = [
    "4111", " 1111", "-", "\n", "+49", "(0)", " 30 ", "1234567", "@", "example.com", "bob", "%40", "DE89", "3704 0044", "\u200b",
    "\u0301", "１", "٣", "123-45-6780", "GB", "AB 12 34 56 C", "X-1234567-L", "0x", "bc1q", "http://", "www.", "://", "a:b@", "password=",
    "Tr0ub4dor", "sk-", "ghp_", ":AA", "PRIVATE KEY-----", "-----BEGIN ", "passport ", "driver's license ", "call ", "2024-03-05",
    "T10:20", "5 March", "00:1b:44", ":11:3a:b7", "::1", "fe80:", "cpf 529.982.247-25", "İ", "\ud800", "_", ".", "hiv", "my doctor",
    "ext 4", "office", "x88", "12 34 56 78",
]
# fmt: on


@given(st.lists(st.one_of(st.sampled_from(ATOMS), st.text(max_size=3)), max_size=25).map("".join))
@settings(max_examples=150, deadline=None)
def test_every_detector_takes_every_text_and_stays_inside_of_it(text: str) -> None:
    """A detector that crashed would only be seen as a text that stays on the device."""
    for make in OURS.values():
        rule = make(POLICY.privacy)
        for one in rule.find(Scan(text)):
            assert one.kind in rule.kinds and 0 <= one.start < one.end <= len(text)
