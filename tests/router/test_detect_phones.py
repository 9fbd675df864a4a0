"""Phone numbers, and what only looks like them. All numbers are made up."""

import pytest
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
