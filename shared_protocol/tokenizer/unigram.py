"""Unigram: of all ways to cut a text into tokens, the one whose scores have the greatest sum (Viterbi, by the library).

A GGUF file's form of it ("t5"), as llama.cpp reads it: a character that no token writes is the unknown token, and several in a row are one.
"""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers
from tokenizers import models

from ..errors import ModelFileError
from .library import LibraryEncoder, guard
from .sentencepiece import SPACE, piece_bytes
from .vocabulary import NORMAL, UNUSED, USER_DEFINED, Vocabulary


def unigram(
    vocabulary: Vocabulary,
    scores: Sequence[float],
    unknown: int | None,
    guarded: frozenset[int],
    *,
    space_first: bool,
    merge_spaces: bool,
) -> LibraryEncoder:
    """`space_first`: a space before the first character that is none; `merge_spaces`: one before each word, the others dropped."""
    if unknown is None or not 0 <= unknown < len(vocabulary):
        raise ModelFileError(f"'tokenizer.ggml.unknown_token_id' {unknown} is outside the vocabulary of {len(vocabulary)}")
    kinds, tokens = vocabulary.kinds, vocabulary.tokens
    kept = [n for n, kind in enumerate(kinds) if kind in (NORMAL, UNUSED, USER_DEFINED) and n not in guarded and n != unknown and tokens[n]]
    # user-defined tokens win over everything; the unknown token has no text that could be written
    scored = [("", 0.0), *((tokens[n], 0.0 if kinds[n] == USER_DEFINED else scores[n]) for n in kept)]
    engine = tokenizers.Tokenizer(guard(lambda: models.Unigram(scored, 0, False), "tokens and scores make no Unigram"))

    def prepare(text: str) -> str:
        if merge_spaces:
            return "".join(SPACE + word for word in text.split(" ") if word)
        words = text.lstrip(" ")
        before = len(text) - len(words)
        return SPACE * (before + (space_first and bool(words))) + words.replace(" ", SPACE)

    pieces = [piece_bytes(vocabulary, number) for number in range(len(vocabulary))]
    return LibraryEncoder(engine, engine, [unknown, *kept], pieces, prepare=prepare, bounded=False)
