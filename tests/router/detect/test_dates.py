"""Dates are reported; they are public by default."""

import pytest
from hybrid.router.detect.dates import find_dates
from hybrid.router.detect.scan import Scan
from hybrid.router.policy.policy import Policy
from hybrid.router.privacy import classify


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("on 2024-03-05 10:20:30, or 5.3.2024", ["2024-03-05 10:20:30", "5.3.2024"]),
        ("2024-03-05T10:20:30.123Z", ["2024-03-05T10:20:30.123Z"]),
        ("born 3/5/64", ["3/5/64"]),
        ("March 5th, 2024 and 5 March 2024, in May 2023", ["March 5th, 2024", "5 March 2024", "May 2023"]),
        ("version 1.2.34, ratio 3/4, in 1984, on Monday, I may go", []),
        ("2024-13-05", []),
        ("12024-03-05", []),
    ],
)
def test_days_with_month_and_year_are_dates(text: str, values: list[str]) -> None:
    assert [text[one.start : one.end] for one in find_dates(Scan(text))] == values


def test_a_date_is_public_unless_the_policy_minds() -> None:
    assert classify("on 2024-03-05", Policy.default()).verdict == "public"
    assert dict(classify("on 2024-03-05", Policy.parse('[privacy]\ndate = "local_only"')).findings) == {"date": 1}
