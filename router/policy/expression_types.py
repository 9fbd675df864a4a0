"""Whether a condition makes sense for the variables in it: tried out, since CEL's library checks no types before it runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from .expression import Expression, ExpressionError, Value, bare, first_line, uncommented


def check_types(expression: Expression, samples: Mapping[str, tuple[Value, ...]], closed: Collection[str] = ()) -> None:
    """Compare and evaluate with combinations of `samples` (values per variable, of its one type; all there are of the `closed` ones).

    Raises ExpressionError where a variable is compared to a constant of another type (which CEL calls merely unequal), where it fails,
    and where it is no truth value.
    """
    for name, constant in _COMPARED.findall(bare(expression.source)):
        kind = type(samples[name][0]) if name in samples else None
        if kind is not None and _constant(constant) != _TYPES[kind]:
            raise ExpressionError(
                f"compares {name}, a {_TYPES[kind]}, with a {_constant(constant)}", "texts stand in quotes, numbers do not"
            )
    for name, listed in _CHOSEN.findall(uncommented(expression.source)):
        for word in re.findall(r"'([^']*)'", listed) if name in closed else ():
            if word not in samples[name]:
                hint = "it is one of " + ", ".join(str(value) for value in samples[name])
                raise ExpressionError(f"compares {name} with '{word}', which it never is", hint)
    computed, failed = False, ""
    for known in _combinations(expression, samples):
        try:
            value = expression.program.execute(known)
        except (ArithmeticError, LookupError) as error:
            failed = first_line(error)
            continue  # of these values only: unknown when it happens
        except Exception as error:
            if isinstance(error, TypeError) and _is_of_nan(expression, known):
                failed = "0.0 / 0.0 is no number"
                continue
            if isinstance(error, TypeError):
                raise ExpressionError(
                    "mixes types that do not go together", "texts stand in quotes, and double(tokens) * 0.5 has numbers of one type"
                ) from None
            raise ExpressionError(f"cannot be computed: {first_line(error)}") from None
        if not isinstance(value, bool):
            raise ExpressionError(f"is a {_TYPES.get(type(value), 'value')}, not true or false", "compare it with something")
        computed = True
    if not computed:
        raise ExpressionError(f"cannot be computed: {failed}")


def _is_of_nan(expression: Expression, known: Mapping[str, Value]) -> bool:
    """Whether the types go together, and only 0.0 / 0.0 compares with nothing: then it can be computed with other numbers than 0.0."""
    if "/" not in expression.source:
        return False
    try:
        expression.program.execute({name: 0.001 if value == 0.0 and isinstance(value, float) else value for name, value in known.items()})
    except Exception:
        return False
    return True


# a variable, a comparison, and the constant or the beginning of a list that it is compared with
_COMPARED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*(?:==|!=|<=|>=|<|>|in\b)\s*\[?\s*(''|-?\d|true\b|false\b)")


# a variable and the texts in single quotes that it is compared with
_CHOSEN = re.compile(r"(?<![\w.'])([A-Za-z_]\w*)\s*(?:==|!=|in\b)\s*('[^'\\\n]*'|\[[^\]]*\])")


def _constant(written: str) -> str:
    return "text" if written == "''" else "truth value" if written in ("true", "false") else "number"


_TYPES = {bool: "truth value", int: "number", float: "number", str: "text", list: "list", dict: "map"}


def always_false(expression: Expression, samples: Mapping[str, tuple[Value, ...]]) -> bool:
    """Whether it is false, or cannot be computed, for everything that is tried: then it probably never is true."""
    return not any(expression.evaluate(known.get).value for known in _combinations(expression, samples))


def _combinations(expression: Expression, samples: Mapping[str, tuple[Value, ...]]) -> Iterator[dict[str, Value]]:
    """Up to 256 ways to set the variables, to their samples and to the constants of the expression and their neighbours."""
    numbers = [float(found) for found in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", bare(expression.source))]
    texts = tuple(text[1:-1] for text in re.findall(r"'[^'\\\n]*'|\"[^\"\\\n]*\"", expression.source))
    choices: dict[str, tuple[Value, ...]] = {}
    for name in expression.names:
        values = samples[name]
        choices[name] = values
        if isinstance(values[0], str):
            choices[name] += texts
        elif not isinstance(values[0], bool):
            known = [float(value) for value in values]
            step = 1.0 if isinstance(values[0], int) else 1e-3
            near = [number + by for number in numbers for by in (-step, 0.0, step)]
            choices[name] += tuple(type(values[0])(number) for number in near if min(known) <= number <= max(known))
    for turn in range(min(256, max(map(len, choices.values()), default=1) ** len(choices))):
        yield {name: values[(turn * step + turn // len(values)) % len(values)] for step, (name, values) in enumerate(choices.items(), 1)}
