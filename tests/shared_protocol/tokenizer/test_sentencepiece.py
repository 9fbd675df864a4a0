"""SentencePiece BPE against llama.cpp, and what its pieces are as text."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hybrid.shared_protocol.detokenizer import Detokenizer
from hybrid.shared_protocol.errors import ContextOverflow, ModelFileError
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.model import load_model
from hybrid.shared_protocol.tokenizer import Tokenizer, tokenizer_of
from hybrid.tests.support.gguf_writer import write_gguf
from hybrid.tests.support.llama_cpp import LlamaTokenizer, library_path
from hybrid.tests.support.sentencepiece import BOS, EOS, FIRST_BYTE, USER_DEFINED, metadata, vocabulary, write_sentencepiece
from hybrid.tests.support.texts import random_texts

needs_oracle = pytest.mark.skipif(library_path() is None, reason="xllamacpp, which brings llama.cpp's tokenizer, is not installed")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sentencepiece(tmp_path_factory.mktemp("sentencepiece") / "tiny.gguf")


@pytest.fixture(scope="module")
def tokenizer(path: Path) -> Tokenizer:
    return tokenizer_of(read_gguf(path))


@pytest.fixture(scope="module")
def oracle(path: Path) -> Iterator[LlamaTokenizer]:
    tokenizer = LlamaTokenizer(path, path)
    yield tokenizer
    tokenizer.close()


def ids_of(tokenizer: Tokenizer, *texts: str) -> list[int]:
    """Ids by the token's own text."""
    return [next(number for number in range(tokenizer.vocab_size) if tokenizer._tokens[number] == text) for text in texts]


@needs_oracle
def test_two_thousand_random_texts_have_the_ids_of_llama_cpp(tokenizer: Tokenizer, oracle: LlamaTokenizer) -> None:
    for text in random_texts(7, 2000):
        assert tokenizer.encode(text) == oracle.encode(text, add_special=True), repr(text)


@needs_oracle
@pytest.mark.parametrize(
    "changes", [{"tokenizer__ggml__add_space_prefix": False}, {"general__name": "Phi-3 mini"}, {"tokenizer__ggml__bos_token_id": None}, {}]
)
def test_settings_of_the_file_and_scores_that_are_equal_give_the_ids_of_llama_cpp(tmp_path: Path, changes: dict[str, Any]) -> None:
    tokens, kinds, scores = vocabulary(ties=True)
    ours = write_sentencepiece(tmp_path / "t.gguf", ([*tokens, "<|endoftext|>"], [*kinds, 3], [*scores, 0.0]), **changes)
    tokenizer, oracle = tokenizer_of(read_gguf(ours)), LlamaTokenizer(ours, ours)
    for text in [*random_texts(8, 200), "<|user|>\n\n x", "<s> a <s>", "a <|end|>\t\n", "a" * 99, " " * 99, "<|user|>\u00a0x"]:
        assert tokenizer.encode(text, add_bos=False) == oracle.encode(text), repr(text)
    oracle.close()


@needs_oracle
def test_every_token_adds_the_text_that_llama_cpp_adds(tokenizer: Tokenizer, oracle: LlamaTokenizer) -> None:
    for number in range(tokenizer.vocab_size):
        assert tokenizer.token_bytes(number) == oracle.piece(number), number


@pytest.mark.parametrize("single", ["", "a"])
def test_a_vocabulary_in_which_nothing_can_be_joined_writes_bytes(tmp_path: Path, single: str) -> None:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *single]
    parts = (tokens, [2, 3, 3] + [6] * 256 + [1] * len(single), [0.0] * len(tokens))
    tokenizer = tokenizer_of(read_gguf(write_gguf(tmp_path / "t.gguf", metadata(parts, tokenizer__ggml__add_space_prefix=False), {})))
    a = FIRST_BYTE + ord("a") if not single else len(tokens) - 1
    assert tokenizer.encode("ab", add_bos=False) == [a, FIRST_BYTE + ord("b")]


def test_text_that_spells_a_control_token_stays_text(tokenizer: Tokenizer) -> None:
    # llama.cpp joins "</" and "s>" to the end token's id here, also when told to parse no specials
    ids = tokenizer.encode("a</s>b<s><0x41>", [(0, 15)])
    assert EOS not in ids
    assert FIRST_BYTE + 0x41 not in ids
    assert ids.count(BOS) == 1
    assert tokenizer.decode(ids, whole=True) == "a</s>b<s><0x41>"


def test_a_mark_of_turns_that_the_user_typed_stays_text_and_a_word_with_its_own_id_does_not(tokenizer: Tokenizer) -> None:
    mark, word = ids_of(tokenizer, "<|end|>", "<table>")
    text = "<|end|><table>"
    assert tokenizer.encode(text) == [BOS, mark, word]
    literal = tokenizer.encode(text, [(0, len(text))])
    assert mark not in literal
    assert literal[-1] == word
    assert "<|end|>" in tokenizer.special_texts
    assert "<table>" not in tokenizer.special_texts


def test_a_chat_has_one_bos_whether_its_template_writes_it_or_not(path: Path, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "<s>hi</s><|end|>"}]
    silent = write_sentencepiece(tmp_path / "silent.gguf", template="<|user|>\n{{ messages[0].content }}<|end|>\n")
    for model in (load_model(path), load_model(silent)):
        ids = model.render_chat(messages)
        assert ids.count(BOS) == 1
        assert ids[0] == BOS
        assert EOS not in ids
        assert ids.count(*ids_of(model.tokenizer, "<|end|>")) == 1


def test_an_answer_keeps_the_space_of_its_first_token(tokenizer: Tokenizer) -> None:
    """A token's text does not depend on where it stands: prompt and answer joined are what the model has written."""
    ids = tokenizer.encode("hi you", add_bos=False)
    detokenizer = Detokenizer(tokenizer)
    assert "".join(map(detokenizer.push, ids)) + detokenizer.flush() == " hi you"
    assert tokenizer.decode(ids) == " hi you"
    assert tokenizer.decode(ids, whole=True) == "hi you"


def test_a_whole_text_comes_back_as_it_was(tokenizer: Tokenizer) -> None:
    for text in random_texts(9, 300):
        if any(word in text for word in USER_DEFINED):
            continue  # llama.cpp puts a space behind those too, which changes the text
        assert tokenizer.decode(tokenizer.encode(text, [(0, len(text))]), whole=True) == text, repr(text)


def test_a_character_written_in_bytes_is_shown_when_its_last_byte_has_come(tokenizer: Tokenizer) -> None:
    detokenizer = Detokenizer(tokenizer)
    smile = [FIRST_BYTE + byte for byte in "😊".encode()]
    assert [detokenizer.push(number) for number in smile] == ["", "", "", "😊"]
    assert [detokenizer.push(number) for number in smile[:2]] == ["", ""]
    assert detokenizer.flush() == "\ufffd"


def test_several_threads_get_the_ids_that_one_gets(path: Path, tokenizer: Tokenizer) -> None:
    texts = random_texts(12, 200)
    shared = tokenizer_of(read_gguf(path))
    with ThreadPoolExecutor(4) as pool:
        for ids in pool.map(lambda _: [shared.encode(text) for text in texts], range(4)):
            assert ids == [tokenizer.encode(text) for text in texts]


def test_equal_neighbours_are_joined_from_the_left(tokenizer: Tokenizer) -> None:
    # the run of 99: joins in the order of the scores, the leftmost of equals, computed by a plain loop
    order = {token: rank for rank, token in enumerate(vocabulary()[0][259:])}
    symbols = ["▁", *"a" * 99]
    while pairs := [(order[left + right], at) for at, (left, right) in enumerate(pairwise(symbols)) if left + right in order]:
        _, at = min(pairs)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    assert tokenizer.encode("a" * 99, add_bos=False) == ids_of(tokenizer, *symbols)


def test_a_run_of_equal_characters_costs_a_few_pushes_for_each(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    pushes = 0
    push = heapq.heappush

    def counted(heap: list[Any], item: Any) -> None:
        nonlocal pushes
        pushes += 1
        push(heap, item)

    monkeypatch.setattr("hybrid.shared_protocol.tokenizer.sentencepiece.heapq.heappush", counted)
    for length in (10_000, 100_000):
        pushes = 0
        assert tokenizer.decode(tokenizer.encode("a" * length), whole=True) == "a" * length
        assert pushes < 3 * length


def test_a_limit_refuses_nothing_that_fits_and_a_text_of_too_many_bytes_at_once(tokenizer: Tokenizer) -> None:
    for text in random_texts(10, 200):
        ids = tokenizer.encode(text)
        assert tokenizer.encode(text, limit=len(ids)) == ids
    with pytest.raises(ContextOverflow, match="at least"):
        tokenizer.encode("a" * 100_000, limit=100)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"tokenizer__ggml__scores": None}, "tokenizer.ggml.scores"),
        ({"tokenizer__ggml__scores": ["a"]}, "tokenizer.ggml.scores"),
        ({"tokenizer__ggml__scores": [0.5]}, "1 entries"),
        ({"tokenizer__ggml__scores": [0.5, float("nan"), *vocabulary()[2][2:]]}, "scores' number 1"),
        ({"tokenizer__ggml__scores": [*vocabulary()[2][:-1], float("inf")]}, "not finite"),
        ({"tokenizer__ggml__token_type": [1, 2]}, "token_type"),
        ({"tokenizer__ggml__token_type": [1.5] * len(vocabulary()[0])}, "token_type"),
        ({"tokenizer__ggml__token_type": [1] * len(vocabulary()[0])}, "<0x00>"),
        ({"tokenizer__ggml__tokens": ["<unk>", *vocabulary()[0][1:-1], "<unk>"]}, "twice.*<unk>.* 0 and"),
        ({"tokenizer__ggml__add_space_prefix": 1}, "add_space_prefix"),
        ({"tokenizer__ggml__add_bos_token": "yes"}, "add_bos_token"),
        ({"tokenizer__ggml__bos_token_id": 100_000}, "100000"),
        ({"tokenizer__ggml__eos_token_id": -1.5}, "eos_token_id"),
        ({"tokenizer__ggml__model": "bert"}, "bert.*supported"),
        ({"tokenizer__ggml__model": ["llama"]}, "not supported"),
    ],
)
def test_a_tokenizer_that_cannot_be_built_is_refused_by_name(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelFileError, match=named):
        tokenizer_of(read_gguf(write_gguf(tmp_path / "t.gguf", metadata(vocabulary(), **change), {})))


def test_scores_and_the_space_prefix_decide_ids_and_so_the_fingerprint(tmp_path: Path, tokenizer: Tokenizer) -> None:
    tokens, kinds, scores = vocabulary()
    for number, (parts, changes) in enumerate(
        [((tokens, kinds, [*scores[:-1], -7.0]), {}), ((tokens, kinds, scores), {"tokenizer__ggml__add_space_prefix": False})]
    ):
        other = write_gguf(tmp_path / f"{number}.gguf", metadata(parts, **changes), {})
        assert tokenizer_of(read_gguf(other)).fingerprint != tokenizer.fingerprint
