"""The text of an answer and the log-probabilities of its tokens, which must say the same."""

import pytest
from hybrid.shared_protocol.answer_text import AnswerText
from hybrid.tests.support.byte_tokenizer import EOS, ByteTokenizer

SURE = (-0.5, ())


def bytes_of(text: AnswerText) -> bytes:
    return b"".join(bytes(entry.bytes or ()) for entry in text.take_logprobs())


def test_a_character_that_a_stop_string_hides_takes_the_log_probabilities_of_all_its_tokens_with_it() -> None:
    text, shown, told = AnswerText(ByteTokenizer(), ("é!",)), "", b""
    for token in "aé!".encode():
        shown += text.push(token, likelihood=SURE)
        told += bytes_of(text)
    assert (shown + text.finish(), told + bytes_of(text), text.stopped) == ("a", b"a", "é!")


def test_an_end_token_has_a_log_probability_and_no_text() -> None:
    text = AnswerText(ByteTokenizer())
    assert text.push(ord("a"), likelihood=SURE) + text.push(EOS, ends=True, likelihood=SURE) + text.finish() == "a"
    assert [entry.token for entry in text.take_logprobs()] == ["a", ""]


def test_what_has_ended_is_not_continued() -> None:
    stopped, finished = AnswerText(ByteTokenizer(), ("a",)), AnswerText(ByteTokenizer())
    stopped.push(ord("a"))
    finished.finish()
    for text in (stopped, finished):
        with pytest.raises(AssertionError, match="ended"):
            text.push(ord("b"))
