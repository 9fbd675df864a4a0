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
class _Format:
    """A group of the pattern is a group of the number."""

    numbers: re.Pattern[str]
    begins: re.Pattern[str] | None  # what its numbers begin with, where that matters


@dataclass(frozen=True, slots=True)
class _Plan:
    """What can be said of a region's numbers without parsing them, which takes a hundred times longer."""

    region: str
    numbers: re.Pattern[str]  # all of them, without the national prefix
    prefix: str
    parsed: re.Pattern[str]  # the beginnings that a parser takes off: prefixes, carriers, the region's country
    formats: tuple[_Format, ...]

    def may_write(self, number: str, lengths: list[int]) -> bool:
        """Whether the region's format of this number has groups of these lengths, the national prefix being one of its own, part of the
        first, or not written. Where a parser may take something else off the number's beginning, it may have any format."""
        bare = number.removeprefix(self.prefix)
        if not self.numbers.fullmatch(bare):
            return False
        plain = self.parsed.match(number) is None
        prefix = len(number) - len(bare)
        for form in self.formats:
            if plain and form.begins is not None and not form.begins.match(bare):
                continue
            if groups := form.numbers.fullmatch(bare):
                found = [len(group) for group in groups.groups()]
                if lengths in (found, [prefix, *found], [prefix + found[0], *found[1:]]):
                    return not plain or _kinds(self.region).fullmatch(bare) is not None
                if plain:  # the first format that fits is the number's
                    return False
        return False


@cache
def _plan(region: str) -> _Plan:
    metadata = _metadata(region)
    formats = (_Format(re.compile(one.pattern), _begins(one.leading_digits_pattern)) for one in metadata.number_format)
    taken = [metadata.international_prefix, metadata.national_prefix_for_parsing, str(metadata.country_code)]
    return _Plan(
        region,
        re.compile(metadata.general_desc.national_number_pattern),
        metadata.national_prefix or "",
        re.compile("|".join(f"(?:{one})" for one in taken if one)),
        tuple(dict.fromkeys(formats)),
    )


def _begins(leading: list[str]) -> re.Pattern[str] | None:
    """The last pattern says it most exactly."""
    return re.compile(leading[-1]) if leading else None


@cache
def _kinds(region: str) -> re.Pattern[str]:
    """The numbers that are some kind of number: land lines, mobiles, services. Long, so it is made only when it is asked for."""
    metadata = _metadata(region)
    kinds = ("fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "personal_number", "voip", "pager", "uan", "voicemail")
    known = (getattr(metadata, kind) for kind in kinds)
    patterns = (kind.national_number_pattern for kind in known if kind is not None)
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns if pattern))


def _metadata(region: str) -> Any:
    metadata = _library().PhoneMetadata.metadata_for_region(region, None)
    if metadata is None:
        raise ValueError(f"no phone numbers are known for region {region}")
    return metadata


@cache
def _library() -> Any:
    import phonenumbers

    return phonenumbers
