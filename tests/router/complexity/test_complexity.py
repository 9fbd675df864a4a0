"""Easy prompts score low, hard ones high, and a conversation is as hard as its hardest turn."""

import math

import pytest
from hybrid.router.complexity.complexity import complexity
from hybrid.router.complexity.features import turn_of
from hybrid.router.complexity.reading import FEATURES, TAIL, Reading
from hybrid.router.policy.policy import Policy
from hybrid.router.request import RouteRequest
from hypothesis import given
from hypothesis import strategies as st

BANDS = Policy.default().complexity
HARD_TASK = "Prove that there are infinitely many primes, step by step, and write the code in Python that finds them."


def score(messages: object, **more: object) -> float:
    return complexity(RouteRequest.of(messages, **more)).score  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "prompt",
    [
        "Hi",
        "What is the capital of France?",
        "Thanks!",
        "Name three primary colours.",
        "How do I boil an egg?",
        "Write a short poem about autumn leaves.",
        "Translate 'good morning' into French.",
        "Can you recommend a good book for a long train journey?",
        "What should I cook tonight?",
        "Why is the sky blue?",
    ],
)
def test_everyday_prompts_are_simple(prompt: str) -> None:
    assert score(prompt) < BANDS.cascade_from


@pytest.mark.parametrize(
    "prompt",
    [
        "Write a Python function that reverses a string.",
        "Explain why the sky is blue and compare it with a sunset.",
        "Explain step by step why the sum of two odd numbers is even.",
    ],
)
def test_prompts_between_are_uncertain(prompt: str) -> None:
    assert BANDS.cascade_from <= score(prompt) < BANDS.hard_from


@pytest.mark.parametrize(
    "prompt",
    [
        HARD_TASK,
        "Write a function that merges two sorted lists, and explain its complexity.",
        "Implement a thread-safe LRU cache in Python and explain the trade-offs.",
        "Design a distributed rate limiter, analyse its failure modes, and implement it in Rust.",
    ],
)
def test_tasks_of_several_demanding_steps_are_hard(prompt: str) -> None:
    assert score(prompt) >= BANDS.hard_from


def test_a_hard_task_in_the_first_turn_stays_hard_when_the_user_says_continue() -> None:
    """Row G63: not only the last message is scored."""
    turns = [{"role": "user", "content": HARD_TASK}]
    alone = score(turns)
    for _ in range(40):
        turns += [{"role": "assistant", "content": "First, ..."}, {"role": "user", "content": [{"type": "text", "text": "continue"}]}]
        assert score(turns) >= alone >= BANDS.hard_from


def test_a_long_conversation_and_tools_make_a_prompt_harder() -> None:
    one = [{"role": "user", "content": "And the next one?"}]
    long = [{"role": "assistant", "content": "words " * 5_000}, *one]
    assert score(long) > score(one)
    assert score(one, tools=[{"name": "search"}]) > score(one)
    assert score([{"role": "system", "content": "Prove the theorem."}, *one]) < BANDS.cascade_from  # every request of an app has this


def test_another_language_is_harder_for_a_small_model() -> None:
    assert score("Wie komme ich am schnellsten vom Bahnhof zum Schloss?") >= BANDS.cascade_from
    assert score("法国的首都是哪里？") >= BANDS.cascade_from
    assert score("How do I get from the station to the castle quickly?") < BANDS.cascade_from


def test_scripts_without_spaces_are_as_long_as_they_are() -> None:
    """Chinese has no spaces: five hundred characters are not one word."""
    sentence = "请描述一下这座城市的历史，"  # 12 characters and a comma, one word to the eye
    assert complexity(RouteRequest.of(sentence * 40)).size == pytest.approx(0.55 * (1 - math.exp(-241 / 150)))
    longer = complexity(RouteRequest.of(sentence * 400)).size
    assert longer > complexity(RouteRequest.of(sentence * 100)).size > complexity(RouteRequest.of("word " * 280)).size * 0.99
    assert complexity(RouteRequest.of("слово " * 300)).size == pytest.approx(complexity(RouteRequest.of("words " * 300)).size)


def test_each_part_counts_what_a_reader_would_count() -> None:
    turn = turn_of(Reading("1. Solve x^2 = 4.\n2. Prove it, then write Python:\n```\nreturn x\n```\nWhy?"))
    assert (turn.demanding, turn.thinking, turn.coding, turn.items) == (1, 2, 1, 2)  # prove; solve, why; python; two items
    assert turn.numbers == 4  # 1, 2, 4, 2
    assert turn.formulas == 2  # ^ and =
    assert turn.statements == 3  # two fences and a return
    assert turn.constraints == 1  # then


def test_the_work_is_bounded_and_the_length_still_counts() -> None:
    text = "word " * 100_000
    turn = turn_of(Reading(text))
    assert turn.words == len(text) // 6
    middle = "a" * FEATURES + " prove " * 10 + "b" * TAIL
    assert turn_of(Reading(middle)).demanding == 0
    assert turn_of(Reading("prove " + "a" * 10_000)).demanding == turn_of(Reading("a" * 10_000 + " prove")).demanding == 1


@given(st.lists(st.text(max_size=200), min_size=1, max_size=5))
def test_a_score_lies_between_0_and_1_and_more_turns_never_lower_it(texts: list[str]) -> None:
    turns = [{"role": "user", "content": text} for text in texts]
    found = [score(turns[: i + 1]) for i in range(len(turns))]
    assert all(0 <= value < 1 for value in found)
    assert complexity(RouteRequest.of(turns)) == complexity(RouteRequest.of(turns))
