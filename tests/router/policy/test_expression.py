"""A condition has three values, and is checked before it is used."""

import threading
from itertools import product

import pytest
from hybrid.router.policy.expression import ExpressionError, Value, compile_expression
from hybrid.router.policy.expression_types import check_types
from hybrid.router.policy.variables import VARIABLES
from hypothesis import given
from hypothesis import strategies as st

KNOWN = {"yes": True, "no": False, "three": 3, "name": "joe"}


def value(source: str, known: dict[str, Value] = KNOWN) -> bool | None:
    return compile_expression(source).evaluate(known.get).value


# Kleene's tables, written out here: what the library must agree with, in every nesting.
def negation(a: bool | None) -> bool | None:
    return None if a is None else not a


def conjunction(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def disjunction(a: bool | None, b: bool | None) -> bool | None:
    return negation(conjunction(negation(a), negation(b)))


TREES = st.recursive(
    st.sampled_from([("true", True), ("yes", True), ("no", False), ("three > 2", True), ("three > 5", False), ("unset", None)])
    | st.sampled_from(
        [("absent > 1", None), ("absent == 'x'", None), ("name == 'joe'", True), ("three / 0 == 1", None), ("name > 3", None)]
    ),
    lambda inner: (
        st.tuples(inner).map(lambda t: (f"!({t[0][0]})", negation(t[0][1])))
        | st.tuples(inner, inner).map(lambda t: (f"({t[0][0]}) && ({t[1][0]})", conjunction(t[0][1], t[1][1])))
        | st.tuples(inner, inner).map(lambda t: (f"({t[0][0]}) || ({t[1][0]})", disjunction(t[0][1], t[1][1])))
    ),
    max_leaves=12,
)


@given(tree=TREES)
def test_true_false_and_unknown_are_joined_as_kleene_says(tree: tuple[str, bool | None]) -> None:
    source, expected = tree
    assert value(source) is expected, source


def test_unknown_neither_wins_nor_loses_where_the_other_side_settles_it() -> None:
    assert value("unset || yes") is True and value("yes || unset") is True
    assert value("unset && no") is False and value("no && unset") is False
    for source in ("unset", "!unset", "unset && yes", "unset || no", "unset == 3", "unset != 3", "unset in [1, 2]", "unset ? yes : no"):
        assert value(source) is None, source


def test_an_outcome_says_what_was_not_known_and_what_could_not_be_computed() -> None:
    outcome = compile_expression("battery < 0.2 && tenant == 'x'").evaluate({}.get)
    assert outcome.value is None and set(outcome.missing) == {"battery", "tenant"} and not outcome.error
    outcome = compile_expression("name > 3").evaluate(KNOWN.get)
    assert (outcome.value, outcome.missing, outcome.error) == (None, (), "TypeError")
    outcome = compile_expression("three + 1").evaluate(KNOWN.get)
    assert outcome.value is None and "int" in outcome.error


def test_a_constant_is_found_whatever_the_values_are() -> None:
    assert compile_expression("true").constant is True
    assert compile_expression("tokens > 1 || true").constant is True
    assert compile_expression("1 > 2").constant is False
    assert compile_expression("tokens > 1").constant is None


@pytest.mark.parametrize(
    "source",
    [
        "",
        "tokens >",
        "'open",
        "(" * 400 + "code" + ")" * 400,
        "[1, 2].exists(i, i > 1)",
        "[1, 2].map(tokens, tokens) == [1, 2]",
        "[1].filter(tokens, true).size() > 0",
        "[1] // a comment hides nothing\n . map(tokens, tokens) == [1]",
        "user.startWith('a')",
        "duration('1h') > duration('2h')",
        "timestamp('2026-01-01T00:00:00Z') > timestamp('2025-01-01T00:00:00Z')",
        "user.matches(tenant)",
        "user.matches('(a+)+$')",
        "user.matches('((ab)*c)*')",
        "user.matches('(a|b*)+')",
        "user.matches('(a{2,}){3}')",
        "user.matches('a**')",
        "user.matches('a{1000}')",
        "user.matches('" + "a" * 201 + "')",
        "user.matches // hidden\n ('(a+)+')",
        "user.matches('\\\\w{20}')",
        "user.matches('[\\\\w-]{6}@(\\\\s){0,6}')",
        "user.matches('\\\\p{L}{11}')",
    ],
)
def test_what_does_not_parse_or_may_take_long_is_refused(source: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(source)


@pytest.mark.parametrize("source", ["user.matches('^[a-z]+@corp[.]com$')", r"user.matches('\\d{1,3}(ab|cd)*')", "user == 'exists(a)'"])
def test_harmless_patterns_and_words_in_quotes_are_taken(source: str) -> None:
    assert value(source, {"user": "jo@corp.com"}) in (True, False)


@pytest.mark.parametrize(
    "source",
    [
        "tokens",
        "user",
        "tokens + 1",
        "[code]",
        "tokens > 'x'",
        "user > 3",
        "tokens * 0.5 > 1.0",
        "!tokens",
        "hour == 3 && language > 5",
        "tokens == 777 ? 1 : code",
        "task == 'code' && tenant == 'acme' && battery > 'low'",
        "code && tokens == '5'",
        "weekday in ['sat', 'sun']",
        "task == true",
        "tokens / 0 > 1",
        "user.name == 'x'",
        "user.matches('(')",
    ],
)
def test_what_is_no_truth_value_or_mixes_types_is_refused_though_it_hides_behind_a_condition(source: str) -> None:
    expression = compile_expression(source)
    with pytest.raises(ExpressionError):
        check_types(expression, {name: VARIABLES[name].samples for name in expression.names})


@pytest.mark.parametrize(
    "source",
    [
        "tokens > 5",
        "double(tokens) * 0.5 > 1.0",
        "100 / (tokens - 1) > 3",
        "battery < 0.2 || hour in [1, 2]",
        "complexity > 1",
        "code == true",
        "user in ['a', 'b']",
        "string(tokens) == '5'",
        "user == 'tokens == true'",
    ],
)
def test_sound_conditions_pass(source: str) -> None:
    expression = compile_expression(source)
    check_types(expression, {name: VARIABLES[name].samples for name in expression.names})


def test_one_expression_serves_many_threads() -> None:
    expression = compile_expression("tokens > 5 && user.startsWith('j')")
    wrong: list[object] = []

    def work(number: int) -> None:
        for tokens, user in product(range(12), ("joe", "ann", None)):
            expected = conjunction(tokens > 5, None if user is None else user == "joe")
            found = expression.evaluate({"tokens": tokens, "user": user}.get).value
            if found is not expected:
                wrong.append((number, tokens, user, found))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("hour > 9 and hour < 17", "and is written &&"),
        ("code or tools > 0", "or is written ||"),
        ("hour = 9", "equality is written =="),
        ("battery < 20%", "20 % is written 0.2"),
        ("user == 'you and me' &&", "see docs/policy.md"),  # words in quotes are no operators
        ("tokens % 2 ==", "see docs/policy.md"),
    ],
)
def test_what_other_languages_write_is_told_as_cel_writes_it(source: str, hint: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        compile_expression(source)
    assert raised.value.hint.startswith(hint)
