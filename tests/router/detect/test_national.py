"""Numbers of states. All are made up: check digits are computed here, or searched for behind a date that is made up."""

import random
import re
import string
from importlib import import_module

import pytest
from hybrid.router.detect.budget import MAX_CANDIDATES, TooManyCandidates
from hybrid.router.detect.national import find_national_ids, find_ssns
from hybrid.router.detect.national_table import DIGITS, LETTERED, Digits, Lettered
from hybrid.router.detect.scan import Scan
from hybrid.router.policy.policy import Policy

REGIONS = tuple(sorted({number.region for number in (*DIGITS, *LETTERED)}))
# How a number of this kind may begin, where a random one is hardly ever valid.
BEGINNINGS = {
    **dict.fromkeys(("be.nn", "bg.egn", "cz.rc", "pl.pesel", "se.personnummer", "sk.rc", "za.idnr"), "850314"),
    **dict.fromkeys(("dk.cpr", "gr.amka", "is_.kennitala", "no.fodselsnummer"), "140385"),
    **dict.fromkeys(("ee.ik", "lt.asmens"), "3850314"),
    "ar.cuit": "20",
    "ch.ssn": "756",
    "cn.ric": "11010519850314",
    "fr.nir": "1850375116001",
    "in_.aadhaar": "2",
    "kr.rrn": "8503141",
    "my.nric": "85031414",
    "pk.cnic": "35202",
    "ro.cnp": "1850314",
    "si.emso": "1403985",
    "us.itin": "9",
}


def found(text: str, regions: tuple[str, ...] = REGIONS) -> list[str]:
    return [text[one.start : one.end] for one in find_national_ids(Scan(text), regions)]


def some_number(number: Digits, digits: int) -> str:
    """A number of so many digits that python-stdnum calls valid."""
    valid = import_module(f"stdnum.{number.module}").is_valid
    source = random.Random(7)
    begins = BEGINNINGS.get(number.module, "")
    if digits in (12, 8) and number.module == "se.personnummer":
        begins = "19" + begins
    for _ in range(200_000):
        tried = begins + "".join(source.choice("0123456789") for _ in range(digits - len(begins)))
        if valid(tried):
            return tried
    raise AssertionError(f"no {number.module} of {digits} digits")


def grouped(digits: str, groups: tuple[int, ...], between: str) -> str:
    """With the separators of `between` in turn, the last one repeated: 123.456.789-09 for ".-"."""
    parts, at = [], 0
    for length in groups:
        parts.append(digits[at : at + length])
        at += length
    marks = [between[-1] if len(between) == 2 and n == len(groups) - 2 else between[0] for n in range(len(groups) - 1)]
    return "".join(part + mark for part, mark in zip(parts, [*marks, ""], strict=True))


@pytest.mark.parametrize("number", DIGITS, ids=lambda number: number.module)
def test_every_number_of_the_table_is_found_where_its_shape_or_a_word_says_so(number: Digits) -> None:
    for groups in number.alone:
        written = grouped(some_number(number, sum(groups)), groups, number.between)
        assert written in found(f"It is {written}, yes", (number.region,)), groups
    for groups in number.said:
        written = grouped(some_number(number, sum(groups)), groups, " ")
        word = number.words.split("|")[0].removesuffix(r"\w*")
        assert written in found(f"My {word.upper()}: {written}.", (number.region,)), groups
        if groups not in number.alone:
            assert found(f"It is {written}, yes", (number.region,)) == []
        assert found(f"My {word}: {written}.", ("XX",)) == []


@pytest.mark.parametrize(
    ("module", "text", "value"),
    [
        ("es.dni", "mi DNI es 12345678Z", "12345678Z"),  # 12345678 modulo 23 is 14: Z
        ("es.nie", "NIE X-1234567-L", "X-1234567-L"),  # X is 0: 1234567 modulo 23 is 19: L
        ("ie.pps", "PPS number 1234567T", "1234567T"),  # 8*1 + 7*2 + ... + 2*7 = 112, modulo 23 is 20: T
        ("", "NI number AB 12 34 56 C", "AB 12 34 56 C"),
        ("", "AB123456C", "AB123456C"),
        ("fi.hetu", "140385-123F", None),
        ("in_.pan", "PAN ABCPK1234F", "ABCPK1234F"),  # P: a person
    ],
)
def test_numbers_with_letters_are_found(module: str, text: str, value: str | None) -> None:
    assert found(text) == ([] if value is None else [value])


def test_numbers_with_letters_of_the_table_are_checked_by_their_own_rules() -> None:
    """Italy and Finland by their rules written out here."""
    hetu = f"140385-123{'0123456789ABCDEFHJKLMNPRSTUVWXY'[140385123 % 31]}"
    assert found(f"hetu {hetu}") == [hetu]
    weights = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]
    odd = dict(zip(string.ascii_uppercase, weights, strict=True)) | dict(zip("0123456789", weights, strict=False))
    code = "RSSMRA85C14H501"
    total = sum(odd[c] if at % 2 == 0 else (int(c) if c.isdigit() else ord(c) - 65) for at, c in enumerate(code))
    assert found(f"CF: {code}{chr(65 + total % 26)}.") == [code + chr(65 + total % 26)]
    assert found(f"CF: {code}{chr(65 + (total + 1) % 26)}.") == []


@pytest.mark.parametrize(
    "text",
    [
        "BG 12 34 56 C",
        "XAB123456C",
        "AB123456E",
        "12345678A is a part",
        "order 12345678Z",
        "commit 1234567T",
        "UTF8 SHA256 H2O B2B",
        "529.982.247-26",
        "A529.982.247-25",
    ],
)
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert found(text) == []


def test_a_number_is_found_inside_a_longer_run_of_groups() -> None:
    assert found("CPF 529.982.247-25 / 2024") == ["529.982.247-25"]
    assert found("7 12 529.982.247-25") == ["529.982.247-25"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("my passport number is X1234567, thanks", ["X1234567"]),
        ("Driver's license: 2270-66-1551", ["2270-66-1551"]),
        ("my drivers license number is F162823540116", ["F162823540116"]),
        ("the passport expires 2031-04-05", []),
        ("the passport expires 20310405", []),
        ("a passport for 3 people", []),
        ("a driver for 12345 kilometres", []),
    ],
)
def test_documents_are_found_where_they_are_announced(text: str, values: list[str]) -> None:
    assert found(text) == values


def test_more_candidates_than_are_validated_make_the_text_unreadable() -> None:
    one = "CPF 529.982.247-26\n"
    assert found(one * MAX_CANDIDATES) == []
    with pytest.raises(TooManyCandidates):
        found(one * (MAX_CANDIDATES + 1))


@pytest.mark.parametrize(
    "text",
    [
        "123-45-6780",
        "My SSN is 123 45 6780.",
        "ssn 123.45.6780",
        "SSN: 123456780",
        "social security number 123456780",
        "_123-45-6780_ and 1",
    ],
)
def test_a_social_security_number_is_found(text: str) -> None:
    assert [re.sub(r"\D", "", text[one.start : one.end]) for one in find_ssns(Scan(text))] == ["123456780"]


@pytest.mark.parametrize(
    "text",
    [
        "000-12-3456",
        "666-12-3456",
        "900-12-3456",
        "123-00-4567",
        "123-45-0000",
        "111-11-1111",
        "078-05-1120",
        "123-45-6789",
        "123-45 6780",
        "123.45-6780",
        "123456780",
        "1234-45-6780",
        "123-45-67801",
        "123-456-780",
        "A123-45-6780",
        "order 123456780",
    ],
)
def test_what_was_never_given_out_or_is_written_otherwise_is_none(text: str) -> None:
    assert find_ssns(Scan(text)) == []


def test_the_default_policy_knows_only_regions_that_have_phones_or_numbers() -> None:
    from hybrid.router.detect.phone_formats import is_written_as_a_phone

    assert not is_written_as_a_phone(["00", "00000"], "-", Policy.default().privacy.regions)
    with pytest.raises(ValueError, match="XX"):
        is_written_as_a_phone(["00", "00000"], "-", ("XX",))


def test_the_table_names_each_number_once_per_region() -> None:
    names = [(number.module, number.region) for number in (*DIGITS, *LETTERED)]
    assert len(set(names)) >= len(names) - 2  # Chile's and China's are in both tables
    assert all(isinstance(number, Digits | Lettered) for number in (*DIGITS, *LETTERED))
