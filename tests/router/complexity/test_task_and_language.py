"""The coarse words by which rules name a task and a language."""

import pytest
from hybrid.router.complexity.language import language_of
from hybrid.router.complexity.reading import Reading, Said
from hybrid.router.complexity.task import has_code, task_of
from hybrid.router.request import RouteRequest


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("Write a Python function that merges two sorted lists.", "code"),
        ("Why does this fail?\n```\nfor (i = 0; i < n; i++) { f(i); }\n```", "code"),
        ("A train goes 120 km in 1.5 hours; what is its average speed?", "maths"),
        ("Solve x^2 = 5x - 6", "maths"),
        ("Prove that the square root of two is irrational.", "maths"),
        ("Compute the derivative of the sine", "maths"),
        ("Can you prove that you are no machine?", "question"),
        ("Describe how to solve a quarrel between friends", "explain"),
        ("Translate into French: good morning, everybody", "translate"),
        ("Give me a summary of the following minutes", "summarise"),
        ("Classify this review as good or bad", "classify"),
        ("Extract all names from this paragraph", "extract"),
        ("Write a short poem about rain", "write"),
        ("Why is the sky blue?", "explain"),
        ("Who was Ada Lovelace?", "question"),
        ("hello there", "other"),
        ("", "other"),
    ],
)
def test_a_task_is_named_by_what_is_in_the_text(text: str, task: str) -> None:
    assert task_of(Reading(text)) == task


def test_program_text_is_told_from_talk_about_programs() -> None:
    assert has_code(Reading("def f(x):\n    return g(x)\n")) and not has_code(Reading("Write me a class in Java, please"))


def test_a_short_turn_belongs_to_the_task_before_it() -> None:
    def asked(*texts: str) -> str:
        return Said(RouteRequest.of([{"role": "user", "content": text} for text in texts])).last_task.text

    assert asked("Translate this letter into Dutch", "go on") == "Translate this letter into Dutch"
    assert asked("Translate this letter into Dutch", "Now write a poem about it") == "Now write a poem about it"
    assert asked("hello", "hi") == "hello"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the capital of France?", "en"),
        ("Was ist die Hauptstadt von Frankreich?", "de"),
        ("Quelle est la capitale de la France ?", "fr"),
        ("¿Cuál es la capital de Francia?", "es"),
        ("Qual è la capitale della Francia?", "it"),
        ("Qual é a capital da França e o que é um rio?", "pt"),
        ("Wat is de hoofdstad van Frankrijk?", "nl"),
        ("Что такое столица?", "ru"),
        ("フランスの首都はどこですか", "ja"),
        ("法国的首都是哪里", "zh"),
        ("프랑스의 수도는 어디인가요", "ko"),
        ("ما هي عاصمة فرنسا", "ar"),
        ("hello", None),
        ("12345 67890", None),
        ("", None),
        ("xq zzv brrt fnord plugh xyzzy", None),
    ],
)
def test_a_language_is_told_by_its_script_or_its_small_words_or_not_at_all(text: str, language: str | None) -> None:
    assert language_of(Reading(text)) == language
