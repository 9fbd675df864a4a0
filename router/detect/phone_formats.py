"""Whether groups of digits are a phone number of some region, written the way that region writes them.

Alone, validity says little: one of the ten largest regions calls nearly every random ten-digit number valid. The grouping must agree too.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

SHORTEST, LONGEST = 7, 11  # digits, the national prefix included; longer ones begin with 0, and have a shape of their own
_DIGITS = re.compile(r"\d+")


def is_written_as_a_phone(groups: list[str], between: str, regions: tuple[str, ...]) -> bool:
    """`groups` of digits with the separator `between`. Hyphens and dots may stand for a region's spaces, but not the other way round: two
    numbers that stand side by side have a space between them. Raises ValueError for a region that nobody knows."""
    number = "".join(groups)
    if not SHORTEST <= len(number) <= LONGEST:
        return False
    lengths = [len(group) for group in groups]
    return any(
        pattern.fullmatch(number.removeprefix(prefix)) and _groups(number, region, between) == lengths
        for region, pattern, prefix in (_plan(region) for region in regions)
    )


def _groups(number: str, region: str, between: str) -> list[int] | None:
    """The lengths of the groups in which the region writes this number; None when it is not one of its numbers, or has hyphens there."""
    library = _library()
    try:
        parsed = library.parse(number, region)
    except library.NumberParseException:
        return None
    if not library.is_valid_number_for_region(parsed, region):
        return None
    national = library.format_number(parsed, library.PhoneNumberFormat.NATIONAL)
    if between == " " and "-" in national:
        return None
    return [len(group) for group in _DIGITS.findall(national)]


@cache
def _plan(region: str) -> tuple[str, re.Pattern[str], str]:
    """The region, what all its numbers match, and its national prefix: a check that is much cheaper than to parse."""
    metadata = _library().PhoneMetadata.metadata_for_region(region, None)
    if metadata is None:
        raise ValueError(f"no phone numbers are known for region {region}")
    return region, re.compile(metadata.general_desc.national_number_pattern), metadata.national_prefix or ""


@cache
def _library() -> Any:
    import phonenumbers

    return phonenumbers
