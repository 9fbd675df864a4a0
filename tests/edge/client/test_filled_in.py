"""Values are filled in over an answer's pieces: its text, its log-probabilities, its stop strings, however it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise

import pytest
from hybrid.edge.client.filled_in import filled_in
from hybrid.edge.client.target import TargetFailed
from hybrid.edge.piece import Piece, usage_of
from hybrid.router.redact.restore import Restorer
from hybrid.shared_protocol.openai import Span, TokenLogprob, TopLogprob
from hybrid.tests.support.redacting import mapping
from hypothesis import given
from hypothesis import strategies as st

INTO = mapping()
JANE = "jane@example.com"
MAIL = INTO.placeholder("email", JANE)
USAGE = usage_of(5, 9)


def token(text: str, logprob: float = -1.0) -> TokenLogprob:
    return TokenLogprob(text, logprob, list(text.encode()), [TopLogprob("x", logprob, [120])])


def pieces_of(tokens: Sequence[str], lag: int = 0, finish: str = "length") -> list[Piece]:
    """A piece per token, whose log-probability comes `lag` pieces later; the last has the finish."""
    shown = [token(text, -float(number)) for number, text in enumerate(tokens)]
    logprobs = [*[()] * lag, *((one,) for one in shown)]
    texts = [*tokens, *[""] * lag]
    made = [Piece(text, (Span("cloud", 1),), tuple(some)) for text, some in zip(texts, logprobs, strict=True)]
    return [*made, Piece(finish_reason=finish, usage=USAGE)]  # type: ignore[arg-type]


async def fill(pieces: Sequence[Piece], stop: Sequence[str] = ()) -> list[Piece]:
    async def source() -> AsyncGenerator[Piece, None]:
        for piece in pieces:
            yield piece

    return [piece async for piece in filled_in(source(), INTO.values(), stop, "cloud")]


def said(pieces: Sequence[Piece]) -> tuple[str, str, str | None]:
    """(text, the text of the log-probabilities, finish)."""
    logprobs = [one for piece in pieces for one in piece.logprobs]
    assert all(one.bytes == list(one.token.encode()) for one in logprobs)
    return "".join(piece.text for piece in pieces), "".join(one.token for one in logprobs), pieces[-1].finish_reason


def cut(text: str, places: Sequence[int]) -> list[str]:
    ends = sorted({min(place, len(text)) for place in places} | {0, len(text)})
    return [text[left:right] for left, right in pairwise(ends)]


TEXT = f"Ask {MAIL.text}, or email {MAIL.bare.lower()}. See https://x.example/{MAIL.text} é😀 [EMAIL_9_bcd"
SHOWN = f"Ask {JANE}, or email {JANE}. See https://x.example/{MAIL.text} é😀 [EMAIL_9_bcd"


@given(st.lists(st.integers(0, len(TEXT)), max_size=20), st.integers(0, 3))
def test_the_text_and_the_log_probabilities_say_the_same_however_they_come(places: list[int], lag: int) -> None:
    tokens = cut(TEXT, places)
    pieces = asyncio.run(fill(pieces_of(tokens, lag)))
    assert said(pieces) == (SHOWN, SHOWN, "length")
    assert [one.logprob for piece in pieces for one in piece.logprobs] == [-float(number) for number in range(len(tokens))]
    assert sum(span.tokens for piece in pieces for span in piece.spans) == len(tokens) + lag
    assert pieces[-1].usage == USAGE


@given(
    st.lists(st.integers(0, len(TEXT)), max_size=20), st.integers(0, 3), st.sampled_from(["example", ", or", JANE, "@", "See", "[EM", "😀"])
)
def test_an_answer_ends_at_a_stop_string_of_what_is_shown(places: list[int], lag: int, stop: str) -> None:
    pieces = asyncio.run(fill(pieces_of(cut(TEXT, places), lag), [stop, "not there"]))
    until = SHOWN[: SHOWN.index(stop)]
    assert said(pieces) == (until, until, "stop")
    assert pieces[-1].usage == USAGE


async def test_a_stop_string_that_only_the_placeholder_holds_ends_nothing() -> None:
    assert said(await fill(pieces_of([f"Ask {MAIL.text}"]), ["EMAIL"])) == (f"Ask {JANE}", f"Ask {JANE}", "length")


async def test_a_value_stands_at_the_first_token_of_its_placeholder_without_the_alternatives_to_its_letters() -> None:
    pieces = await fill(pieces_of(["Ask ", "[EM", f"{MAIL.text[3:-1]}", "], now"]))
    logprobs = [one for piece in pieces for one in piece.logprobs]
    assert [one.token for one in logprobs] == ["Ask ", JANE, "", ", now"]
    assert [len(one.top_logprobs) for one in logprobs] == [1, 0, 0, 0]


async def test_nothing_is_left_of_a_placeholder_after_a_stop_string() -> None:
    pieces = await fill(pieces_of(["Ask ", "[EM", f"{MAIL.text[3:-1]}", "]", "."]), ["jane"])
    assert [one.token for piece in pieces for one in piece.logprobs] == ["Ask "]


async def test_the_first_piece_is_not_held_back_and_nothing_empty_is_given() -> None:
    pieces = await fill([Piece("Hi "), Piece("[EM"), Piece(MAIL.text[3:]), Piece(finish_reason="stop", usage=USAGE)])
    assert [piece.text for piece in pieces] == ["Hi ", JANE, ""]


async def test_what_goes_wrong_here_is_a_failure_of_the_cloud_s_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Restorer, text: str) -> None:
        raise KeyError(JANE)

    monkeypatch.setattr(Restorer, "push", broken)
    with pytest.raises(TargetFailed) as failed:
        await fill(pieces_of(["Hi"]))
    assert failed.value.target == "cloud" and JANE not in str(failed.value.error)
