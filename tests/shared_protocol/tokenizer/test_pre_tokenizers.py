"""Every pre-tokenizer that GGUF files name, against llama.cpp, on a vocabulary that joins what a wrong cut would not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.tokenizer import byte_symbols, tokenizer_of
from hybrid.shared_protocol.tokenizer.pre_tokenizers import PRE_TOKENIZERS
from hybrid.tests.support.gguf_writer import SPECIALS, tiny_metadata, tiny_tensors, write_gguf
from hybrid.tests.support.llama_cpp import LlamaTokenizer, library_path
from hybrid.tests.support.texts import random_texts
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

Bpe = tuple[list[str], list[str]]  # tokens, merges
FIRST_OF_ITS_KIND = {patterns: name for name, patterns in reversed(PRE_TOKENIZERS.items())}


@pytest.fixture(scope="module")
def bpe() -> Bpe:
    """Learned without any cut, so that its merges reach over spaces, lines, digits and marks."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=2000, initial_alphabet=byte_symbols(), show_progress=False, max_token_length=12)
    learner.train_from_iterator([text.replace("|", "!|") for text in random_texts(1, 3000)], trainer)  # no special among the tokens
    tokens = sorted(learner.get_vocab(), key=learner.token_to_id)
    known, merges = set(byte_symbols()), []
    for token in tokens[len(known) :]:
        cut = next(cut for cut in range(1, len(token)) if token[:cut] in known and token[cut:] in known)
        merges.append(f"{token[:cut]} {token[cut:]}")
        known.add(token)
    return [*SPECIALS, *tokens], merges


def file_with(path: Path, bpe: Bpe, **changes: object) -> Path:
    tokens, merges = bpe
    metadata = tiny_metadata(
        tokenizer__ggml__tokens=tokens,
        tokenizer__ggml__merges=merges,
        tokenizer__ggml__token_type=[3] * len(SPECIALS) + [1] * (len(tokens) - len(SPECIALS)),
        llama__vocab_size=len(tokens),
        **changes,  # type: ignore[arg-type]
    )
    return write_gguf(path, metadata, tiny_tensors(vocab_size=len(tokens), layers=2))


@pytest.mark.skipif(library_path() is None, reason="xllamacpp, which brings llama.cpp's tokenizer, is not installed")
@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_every_pre_tokenizer_cuts_as_llama_cpp_does(tmp_path: Path, bpe: Bpe, pre: str) -> None:
    path = file_with(tmp_path / "pre.gguf", bpe, tokenizer__ggml__pre=pre)
    ours, library = tokenizer_of(read_gguf(path)), library_path()
    assert library is not None
    oracle = LlamaTokenizer(library, path)
    count = 200 if FIRST_OF_ITS_KIND[PRE_TOKENIZERS[pre]] == pre else 20
    for text in random_texts(sum(pre.encode()), count):
        assert ours.encode(text, add_bos=False) == oracle.encode(text), repr(text)
        assert ours.encode(text, [(0, len(text))]) == oracle.encode(text, parse_special=False, add_special=True), repr(text)
    oracle.close()


def test_a_word_that_is_a_token_is_taken_whole_where_merges_are_ignored(tmp_path: Path, bpe: Bpe) -> None:
    tokens, merges = bpe
    with_word = [*tokens, "Ġzyxw"], merges  # no merge leads to it
    taken = tokenizer_of(read_gguf(file_with(tmp_path / "a.gguf", with_word, tokenizer__ggml__pre="llama-bpe")))
    built = tokenizer_of(read_gguf(file_with(tmp_path / "b.gguf", with_word, tokenizer__ggml__pre="qwen2")))
    assert taken.encode(" zyxw", add_bos=False) == [len(tokens)]
    assert len(built.encode(" zyxw")) > 1


def test_llama_3_files_that_do_not_say_so_begin_with_bos(tmp_path: Path, bpe: Bpe) -> None:
    unsaid = {"tokenizer__ggml__add_bos_token": None}
    assert tokenizer_of(read_gguf(file_with(tmp_path / "a.gguf", bpe, tokenizer__ggml__pre="llama-bpe", **unsaid))).encode("x")[0] == 1
    assert tokenizer_of(read_gguf(file_with(tmp_path / "b.gguf", bpe, tokenizer__ggml__pre="qwen2", **unsaid))).encode("x")[0] != 1


def test_a_run_of_a_hundred_thousand_equal_characters_is_encoded_in_one_go(tmp_path: Path, bpe: Bpe) -> None:
    tokenizer = tokenizer_of(read_gguf(file_with(tmp_path / "a.gguf", bpe, tokenizer__ggml__pre="gpt-4o")))
    for text in ("a" * 100_000, " " * 100_000, "\n" * 100_000, "é" * 100_000, "aB" * 50_000):
        assert tokenizer.decode(tokenizer.encode(text)) == text
