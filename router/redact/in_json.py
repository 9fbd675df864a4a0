"""Replaces values inside a JSON text, which stays one: arguments of a tool call, the description of a tool."""

from __future__ import annotations

import json
import re
from collections import deque

import msgspec

from ..detect.finding import Finding
from .replacer import Replacer

_LEAF = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*')


def replace_in_json(text: str, replacer: Replacer) -> str:
    """`text` with every string and number that holds a value rewritten, as a string, and all else as it was; a text that is no JSON
    is replaced as any other.

    Keys and values are searched together, one after the other: that "phone" stands before a number says what the number is.
    """
    leaves = _leaves(text)
    if leaves is None:
        return replacer.in_text(text)
    found = deque(replacer.spans(leaves_of(text)))
    pieces, at, begin = [], 0, 0
    for (start, end), leaf in leaves:
        inside = []
        while found and found[0].start < begin + len(leaf):
            one = found.popleft()
            inside.append(Finding(one.kind, max(one.start - begin, 0), min(one.end - begin, len(leaf))))
            if one.end > begin + len(leaf):  # it goes on in the next leaf
                found.appendleft(Finding(one.kind, begin + len(leaf) + 1, max(one.end, begin + len(leaf) + 1)))
                break
        begin += len(leaf) + 1
        inside = [one for one in inside if one.start < one.end]
        if inside:
            pieces += [text[at:start], _quoted(replacer.at(leaf, inside))]
            at = end
    return "".join([*pieces, text[at:]])


def leaves_of(text: str) -> str:
    """Its keys, strings and numbers as one text, in the order in which they are written; a text that is no JSON as it is."""
    leaves = _leaves(text)
    return text if leaves is None else "\n".join(leaf for _, leaf in leaves)


def _leaves(text: str) -> list[tuple[tuple[int, int], str]] | None:
    """Where each stands, and what it says; None for what is no JSON."""
    try:
        msgspec.json.decode(text)
        return [(match.span(), _leaf(match[0])) for match in _LEAF.finditer(text)]
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def _leaf(written: str) -> str:
    """A string without its escapes; a number as it is written."""
    return str(json.loads(written)) if written[0] == '"' else written


def _quoted(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half a pair of surrogates, which JSON can only write as an escape
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)
