"""Why a prompt got its gain, in words: which traits and which of its words moved it, and by how much.

A trait's part is what the gain would lose if that one trait were average; the parts of traits work together and need not add up. A
word's part is exact: the sum over all words is what the words add to the gain.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from .hashed import Counts, bucket_of, marked_terms_of
from .model import Model, Prediction, predict, standard, waves_of
from .traits import bounded, strongest, traits_of

MOST = 5
LONGEST = 40  # characters of a word that are shown


@dataclass(frozen=True, slots=True)
class Part:
    """`gain` above 0 speaks for the cloud's model, below 0 for the device's."""

    words: str
    gain: float


@dataclass(frozen=True, slots=True)
class Explanation:
    prediction: Prediction
    traits: tuple[Part, ...]  # say nothing of what the prompt is about: they may be logged
    terms: tuple[Part, ...]  # words of the prompt: for the one who asked, and nobody else


def explain(model: Model, text: str, most: int = MOST) -> Explanation:
    return Explanation(predict(model, text), trait_parts(model, text, most), term_parts(model, text, most))


def trait_parts(model: Model, text: str, most: int = MOST) -> tuple[Part, ...]:
    """The strongest traits. No word of the text is in them."""
    z = standard(np.array([traits_of(text)]), model.centre, model.scale)
    without = np.repeat(z, z.shape[1] + 1, axis=0)
    without[np.arange(z.shape[1]), np.arange(z.shape[1])] = 0
    gains = waves_of(without, model.directions, model.phases) @ (model.waves[:, 1] - model.waves[:, 0])
    parts = (gains[-1] - gains[:-1]).tolist()
    return tuple(Part(words, gain) for words, gain in strongest(parts, z[0].tolist(), most))


def term_parts(model: Model, text: str, most: int = MOST) -> tuple[Part, ...]:
    """The strongest words and signs of the text. Where two share a bucket, each has its share of what the bucket adds."""
    terms = Counter(marked_terms_of(bounded(text)))
    if not terms:
        return ()
    buckets = len(model.idf)
    tfidf = Counts.of([bounded(text)], buckets, marked_terms_of).times(model.idf)
    gain = model.terms[:, 1] - model.terms[:, 0]
    adds = dict(zip(tfidf.column.tolist(), (tfidf.value * gain[tfidf.column]).tolist(), strict=True))
    in_bucket: Counter[int] = Counter()
    for term, count in terms.items():
        in_bucket[bucket_of(term, buckets)] += count
    parts = [(adds[at := bucket_of(term, buckets)] * count / in_bucket[at], term) for term, count in terms.items()]
    parts.sort(key=lambda part: (-abs(part[0]), part[1]))
    return tuple(Part(_shown(term), gain) for gain, term in parts[:most] if gain)


def _shown(term: str) -> str:
    """`term` as `marked_terms_of` writes it; long ones are cut."""
    mark, place, word = term[0], term[1:2], term[2:]
    if mark == "^" and len(term) > 1:
        return f"near the start “{word[:LONGEST]}”" if place.isdigit() else f"opens with “{term[1 : LONGEST + 1]}”"
    if mark == "$" and len(term) > 1:
        return f"near the end “{word[:LONGEST]}”"
    return f"“{term[:LONGEST]}”"
