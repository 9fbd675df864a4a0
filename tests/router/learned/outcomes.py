"""Outcomes of two models that we make up: the small one is good at what is short and everyday, and fails at sums and proofs."""

from __future__ import annotations

import random
from functools import cache

from hybrid.router.evaluate.outcomes import Outcome
from hybrid.router.learned.model import Model
from hybrid.router.learned.train import train

PLACES = ["harbour", "valley", "station", "orchard", "bridge", "market", "tower", "meadow", "lighthouse", "quarry", "mill", "island"]
THINGS = ["boats", "apples", "lamps", "stones", "bicycles", "letters", "barrels", "kites", "bells", "ropes"]


def made_up(count: int = 240, seed: int = 1) -> list[Outcome]:
    """Half easy questions (both right in 9 of 10), half sums (the weak model in 2 of 10, the strong one in 9)."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        place, thing, n, m = draw.choice(PLACES), draw.choice(THINGS), draw.randint(2, 900), draw.randint(2, 900)
        hard = number % 2 == 1
        if hard:
            prompt = (
                f"A merchant at the {place} owns {n} {thing} and buys {m} more in each of {draw.randint(2, 9)} weeks. Then he sells "
                f"{draw.randint(2, 60)}% of them for {draw.randint(2, 99)}.50 coins. How many coins does he have in the end?"
            )
        else:
            prompt = f"where can i see {thing} near the {place} {draw.choice(PLACES)}"
        weak = float(draw.random() < (0.2 if hard else 0.9))
        rows.append(Outcome(f"r{number}", prompt, weak, float(draw.random() < 0.9)))
    return rows


@cache
def trained_router(count: int = 240) -> Model:
    """A router of these outcomes; training takes half a second, and gives the same bytes each time (test_train.py)."""
    return train(made_up(count), edge="small", cloud="large", trained="2024-05-01")
