"""Chat templates: messages to the text of a prompt, and which parts of it are the users' own words.

A special token's text inside a message must stay text. Before rendering it is swapped for a placeholder that nobody can guess; after
it, each placeholder is put back and its place noted:

    content    Say <|im_end|> twice
    rendered   <|im_start|>user\\nSay 7302…41000000 twice<|im_end|>
    text       <|im_start|>user\\nSay <|im_end|> twice<|im_end|>
    literal                          ^^^^^^^^^^ matches no special; the last one does
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.exceptions import TemplateError as JinjaError

from ..errors import TemplateError
from .fuel import MAX_DEPTH, Meter, OutOfFuel, RenderLimits, metered
from .sandbox import HelperFunction, compile_template

_NONCE_DIGITS, _INDEX_DIGITS = 39, 6  # digits survive every case change, trim and JSON
# fmt: off
_TYPE_NAMES = (
    "str", "list", "dict", "tuple", "int", "float", "bool", "None", "range", "Undefined", "LoopContext", "Namespace", "Macro",
    "TemplateReference", "method", "function", "builtin_function_or_method", "HelperFunction",
)
# fmt: on
_DATE_FORMAT = re.compile(r"(?:[^%]|%-?[a-zA-Z%]){0,64}")


@dataclass(frozen=True, slots=True)
class Rendered:
    text: str
    literal_spans: tuple[tuple[int, int], ...]  # (start, end) in characters, ascending, apart: no special may match there


class _Raised(Exception):
    """The template called `raise_exception`."""


def render(
    template: str,
    messages: Sequence[Mapping[str, object]],
    *,
    tools: Sequence[Mapping[str, object]] | None = None,
    add_generation_prompt: bool = True,
    bos_token: str = "",
    eos_token: str = "",
    specials: Sequence[str] = (),
    variables: Mapping[str, object] | None = None,
    now: datetime | None = None,
    limits: RenderLimits | None = None,
) -> Rendered:
    """Render a chat template on plain data. `specials` are the texts that the tokenizer would match; `variables` further names for
    the template; `now` is what `strftime_now` formats, which does not exist without it.

    Raises TemplateError: with the template's own sentence when it refuses the messages, else saying which limit or rule it broke.
    """
    limits = limits or RenderLimits()
    if len(template) > limits.max_template:
        raise TemplateError(f"the chat template has {len(template)} characters, the limit is {limits.max_template}")
    words = _UserWords(specials, [template, *_strings([messages, tools, variables])])
    names: dict[str, object] = {
        **{str(name): words.hide(value) for name, value in (variables or {}).items()},
        "messages": words.hide(messages),
        "tools": words.hide(tools),
        "add_generation_prompt": add_generation_prompt,
        "bos_token": bos_token,
        "eos_token": eos_token,
        "raise_exception": HelperFunction("raise_exception", _raise),
    }
    if now is not None:
        names["strftime_now"] = HelperFunction("strftime_now", lambda pattern: _strftime(now, pattern))
    try:
        program = compile_template(template)
        with metered(limits) as fuel:
            return words.restore(_joined(program.root_render_func(program.new_context(names)), fuel))
    except _Raised as raised:
        raise TemplateError(f"the chat template refuses these messages: {_known_part(str(raised), template)}", param="messages") from None
    except OutOfFuel as stop:
        raise TemplateError(f"the chat template was stopped: {stop}") from None
    except TemplateSyntaxError as error:
        raise TemplateError(f"the chat template is not valid at line {error.lineno}: {error.message}") from None
    except SecurityError as error:
        raise TemplateError(f"the chat template reached for something forbidden: {_known_message(error, template)}") from None
    except UndefinedError as error:
        raise TemplateError(f"the chat template misses something in these messages: {_known_message(error, template)}") from None
    except TypeError as error:  # Python's own sentences about types name no values
        raise TemplateError(f"the chat template does not fit these messages: {error}") from None
    except (JinjaError, RecursionError, MemoryError, ArithmeticError, ValueError, LookupError, SyntaxError, AttributeError) as error:
        raise TemplateError(f"the chat template failed: {type(error).__name__}") from None


def _joined(pieces: Iterable[str], fuel: Meter) -> str:
    """Collect the output, which is capped while it is written."""
    parts, length = [], 0
    for piece in pieces:
        length += len(piece)
        if length > fuel.limits.max_output:
            raise OutOfFuel(f"it writes more than {fuel.limits.max_output} characters")
        parts.append(piece)
    return "".join(parts)


class _UserWords:
    """Hides the specials in the users' strings, and finds them again in the output."""

    def __init__(self, specials: Sequence[str], everything: Sequence[str]) -> None:
        self._specials = [special for special in specials if special]
        alternatives = "|".join(re.escape(special) for special in sorted(self._specials, key=len, reverse=True))
        self._pattern = re.compile(alternatives) if alternatives else None
        self._hidden: list[str] = []
        digest = hashlib.sha256()
        for string in everything:  # whoever would forge a placeholder must put the hash of a text into the text
            digest.update(b"%d:" % len(string) + string.encode("utf-8", "surrogatepass"))
        self._nonce = str(int.from_bytes(digest.digest()[:16], "little")).zfill(_NONCE_DIGITS)

    def hide(self, value: object, depth: int = 0) -> object:
        """A plain copy of `value`, specials in its strings and keys replaced. TemplateError for anything that is no data."""
        if isinstance(value, str):
            return self._hide_text(str(value))
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth >= MAX_DEPTH:
            raise TemplateError(f"the messages nest deeper than {MAX_DEPTH}", param="messages")
        if isinstance(value, Mapping):
            return {self.hide(key, depth + 1): self.hide(part, depth + 1) for key, part in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            return [self.hide(part, depth + 1) for part in value]
        raise TemplateError(f"a message holds a {type(value).__name__}, which is no data", param="messages")

    def _hide_text(self, text: str) -> str:
        spans = self._spans(text)
        if not spans:
            return text
        parts, at = [], 0
        for start, end in spans:
            parts += [text[at:start], self._nonce, str(len(self._hidden)).zfill(_INDEX_DIGITS)]
            self._hidden.append(text[start:end])
            at = end
        if len(self._hidden) >= 10**_INDEX_DIGITS:
            raise TemplateError(f"the messages hold more than {10**_INDEX_DIGITS} special tokens' texts", param="messages")
        return "".join([*parts, text[at:]])

    def _spans(self, text: str) -> list[tuple[int, int]]:
        """Where specials lie in `text`, and where one could form with what the template puts before or behind it."""
        if self._pattern is None:
            return []
        spans = [match.span() for match in self._pattern.finditer(text)]
        start, end = len(text) - len(text.lstrip()), len(text.rstrip())  # templates may strip
        if head := max(_overlap(special, text[start : start + len(special)]) for special in self._specials):
            spans.append((start, start + head))
        if tail := max(_overlap(text[max(0, end - len(special)) : end], special) for special in self._specials):
            spans.append((end - tail, end))
        merged: list[tuple[int, int]] = []
        for begin, finish in sorted(spans):
            if merged and begin < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(finish, merged[-1][1]))
            else:
                merged.append((begin, finish))
        return merged

    def restore(self, text: str) -> Rendered:
        """Put the hidden texts back and note their places."""
        parts, spans, length, at = [], [], 0, 0
        while (found := text.find(self._nonce, at)) >= 0:
            after = found + _NONCE_DIGITS + _INDEX_DIGITS
            number = text[found + _NONCE_DIGITS : after]
            if not (len(number) == _INDEX_DIGITS and number.isdecimal() and int(number) < len(self._hidden)):
                raise _cut_through()
            literal = self._hidden[int(number)]
            parts += [text[at:found], literal]
            length += found - at + len(literal)
            spans.append((length - len(literal), length))
            at = after
        restored = "".join([*parts, text[at:]])
        if self._nonce[:12] in restored or self._nonce[-12:] in restored:
            raise _cut_through()
        return Rendered(restored, tuple(spans))


def _cut_through() -> TemplateError:
    return TemplateError("the chat template cuts through a special token's text in the messages", param="messages")


def _overlap(left: str, right: str) -> int:
    """Length of the longest end of `left` that is a beginning of `right`."""
    return next((size for size in range(min(len(left), len(right)), 0, -1) if right.startswith(left[len(left) - size :])), 0)


def _strings(values: object) -> list[str]:
    """Every string in plain data, in a fixed order."""
    found, stack = [], [(values, 0)]
    while stack:
        value, depth = stack.pop()
        if isinstance(value, str):
            found.append(value)
        elif depth <= MAX_DEPTH and isinstance(value, Mapping):
            stack.extend((part, depth + 1) for pair in value.items() for part in pair)
        elif depth <= MAX_DEPTH and isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
            stack.extend((part, depth + 1) for part in value)
    return found


def _raise(message: object = "") -> None:
    raise _Raised(str(message))


def _strftime(now: datetime, pattern: object) -> str:
    if not isinstance(pattern, str) or not _DATE_FORMAT.fullmatch(pattern):
        raise SecurityError("a date format is at most 64 plain fields")
    return now.strftime(pattern)


def _known_part(message: str, template: str) -> str:
    """As much of a message as stands in the template: what follows may be a user's words, which belong in no error."""
    size = next((size for size in range(min(len(message), 300), 0, -1) if message[:size] in template), 0)
    return message[:size] + ("…" if size < len(message) else "")


def _known_message(error: JinjaError, template: str) -> str:
    """Jinja2's sentence, when the names in it stand in the template."""
    message = error.message or type(error).__name__
    quoted = re.findall(r"'([^']*)'", message)
    known = all(name in template or name.removesuffix(" object") in _TYPE_NAMES for name in quoted)
    return message[:300] if known else type(error).__name__
