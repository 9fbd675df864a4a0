"""Graphs as text: to read, to compare, to keep. One operation a line, what it makes on the left; the body of a fused one is indented.

    graph "step" {
      input %x: f32[1,64]
      constant %w: f32[96,64]
      state %keys -> %keys.after
      %normed: f32[1,64] = rms_norm(%x, %gain) {eps = 1e-05}
      %y: f32[1,96] = fused(%normed, %w) {
        %t: f32[1,96] = linear(%normed, %w)
        %y: f32[1,96] = silu(%t)
      }
      output %y
    }

Blank lines, and those that begin with //, say nothing. Reading gives the very graph that was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...shared_protocol.compile_errors import GraphInvalid
from .graph import Graph, check_op, make
from .op import Attribute, Op
from .value import Value

_VALUE = re.compile(r"%([^\s%\"(){}=,:]+): (\w+)\[([\d,]*)\]")
_OP = re.compile(r"(?P<made>%.*?) = (?P<kind>\w+)\((?P<read>[^()]*)\)(?: (?P<rest>\{.*))?")
_ATTRIBUTE = re.compile(r"(\w+) = (\"(?:[^\"\\]|\\.)*\"|\([\d, -]*\)|[^\s,\"()]+)(?:, |$)")
_WHOLE = re.compile(r"-?\d+")
_COMMENT = "//"
_DEEPEST = 32  # fused operations within one another


def to_text(graph: Graph) -> str:
    lines = [f"graph {json.dumps(graph.name)} {{"]
    lines += [f"  input %{value}" for value in graph.inputs]
    lines += [f"  constant %{value}" for value in graph.constants]
    lines += [f"  state %{before} -> %{after}" for before, after in graph.states]
    for op in graph.ops:
        lines += _op_lines(op, "  ")
    lines += [f"  output %{value.name}" for value in graph.outputs]
    return "\n".join([*lines, "}", ""])


def from_text(text: str) -> Graph:
    """The graph of a text. Raises GraphInvalid with the number of the line at fault."""
    return _Reader(text).graph()


def _op_lines(op: Op, indent: str) -> Iterator[str]:
    made, read = ", ".join(f"%{value}" for value in op.outputs), ", ".join(f"%{value.name}" for value in op.inputs)
    attributes = ", ".join(f"{name} = {_attribute(value)}" for name, value in op.attributes)
    yield f"{indent}{made} = {op.kind}({read})" + (" {" if op.body else f" {{{attributes}}}" if attributes else "")
    for inner in op.body:
        yield from _op_lines(inner, f"{indent}  ")
    if op.body:
        yield f"{indent}}}"


def _attribute(value: Attribute) -> str:
    if isinstance(value, str):
        return json.dumps(value)
    return repr(float(value)) if isinstance(value, float) else repr(value)


class _Reader:
    """The lines of a text, one after the other."""

    def __init__(self, text: str) -> None:
        numbered = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1)]
        self.lines = [(number, line) for number, line in numbered if line and not line.startswith(_COMMENT)]
        self.at = 0
        self.end = len(numbered)

    def next(self) -> tuple[int, str]:
        if self.at == len(self.lines):
            raise GraphInvalid(f"line {self.end}: the text ends before the graph does", hint="a } is missing")
        self.at += 1
        return self.lines[self.at - 1]

    def graph(self) -> Graph:
        known: dict[str, Value] = {}
        overwritten: set[str] = set()
        declared: dict[str, list[Value]] = {"input": [], "constant": [], "output": []}
        ops: list[Op] = []
        states: list[tuple[str, str]] = []
        number, line = self.next()
        with _at(number):
            name = _beginning(line)
        while (found := self.next())[1] != "}":
            number, line = found
            word, _, rest = line.partition(" ")
            with _at(number):
                if word == "output":
                    declared[word].append(_known(rest, known))
                elif word in declared:
                    declared[word].append(make(known, _value(rest)))
                elif word == "state":
                    states.append(_state(rest))
            if word not in declared and word != "state":
                ops.append(self._op(number, line, known, overwritten, 0))
        if self.at < len(self.lines):
            raise GraphInvalid(f"line {self.lines[self.at][0]}: there is more text after the graph's end")
        with _at(found[0]):
            inputs, constants, outputs = map(tuple, declared.values())
            return Graph(name, inputs, constants, tuple(ops), outputs, tuple(states))

    def _op(self, number: int, line: str, known: dict[str, Value], overwritten: set[str], depth: int) -> Op:
        """The operation of a line, its body with it; what it makes is then known."""
        with _at(number):
            match = _OP.fullmatch(line)
            if depth >= _DEEPEST:
                raise GraphInvalid(f"there are more than {_DEEPEST} fused operations within one another")
            if match is None:
                raise GraphInvalid(f"{line!r:.80} is no operation", hint="as in: %y: f32[1,96] = linear(%x, %w) {name = 1}")
            outputs = tuple(_value(part) for part in match["made"].split(", "))
            inputs = tuple(_known(part, known) for part in match["read"].split(", ") if part)
            rest = match["rest"] or "{}"
            attributes = _attributes(rest) if rest != "{" else ()
        body: list[Op] = []
        if rest == "{":
            inside, gone = {value.name: value for value in inputs}, set(overwritten)
            while (found := self.next())[1] != "}":
                body.append(self._op(*found, inside, gone, depth + 1))
        op = Op(match["kind"], inputs, outputs, attributes, tuple(body))
        with _at(number):
            check_op(op, known, overwritten)
        return op


@contextmanager
def _at(number: int) -> Iterator[None]:
    """What is found to be wrong is so in this line."""
    try:
        yield
    except GraphInvalid as error:
        raise GraphInvalid(f"line {number}: {error.message}", hint=error.hint) from None


def _beginning(line: str) -> str:
    """The graph's name."""
    if not (line.startswith("graph ") and line.endswith(" {")):
        raise GraphInvalid(f"{line!r:.80} is no beginning", hint='as in: graph "name" {')
    return _string(line[len("graph ") : -len(" {")])


def _value(text: str) -> Value:
    match = _VALUE.fullmatch(text)
    if match is None:
        raise GraphInvalid(f"{text!r:.80} is no value", hint="as in: %x: f32[1,64]")
    name, dtype, shape = match.groups()
    return Value(name, tuple(_sizes(shape)), dtype)  # type: ignore[arg-type]  # the value checks it


def _sizes(text: str) -> Sequence[int]:
    parts = text.split(",") if text else []
    if not all(part and len(part) < 16 for part in parts):
        raise GraphInvalid(f"[{text:.80}] is no shape")
    return [int(part) for part in parts]


def _known(text: str, known: dict[str, Value]) -> Value:
    value = known.get(text.removeprefix("%"))
    if value is None or not text.startswith("%"):
        raise GraphInvalid(f"there is nothing named {text!r:.80} before it")
    return value


def _state(text: str) -> tuple[str, str]:
    before, arrow, after = text.partition(" -> ")
    if not (arrow and before.startswith("%") and after.startswith("%")):
        raise GraphInvalid(f"{text!r:.80} is no state", hint="as in: state %keys -> %keys.after")
    return before[1:], after[1:]


def _attributes(text: str) -> tuple[tuple[str, Attribute], ...]:
    """Of {name = value, ...}."""
    inside, found, at = text[1:-1], list[tuple[str, Attribute]](), 0
    if not text.endswith("}"):
        raise GraphInvalid(f"{text!r:.80} has no end")
    while at < len(inside):
        match = _ATTRIBUTE.match(inside, at)
        if match is None:
            raise GraphInvalid(f"{inside[at:]!r:.80} is no attribute", hint="as in: {eps = 1e-05, window = 24}")
        found.append((match[1], _constant(match[2])))
        at = match.end()
    return tuple(found)


def _constant(text: str) -> Attribute:
    if text.startswith('"'):
        return _string(text)
    if text.startswith("("):
        parts = [part.strip() for part in text[1:-1].split(",")]
        return tuple(_whole(part) for part in parts if part)
    if _WHOLE.fullmatch(text):
        return _whole(text)
    try:
        return float(text)
    except ValueError:
        raise GraphInvalid(f"{text!r:.80} is no number") from None


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text) or len(text) > 20:
        raise GraphInvalid(f"{text!r:.80} is no whole number of at most 20 digits")
    return int(text)


def _string(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise GraphInvalid(f"{text!r:.80} is no string in quotes")
    return value
