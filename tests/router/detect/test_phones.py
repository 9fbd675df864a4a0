"""Phone numbers, and what only looks like them. All numbers are made up."""

import pytest
from hybrid.router.detect.budget import MAX_CANDIDATES, TooManyCandidates
from hybrid.router.detect.phones import find_phones
from hybrid.router.detect.scan import Scan


@pytest.mark.parametrize(
    "text",
    [
        "+49 30 1234567",
        "+14155550123",
        "+(44) 20 7946 0958",
        "0049 30 1234567",
        "(415) 555-0123",
        "415-555-0123 ext 4",
        "415.555.0123x88",
        "020 7946 0958",
        "01.84.17.00.00",
        "(08) 8747 6301",
        "call me at 4155550123",
        "my mobile: 791 112 345",
        "tel 467 3395",
        "4155550123 4155550199 call: 415-555-0123",
        "+49 30\n1234567",
        "+49\n(30) 1234567",
        "_415-555-0123_",
        "415\t555\t0123",
    ],
)
def test_a_phone_is_found_by_its_shape_or_by_what_is_said(text: str) -> None:
    assert len(find_phones(Scan(text))) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "order 4155550123",
        "please call the service with order number 4155550123",
        "2024-03-05 10:20:30",
        "call me on 2024-03-05 10:20",
        "05.03.2024 10",
        "3.14159265358979",
        "call version 10.12.14.16",
        "the years 1914 1918 1939 1945",
        "12 34 56",
        "1,234,567,890",
        "call f(1234567890a)",
        "x_415-555-0123",
        "415-555-0123_old",
        "415\n555\n0123",
        "+1\n23456\n7890",
    ],
)
def test_order_numbers_dates_and_versions_are_no_phones(text: str) -> None:
    assert len(find_phones(Scan(text))) == 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tel: 4673395", "4673395"),
        ("my cell number is 4673395", "4673395"),
        ("467 3395 office", "467 3395"),
        ("12 345 6789-Fax", "12 345 6789"),
        ("22 333 44 55", None),
        ("1 234 567 mobile users", None),
        ("I have 4673395 calls", None),
        ("f(1)+12345678", None),
        ("order 750-0052332-9340185", None),
        ("no. 12-030-123456", None),
        ("x = 3+12345678", None),
        ("123-45-6780", None),  # a social security number
        ("(415) 555-0123 1-week camp", "(415) 555-0123"),
    ],
)
def test_short_and_odd_numbers_need_a_word_next_to_them(text: str, value: str | None) -> None:
    assert [text[one.start : one.end] for one in find_phones(Scan(text))] == ([] if value is None else [value])


@pytest.mark.parametrize(
    ("region", "written", "otherwise"),
    [
        ("DK", "32-12-34-56", "321-234-56"),  # in pairs
        ("ES", "612 34 56 78", "612 345 67 8"),
        ("CZ", "601.123.456", "6011.23.456"),
        ("SG", "6123 4567", "612 34567"),
    ],
)
def test_a_number_without_a_word_must_stand_in_the_groups_of_its_region(region: str, written: str, otherwise: str) -> None:
    def found(text: str, *regions: str) -> list[str]:
        return [text[one.start : one.end] for one in find_phones(Scan(text), regions)]

    assert found(f"It is {written}, yes", "US", region) == [written]
    assert found(f"It is {otherwise}, yes", "US", region) == []
    assert found(f"It is {written}, yes", "US") == []
    assert found(f"{written} 7", region) == []


def test_two_numbers_side_by_side_are_no_phone_of_a_region_that_writes_a_hyphen() -> None:
    assert len(find_phones(Scan("4003-6667"), ("BR",))) == 1
    assert find_phones(Scan("4003 6667"), ("BR",)) == []


def test_more_candidates_than_the_library_is_asked_about_make_the_text_unreadable() -> None:
    assert find_phones(Scan("99-11-22-33\n" * MAX_CANDIDATES), ("US",)) == []
    with pytest.raises(TooManyCandidates):
        find_phones(Scan("99-11-22-33\n" * (MAX_CANDIDATES + 1)), ("US",))
