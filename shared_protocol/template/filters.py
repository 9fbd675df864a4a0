"""The filters and tests of chat templates: Jinja2's, bounded, or not there at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from typing import Any

from jinja2 import filters as jinja
from jinja2.tests import TESTS as JINJA_TESTS

from .bounds import before_format, before_join, before_method, before_operator, before_replace, text_of
from .fuel import meter

Function = Callable[..., Any]


def _trim(value: object, chars: str | None = None) -> str:
    text = text_of(value)
    if chars is not None:
        before_method(text, "strip", (chars,), {})
    return text.strip(chars)


def _replace(value: object, old: object, new: object, count: int | None = None) -> str:
    text, old_text, new_text = text_of(value), text_of(old), text_of(new)
    before_replace(text, old_text, new_text)
    return text.replace(old_text, new_text, -1 if count is None else count)


def _center(value: object, width: int = 80) -> str:
    meter().text(max(width, 0))
    return text_of(value).center(width)


def _indent(value: object, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    text = text_of(value)
    step = len(width) if isinstance(width, str) else max(width, 0)
    meter().text(len(text) + step * (text.count("\n") + 1))
    margin = width if isinstance(width, str) else " " * width
    lines = text.split("\n")
    return "\n".join(margin + line if (number or first) and (line or blank) else line for number, line in enumerate(lines))


def _format(pattern: object, *args: object, **kwargs: object) -> str:
    text = text_of(pattern)
    before_format(text, *args, *kwargs.values())
    return text % (kwargs or args)


def _join(values: Iterable[object], separator: object = "", attribute: str | None = None) -> str:
    parts = [text_of(part if attribute is None else _attribute(part, attribute)) for part in values]
    glue = text_of(separator)
    before_join(glue, parts)
    return glue.join(parts)


def _attribute(value: object, name: str) -> object:
    return value.get(name, "") if isinstance(value, dict) else ""


def _list(values: Iterable[object]) -> list[object]:
    if isinstance(values, str):
        meter().items(len(values))
    return meter().collect(values)


def _sum(values: Iterable[object], attribute: str | None = None, start: int | float = 0) -> int | float:
    total = start
    for part in meter().collect(values):
        value = part if attribute is None else _attribute(part, attribute)
        if not isinstance(value, int | float) or not isinstance(total, int | float):
            raise TypeError("only numbers can be summed")
        before_operator("+", total, value)
        total += value
    return total


def _int(value: object, default: int = 0, base: int = 10) -> int:
    if isinstance(value, str):
        meter().number(4 * len(value))
    return jinja.do_int(value, default, base)


def _round(value: float, precision: int = 0, method: Any = "common") -> float:
    if abs(precision) > 100:
        raise ValueError("a precision of more than 100")
    return jinja.do_round(value, precision, method)


def _tojson(
    value: object,
    indent: int | None = None,
    ensure_ascii: bool = False,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As the templates' authors had it: no HTML escapes, other scripts left as they are."""
    meter().weigh(value, separators)
    if isinstance(indent, int) and indent > 16:
        raise ValueError("an indent of more than 16")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def slice_of(value: Any, start: object = None, stop: object = None, step: object = None) -> Any:
    meter().glance(value)
    return value[start:stop:step]


def concatenate(parts: list[object]) -> str:
    texts = [text_of(part) for part in parts]
    before_join("", texts)
    return "".join(texts)


def _paid(function: Function, deep: bool) -> Function:
    """Charge a filter for its call, its operands (all of them, or none) and its result; lists in place of generators."""

    @wraps(function)
    def paid(*args: Any, **kwargs: Any) -> Any:
        fuel = meter()
        fuel.spend(1)
        if deep:
            fuel.weigh(*(value for value in (*args, *kwargs.values()) if isinstance(value, str | list | tuple | dict | int)))
        result = function(*args, **kwargs)
        if isinstance(result, Iterator):
            return fuel.collect(result)
        fuel.glance(result)
        return result

    return paid


def _on_text(method: Callable[[str], str]) -> Function:
    return lambda value: method(text_of(value))


_OWN: Mapping[str, Function] = {
    "upper": _on_text(str.upper),
    "lower": _on_text(str.lower),
    "capitalize": _on_text(str.capitalize),
    "title": _on_text(jinja.do_title),
    "string": text_of,
    "safe": text_of,
    "trim": _trim,
    "replace": _replace,
    "center": _center,
    "indent": _indent,
    "format": _format,
    "join": _join,
    "list": _list,
    "sum": _sum,
    "int": _int,
    "round": _round,
    "tojson": _tojson,
}
_SHALLOW = (
    "default",
    "d",
    "first",
    "last",
    "length",
    "count",
    "items",
    "map",
    "select",
    "reject",
    "selectattr",
    "rejectattr",
    "reverse",
    "attr",
)
_DEEP = ("abs", "float", "sort", "dictsort", "unique", "min", "max")

FILTERS: Mapping[str, Function] = {
    **{name: _paid(function, deep=False) for name, function in _OWN.items()},
    **{name: _paid(jinja.FILTERS[name], deep=False) for name in _SHALLOW},
    **{name: _paid(jinja.FILTERS[name], deep=True) for name in _DEEP},
}

_JINJA_TESTS: Mapping[str, Any] = JINJA_TESTS
# fmt: off
_CHEAP_TESTS = (
    "boolean", "callable", "defined", "even", "false", "float", "integer", "iterable", "mapping", "none", "number", "odd", "sameas",
    "sequence", "string", "true", "undefined",
)
_DEEP_TESTS = (
    "==", "!=", "<", "<=", ">", ">=", "eq", "equalto", "ne", "lt", "lessthan", "le", "gt", "greaterthan", "ge", "in", "divisibleby",
    "lower", "upper",
)
# fmt: on
TESTS: Mapping[str, Function] = {
    **{name: _JINJA_TESTS[name] for name in _CHEAP_TESTS},
    **{name: _paid(_JINJA_TESTS[name], deep=True) for name in _DEEP_TESTS},
}
