"""Whether groups of digits are a phone number of some region, written the way that region writes them.

Alone, validity says little: one of the ten largest regions calls nearly every random ten-digit number valid. The grouping must agree too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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
    return any(plan.may_write(number, lengths) and _groups(number, plan.region, between) == lengths for plan in map(_plan, regions))


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


@dataclass(frozen=True, slots=True)
class _Plan:
    """What can be said of a region's numbers without parsing them, which takes a hundred times longer."""

    region: str
    numbers: re.Pattern[str]  # all of them, without the national prefix
    prefix: str
    formats: tuple[re.Pattern[str], ...]  # a group of the pattern is a group of the number

    def may_write(self, number: str, lengths: list[int]) -> bool:
        """Whether a format of the region has groups of these lengths, the national prefix being one of its own, part of the first, or
        not written."""
        bare = number.removeprefix(self.prefix)
        if not self.numbers.fullmatch(bare):
            return False
        groups = [[len(group) for group in found.groups()] for form in self.formats if (found := form.fullmatch(bare))]
        prefix = len(number) - len(bare)
        return any(lengths in (found, [prefix, *found], [prefix + found[0], *found[1:]]) for found in groups)


@cache
def _plan(region: str) -> _Plan:
    metadata = _library().PhoneMetadata.metadata_for_region(region, None)
    if metadata is None:
        raise ValueError(f"no phone numbers are known for region {region}")
    formats = tuple(dict.fromkeys(one.pattern for one in metadata.number_format))
    numbers = re.compile(metadata.general_desc.national_number_pattern)
    return _Plan(region, numbers, metadata.national_prefix or "", tuple(map(re.compile, formats)))


@cache
def _library() -> Any:
    import phonenumbers

    return phonenumbers
