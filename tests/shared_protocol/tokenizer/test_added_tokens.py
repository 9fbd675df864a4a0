"""Added tokens: which match, what they take with them, and how long that takes."""

from __future__ import annotations

import pytest
from hybrid.shared_protocol.tokenizer.added_tokens import AddedToken, AddedTokens
from hypothesis import given
from hypothesis import strategies as st

PARTS = st.lists(st.sampled_from(["<a>", "<ab>", "<a", "b>", "aa", "aaa", " ", "\n", "x", "<", ">"]), max_size=14).map("".join)


def split(text: str, *tokens: AddedToken, literal: tuple[tuple[int, int], ...] = ()) -> list[str | int]:
    return list(AddedTokens(tokens).split(text, literal))


def plain(text: str, tokens: list[AddedToken], literal: bytearray) -> list[str | int]:
    """The rule word by word: each token in turn, the longest first, cuts every piece that is left."""
    pieces: list[tuple[int, str | int]] = [(0, text)]
    for token in sorted(tokens, key=lambda token: -len(token.text)):
        for place in range(len(pieces) - 1, -1, -1):
            offset, piece = pieces[place]
            if isinstance(piece, int):
                continue
            cut: list[tuple[int, str | int]] = []
            start = search = 0
            while (found := piece.find(token.text, search)) >= 0:
                if token.guarded and any(literal[offset + found : offset + found + len(token.text)]):
                    search = found + 1
                    continue
                cut += [(offset + start, piece[start:found]), (offset + found, token.token_id)]
                start = search = found + len(token.text)
            pieces[place : place + 1] = [*cut, (offset + start, piece[start:])]
    return [piece for _, piece in pieces if piece != ""]


@given(text=PARTS, cuts=st.lists(st.integers(0, 20), max_size=4), guarded=st.booleans())
def test_the_longest_token_is_taken_first_over_the_whole_text(text: str, cuts: list[int], guarded: bool) -> None:
    tokens = [AddedToken(part, number, guarded) for number, part in enumerate(["<a>", "<ab>", "aa", "aaa", "\n", " x"])]
    bounds = sorted(min(cut, len(text)) for cut in cuts)
    spans = tuple(zip(bounds[::2], bounds[1::2], strict=False))
    literal = bytearray(len(text))
    for start, end in spans:
        literal[start:end] = b"\1" * (end - start)
    assert split(text, *tokens, literal=spans) == plain(text, tokens, literal)


@pytest.mark.parametrize(
    ("token", "pieces"),
    [
        (AddedToken("<m>", 7), ["a  ", 7, "  b"]),
        (AddedToken("<m>", 7, lstrip=True), ["a", 7, "  b"]),
        (AddedToken("<m>", 7, rstrip=True), ["a  ", 7, "b"]),
        (AddedToken("<m>", 7, lstrip=True, rstrip=True), ["a", 7, "b"]),
    ],
)
def test_a_token_takes_the_white_space_that_it_strips(token: AddedToken, pieces: list[str | int]) -> None:
    assert split("a  <m>  b", token) == pieces


def test_white_space_between_two_tokens_goes_to_the_one_that_is_matched_first() -> None:
    both = AddedToken("<m>", 7, lstrip=True, rstrip=True)
    assert split(" <m>  <m> ", both) == [7, 7]


def test_a_single_word_matches_where_no_letter_digit_or_underscore_touches_it() -> None:
    word = AddedToken("word", 7, single_word=True)
    assert split("word, words aword word_ 1word (word)", word) == [7, ", words aword word_ 1word (", 7, ")"]


def test_a_word_matches_in_what_the_user_typed_and_a_mark_does_not() -> None:
    mark, word = AddedToken("<m>", 7), AddedToken("<table>", 8, guarded=False)
    assert split("<m><table>", mark, word, literal=((0, 10),)) == ["<m>", 8]
    assert AddedTokens([mark, word]).guarded_texts == ("<m>",)


def test_a_text_is_searched_once_and_not_once_per_token() -> None:
    class Counted(str):
        finds = 0

        def find(self, *arguments: object) -> int:  # type: ignore[override]
            Counted.finds += 1
            return super().find(*arguments)  # type: ignore[arg-type]

    tokens = AddedTokens([AddedToken(f"<unused{number}>", number) for number in range(6000)])
    assert list(tokens.split(Counted("a <b> <unused17> " * 10), ()))[1] == 17
    assert Counted.finds < 50  # 20 "<", 10 tokens
