"""What Python's methods and operators would cost a chat template: paid, or refused, before they run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from jinja2.exceptions import SecurityError

from .fuel import meter

# A width, a precision or a repetition that could blow a text up: four digits in a row, a star, or a field inside a field.
_DANGEROUS_FORMAT = re.compile(r"[0-9]{4}|\*|\{[^{}]*\{")
MAX_NUMBER_TEXT = 1500  # characters of a number of MAX_BITS, or of a field with the largest width
_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def text_of(value: object) -> str:
    """`str(value)` of plain data, paid for. SecurityError for anything else."""
    meter().weigh(value)
    if isinstance(value, str):
        return value
    text = str(value)
    meter().text(len(text))
    return text


def before_format(pattern: str, *values: object) -> None:
    """Pay for `pattern` filled with `values`: at worst every field holds all of them."""
    if _DANGEROUS_FORMAT.search(pattern):
        raise SecurityError("a format has a width of four digits or a star, or a field inside a field")
    fields = pattern.count("%") + pattern.count("{")
    meter().text(len(pattern) + fields * (meter().weigh(*values) + MAX_NUMBER_TEXT))


# --- methods of strings, lists and dicts -----------------------------------------------------------------------------------

# fmt: off
METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset({
        "capitalize", "casefold", "center", "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal",
        "isdigit", "isidentifier", "islower", "isnumeric", "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip", "partition",
        "removeprefix", "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines",
        "startswith", "strip", "swapcase", "title", "upper", "zfill",
    }),
    list: frozenset({"count", "index"}),
    tuple: frozenset({"count", "index"}),
    dict: frozenset({"get", "items", "keys", "values"}),
}
# fmt: on


def before_method(owner: object, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    """Pay for a method's operands, and refuse before it builds something large."""
    fuel = meter()
    if isinstance(owner, dict):
        fuel.weigh(*args, *kwargs.values())
        fuel.items(len(owner) if name != "get" else 1)
        return
    fuel.weigh(owner, *args, *kwargs.values())
    if not isinstance(owner, str):
        return
    first = args[0] if args else None
    if name == "join" and args:
        before_join(owner, args[0])
    elif name == "replace" and len(args) >= 2:
        before_replace(owner, *args[:2])
    elif name in ("center", "ljust", "rjust", "zfill") and isinstance(first, int):
        fuel.text(max(first, len(owner)))
    elif name in ("split", "rsplit"):
        separator = kwargs.get("sep", first)
        fuel.items((owner.count(separator) if isinstance(separator, str) and separator else len(owner) // 2) + 1)
    elif name == "splitlines":
        fuel.items(sum(map(owner.count, _LINE_ENDS)) + 1)
    if name in ("strip", "lstrip", "rstrip", "rfind", "rindex", "rsplit", "rpartition") and isinstance(first, str):
        fuel.spend(len(owner) * len(first) // 1024)  # Python compares them character by character


def before_join(separator: str, parts: object) -> None:
    if isinstance(parts, Iterable):
        lengths = [len(part) if isinstance(part, str) else 0 for part in parts]
        meter().text(sum(lengths) + len(separator) * len(lengths))


def before_replace(text: str, old: object, new: object) -> None:
    if isinstance(old, str) and isinstance(new, str):
        meter().text(len(text) + text.count(old) * max(0, len(new) - len(old)))


# --- operators -------------------------------------------------------------------------------------------------------------


def before_operator(operator: str, left: object, right: object) -> None:
    """Pay for `left operator right`, and refuse before it builds something large."""
    fuel = meter()
    fuel.spend(1)
    if isinstance(left, int) and isinstance(right, int):
        fuel.number(max(left.bit_length(), right.bit_length()))
        if operator == "*":
            fuel.number(left.bit_length() + right.bit_length())
        elif operator == "**":
            fuel.number(left.bit_length() * max(right, 0))
    elif operator == "%" and isinstance(left, str):
        before_format(left, right)
    elif operator == "*":
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str) and isinstance(times, int):
                fuel.text(len(sequence) * max(times, 0))
            elif isinstance(sequence, list | tuple) and isinstance(times, int):
                fuel.items(len(sequence) * max(times, 0))
    elif operator == "+":
        if isinstance(left, str) and isinstance(right, str):
            fuel.text(len(left) + len(right))
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
            fuel.items(len(left) + len(right))
