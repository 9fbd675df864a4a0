import itertools

import pytest
from hybrid.cloud.engine.completion import Chunk, Completion
from hybrid.cloud.engine.messages import StepOutput, TokenLogprobs
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.tests.support.byte_tokenizer import EOS, ByteTokenizer
from hypothesis import given
from hypothesis import strategies as st


def outputs(pieces: list[bytes], finish: str = "length", *, eos: bool = False, logprobs: bool = False) -> list[StepOutput]:
    """One output per piece, the last with `finish`."""
    made = []
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        ids = (*piece, EOS) if last and eos else tuple(piece)
        entries = tuple(TokenLogprobs(i, -0.5, ((i, -0.5),)) for i in ids) if logprobs else ()
        made.append(StepOutput("r", ids, entries, finish if last else None, EOS if last and eos else None))
    return made


def complete(pieces: list[bytes], finish: str = "length", *, eos: bool = False, **params) -> list[Chunk]:
    completion = Completion(ByteTokenizer(), SamplingParams(**params))
    chunks = []
    for output in outputs(pieces, finish, eos=eos, logprobs="logprobs" in params):
        chunks.append(completion.push(output))
        if completion.finished:
            break
    return chunks


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def count(chunks: list[Chunk]) -> int:
    return sum(len(chunk.token_ids) for chunk in chunks)


def test_a_newline_that_is_a_stop_string_ends_the_text_before_it() -> None:
    chunks = complete([b"?", b"\n", b"more"], stop=("\n",))
    assert (text_of(chunks), chunks[-1].finish_reason, chunks[-1].stop_reason, count(chunks)) == ("?", "stop", "\n", 2)


def test_a_stop_string_over_several_tokens_is_never_shown_and_what_follows_is_not_counted() -> None:
    chunks = complete([b"A B", b" C ", b"O", b" P", b" Q R"], stop=("O P Q",))
    assert (text_of(chunks), chunks[-1].finish_reason) == ("A B C ", "stop")
    assert count(chunks) == len(b"A B C O P Q")


def test_text_that_turns_out_to_be_no_stop_string_is_shown() -> None:
    chunks = complete([b"A O", b" P", b" X", b" O"], stop=("O P Q",))
    assert [chunk.text for chunk in chunks] == ["A ", "", "O P X", " O"]


def test_a_character_over_several_tokens_is_shown_once_and_whole() -> None:
    smile = "😸".encode()
    assert [chunk.text for chunk in complete([smile[:2], smile[2:]])] == ["", "😸"]
    family = "👨‍👩‍👧 é".encode()
    chunks = complete([family[i : i + 1] for i in range(len(family))])
    assert text_of(chunks) == "👨‍👩‍👧 é" and not any("\ufffd" in chunk.text for chunk in chunks)


def test_a_character_that_never_becomes_whole_is_shown_as_such_at_the_end() -> None:
    assert text_of(complete(["a😸".encode()[:3]])) == "a\ufffd"
    assert text_of(complete(["a😸".encode()[:3], b""], "abort")) == "a\ufffd"


def test_the_models_own_end_is_counted_and_has_no_text() -> None:
    chunks = complete([b"Hi"], "stop", eos=True, logprobs=0)
    assert (text_of(chunks), count(chunks), chunks[-1].stop_reason) == ("Hi", 3, None)
    assert [entry.token for entry in chunks[0].logprobs] == ["H", "i", ""]


def test_a_stop_token_of_the_request_is_named_and_has_no_text() -> None:
    completion = Completion(ByteTokenizer(), SamplingParams(stop_token_ids=(ord("!"),)))
    chunk = completion.push(StepOutput("r", tuple(b"Hi!"), finish_reason="stop", stop_token_id=ord("!")))
    assert (chunk.text, chunk.stop_reason, len(chunk.token_ids)) == ("Hi", ord("!"), 3)


def test_log_probabilities_come_with_their_text_and_are_cut_with_it() -> None:
    completion = Completion(ByteTokenizer(), SamplingParams(stop=("END",), logprobs=1))
    chunks = [completion.push(output) for output in outputs([b"aE", b"N", b"x", b"EN", b"D!"], logprobs=True)]
    assert ["".join(e.token for e in chunk.logprobs) for chunk in chunks] == ["a", "", "ENx", "", ""]
    assert [chunk.text for chunk in chunks] == ["a", "", "ENx", "", ""]


class WordTokenizer(ByteTokenizer):
    """Tokens of several characters."""

    WORDS = (b"The", b" E", b"ND", b"", "é".encode()[:1], "é".encode()[1:] + b"x")
    vocab_size = len(WORDS)
    eos_ids = frozenset({3})

    def token_bytes(self, token_id: int) -> bytes:
        return self.WORDS[token_id]

    def token_text(self, token_id: int) -> str:
        return self.WORDS[token_id].decode(errors="replace")


def test_a_token_that_a_stop_string_cuts_is_cut_in_the_log_probabilities_too() -> None:
    completion = Completion(WordTokenizer(), SamplingParams(stop=("END",), logprobs=0))
    chunk = completion.push(StepOutput("r", (0, 1, 2), tuple(TokenLogprobs(i, -float(i)) for i in range(3))))
    assert (chunk.text, chunk.finish_reason, len(chunk.token_ids)) == ("The ", "stop", 3)
    assert [(e.token, e.logprob, bytes(e.bytes)) for e in chunk.logprobs] == [("The", 0.0, b"The"), (" ", -1.0, b" ")]


def test_tokens_joined_are_the_text_even_where_a_character_is_split() -> None:
    completion = Completion(WordTokenizer(), SamplingParams(logprobs=0))
    chunk = completion.push(StepOutput("r", (4, 5, 3), tuple(TokenLogprobs(i, -1.0) for i in (4, 5, 3)), "stop", 3))
    assert [e.token for e in chunk.logprobs] == ["", "éx", ""] and chunk.text == "éx"
    assert b"".join(bytes(e.bytes) for e in chunk.logprobs) == "éx".encode()


texts = st.text(st.sampled_from("abé😸 \n"), max_size=20)
stops = st.lists(st.text(st.sampled_from("abé😸 \n"), min_size=1, max_size=4), max_size=3)


@given(texts, stops, st.data(), st.booleans())
def test_however_the_text_is_cut_into_steps_text_counts_and_log_probabilities_agree(text, stop, data, eos) -> None:
    raw = text.encode()
    ends = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    pieces = [raw[a:b] for a, b in itertools.pairwise([0, *ends, len(raw)])]
    chunks = complete(pieces, "stop" if eos else "length", eos=eos, stop=tuple(stop), logprobs=1)

    ended = min(((text.find(s) + len(s), -len(s)) for s in stop if s in text), default=None)
    expected = text if ended is None else text[: ended[0] + ended[1]]
    assert text_of(chunks) == expected
    assert "".join(e.token for chunk in chunks for e in chunk.logprobs) == expected
    assert b"".join(bytes(e.bytes) for chunk in chunks for e in chunk.logprobs) == expected.encode()
    assert count(chunks) == (len(raw) + eos if ended is None else len(text[: ended[0]].encode()))
    assert [chunk.finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].finish_reason == ("stop" if eos or ended is not None else "length")


def test_a_finished_choice_takes_no_more() -> None:
    completion = Completion(ByteTokenizer(), SamplingParams())
    completion.push(StepOutput("r", finish_reason="abort"))
    with pytest.raises(AssertionError):
        completion.push(StepOutput("r", (1,)))
