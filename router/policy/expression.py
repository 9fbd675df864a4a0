"""A condition in CEL: compiled once, checked as far as can be before it is used, and true, false or unknown when it is.

A value that is not known makes what needs it unknown, and no more: `unknown || true` is true, `unknown && false` is false, and the
same in the other order. The library (cel, in Rust) computes that by itself: to CEL an unknown value is an error that && and || absorb.

Work is bounded before the first request: no loops (macros), few regular expressions, and those without nested repetition.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

Value = bool | int | float | str
Known = Callable[[str], Value | None]  # the value of a variable, None when it is not known; never raises

MAX_PATTERN = 200  # characters of a regular expression; it is compiled at every use
MAX_COUNT = 100  # of a counted repetition
MAX_WORDS = 10  # of all counts behind \w, \s or \p: each is a class of thousands of letters, compiled at every use
_MACROS = ("all", "exists", "exists_one", "filter", "map", "bind")
_OPERATORS = frozenset(
    ("!_", "-_", "_+_", "_-_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_&&_", "_||_", "_?_:_", "@in")
)
FUNCTIONS = ("contains", "double", "endsWith", "int", "matches", "size", "startsWith", "string")
_STRING = re.compile(r"""(?is)r?b?(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|//[^\n]*""")
_LITERAL = re.compile(r"""(?s)\s*r?(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)")\s*\)""")


class ExpressionError(Exception):
    """What is wrong with an expression; `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Outcome:
    """`value` is None when the condition is unknown: for `missing` values, or for what CEL could not compute (`error`)."""

    value: bool | None
    missing: tuple[str, ...] = ()
    error: str = ""  # the kind of error, without any value


@dataclass(frozen=True, slots=True)
class Expression:
    source: str
    names: tuple[str, ...]  # of the variables in it
    patterns: int  # regular expressions in it
    program: Any

    def evaluate(self, known: Known) -> Outcome:
        """Never raises."""
        return Evaluator(known).outcome(self)

    @property
    def constant(self) -> bool | None:
        """True or False when it is so whatever the values are; None when they matter."""
        return self.evaluate(lambda name: None).value


TRUE, FALSE = Outcome(True), Outcome(False)


class Evaluator:
    """Evaluates conditions over the same values, one after the other: for one thread."""

    def __init__(self, known: Known) -> None:
        """`known` says the same of a name each time: an unknown condition is asked again, for what it lacks."""
        self._known = known
        self._context = _cel().Context()
        self._context.set_variable_resolver(known)

    def outcome(self, expression: Expression) -> Outcome:
        """Never raises."""
        try:
            value = expression.program.execute(self._context)
        except Exception as error:
            missing = self._missing(expression)
            return Outcome(None, missing, "" if missing else type(error).__name__)
        if value is True:
            return TRUE
        if value is False:
            return FALSE
        return Outcome(None, error=f"a {type(value).__name__} instead of a bool")

    def _missing(self, expression: Expression) -> tuple[str, ...]:
        """What an unknown condition asked for and did not get, in order; most conditions are known, and pay nothing for this."""
        missing: dict[str, None] = {}

        def noting(name: str) -> Value | None:
            value = self._known(name)
            if value is None:
                missing[name] = None
            return value

        context = _cel().Context()
        context.set_variable_resolver(noting)
        try:
            expression.program.execute(context)
        except Exception:
            return tuple(missing)
        return tuple(missing)


def compile_expression(source: str) -> Expression:
    """Compile. Raises ExpressionError when it does not parse, calls what there is not, or may take long."""
    try:
        program = _cel().compile(source)
        names, functions = tuple(program.variables()), program.functions()
    except Exception as error:
        raise ExpressionError(f"is no CEL: {first_line(error)}", _instead(source)) from None
    unquoted = bare(source)
    for macro in _MACROS:
        if re.search(rf"\.\s*{macro}\s*\(", unquoted):
            raise ExpressionError(f"loops with {macro}(), which is not served", "a condition compares single values")
    for function in functions:
        if function not in _OPERATORS and function not in FUNCTIONS:
            raise ExpressionError(f"calls {function}(), which is not served", f"there are {', '.join(FUNCTIONS)}")
    return Expression(source, names, _check_patterns(source), program)


def _check_patterns(source: str) -> int:
    """Count the regular expressions. Raises ExpressionError for one that is not written out, is long, or repeats a repetition."""
    source = uncommented(source)
    strings = [(found.start(), found.end()) for found in _STRING.finditer(source)]
    count = 0
    for call in re.finditer(r"\bmatches\s*\(", source):
        if any(start <= call.start() < end for start, end in strings):
            continue
        count += 1
        literal = _LITERAL.match(source, call.end())
        if literal is None:
            raise ExpressionError("calls matches() with a pattern that is not written out", "write user.matches('...')")
        pattern = (literal[1] if literal[1] is not None else literal[2]).replace("\\\\", "\\")
        if len(pattern) > MAX_PATTERN:
            raise ExpressionError(f"has a pattern of {len(pattern)} characters", f"up to {MAX_PATTERN} are served")
        if _blows_up(pattern):
            raise ExpressionError("has a pattern that repeats a repetition", f"no (a+)+, and no count above {MAX_COUNT}")
        if _counted_words(pattern) > MAX_WORDS:
            raise ExpressionError(
                "has a pattern that counts too many letters of any script", "[A-Za-z0-9]{20} costs less than a counted letter of any script"
            )
    return count


def _blows_up(pattern: str) -> bool:
    """Whether something that repeats is itself repeated, or a count is high. The library takes linear time even so."""
    pattern = re.sub(r"\\.|\[[^\]]*\]", "x", pattern)
    counts = [number for pair in re.findall(r"\{(\d*),?(\d*)\}", pattern) for number in pair if number]
    if any(len(number) > 3 or int(number) > MAX_COUNT for number in counts) or re.search(r"[*+}][*{]", pattern):
        return True
    repeats = [False]  # per open group: whether there is a repetition in it
    for sign, following in zip(pattern, pattern[1:] + " ", strict=True):
        if sign == "(":
            repeats.append(False)
        elif sign == ")" and len(repeats) > 1:
            inner = repeats.pop()
            if inner and following in "*+{":
                return True
            repeats[-1] = repeats[-1] or inner
        elif sign in "*+{":
            repeats[-1] = True
    return False


def _counted_words(pattern: str) -> int:
    """The sum of the counts that stand behind a class of any script (w, s, p and their opposites), alone or in brackets."""
    counted = re.findall(r"(?:\\[wWsSpP](?:\{\w+\})?|\[[^\]]*\\[wWsSpP][^\]]*\])\)?\{(\d+),?(\d*)\}", pattern)
    return sum(int(most or least) for least, most in counted)


def bare(source: str) -> str:
    """Without comments and what is in quotes."""
    return _STRING.sub("''", uncommented(source))


def uncommented(source: str) -> str:
    return _STRING.sub(lambda found: " " if found[0].startswith("//") else found[0], source)


_ELSEWHERE = {  # how other languages write it: how CEL does
    r"\band\b": "and is written &&",
    r"\bor\b": "or is written ||",
    r"\bnot\b": "not is written !",
    r"(?<![=!<>])=(?!=)": "equality is written ==",
    r"[0-9]\s*%(?!\s*[\w(])": "20 % is written 0.2",
    r"<>": "inequality is written !=",
}


def _instead(source: str) -> str:
    """A hint for a condition that does not parse."""
    unquoted = bare(source)
    meant = [hint for pattern, hint in _ELSEWHERE.items() if re.search(pattern, unquoted)]
    return ", ".join(meant) or "see docs/policy.md for conditions that are"


def first_line(error: Exception) -> str:
    """An error of the library, short: its first line says what, the others draw where."""
    line = str(error).splitlines()[0] if str(error) else type(error).__name__
    line = line.rpartition("ERROR: <input>:")[2] if "ERROR: <input>:" in line else line
    return line if len(line) <= 160 else line[:160] + "..."


@cache
def _cel() -> Any:
    """The library without its command line, whose import takes ten times as long (rich, prompt_toolkit, pygments)."""
    from importlib.machinery import PathFinder
    from importlib.util import find_spec, module_from_spec

    name = "cel.cel"
    if name not in sys.modules and (package := find_spec("cel")) is not None:
        spec = PathFinder.find_spec(name, package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            sys.modules[name] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
    if name not in sys.modules:
        import cel

        return cel
    return sys.modules[name]
