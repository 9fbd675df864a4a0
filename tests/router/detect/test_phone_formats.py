"""What is told of a region's formats without parsing a number is what the library says of it."""

import random
import re

import phonenumbers
import pytest
from hybrid.router.detect.phone_formats import is_written_as_a_phone
from hybrid.router.policy.policy import Policy

REGIONS = Policy.default().privacy.regions
FORMATS = tuple(region for region in REGIONS if region != "CA")  # it has those of the United States, and 3-3-4 needs no library


def by_the_library_alone(groups: list[str], between: str, region: str) -> bool:
    try:
        number = phonenumbers.parse("".join(groups), region)
    except phonenumbers.NumberParseException:
        return False
    written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    if not phonenumbers.is_valid_number_for_region(number, region) or (between == " " and "-" in written):
        return False
    return [len(group) for group in re.findall(r"\d+", written)] == [len(group) for group in groups]


def other_digits(source: random.Random, group: str) -> list[str]:
    return [digit if source.random() < 0.8 else source.choice("0123456789") for digit in group]


@pytest.mark.parametrize("region", FORMATS)
def test_a_number_in_groups_is_taken_where_the_library_alone_takes_it(region: str) -> None:
    source, taken = random.Random(region), 0
    for _ in range(40):
        example = phonenumbers.example_number_for_type(region, source.choice((0, 1, 3, 4))) or phonenumbers.example_number(region)
        written = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.NATIONAL)
        groups = ["".join(other_digits(source, group)) for group in re.findall(r"\d+", written)]
        between = source.choice(" -.")
        if len(groups) > 1 and 7 <= sum(map(len, groups)) <= 11:
            expected = by_the_library_alone(groups, between, region)
            assert is_written_as_a_phone(groups, between, (region,)) == expected, (groups, between)
            taken += expected
    assert taken


@pytest.mark.parametrize("years", ["1861 1865", "1958 1968", "2001 2003", "1743 1754"])
def test_a_span_of_years_is_no_phone_number(years: str) -> None:
    assert not is_written_as_a_phone(years.split(), "-", REGIONS)
