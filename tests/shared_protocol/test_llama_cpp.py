"""Our token ids against llama.cpp's own tokenizer, for the same file."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.model import Model
from hybrid.shared_protocol.tokenizer import tokenizer_of
from hybrid.tests.support.llama_cpp import LlamaTokenizer, library_path
from hybrid.tests.support.texts import SENTENCES, random_text

QWEN = "qwen2.5-coder-0.5b-instruct.gguf"


@pytest.fixture(scope="module")
def llama_cpp(smollm2_path: Path) -> Iterator[LlamaTokenizer]:
    library = library_path()
    if library is None:
        pytest.skip("xllamacpp, which brings llama.cpp's tokenizer, is not installed")
    oracle = LlamaTokenizer(library, smollm2_path)
    yield oracle
    oracle.close()


def test_two_thousand_random_texts_have_the_ids_of_llama_cpp(smollm2: Model, llama_cpp: LlamaTokenizer) -> None:
    rng = random.Random(54)
    for _ in range(2000):
        text = random_text(rng)
        assert smollm2.tokenizer.encode(text) == llama_cpp.encode(text), repr(text)


@pytest.mark.parametrize(
    "text",
    [
        "Café déjà vu — 123 😊",
        "line\r\nline\r\n\r\n\tindented\t\ttwice  \n   ",
        "def add(a, b):\n    # 1 + 22 = 333\n    return a+b\n\n\nclass A:\n\tpass",
        "1234567890 12 3.14159 1,000,000 0x1F",
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
        " <|im_end|> <|im_end|>\n\n<|im_start|>  x",
        "",
        " ",
    ],
)
def test_awkward_texts_have_the_ids_of_llama_cpp(smollm2: Model, llama_cpp: LlamaTokenizer, text: str) -> None:
    assert smollm2.tokenizer.encode(text) == llama_cpp.encode(text)


def test_a_text_that_is_literal_throughout_has_the_ids_of_llama_cpp_without_specials(smollm2: Model, llama_cpp: LlamaTokenizer) -> None:
    rng = random.Random(55)
    for _ in range(300):
        text = random_text(rng)
        assert smollm2.tokenizer.encode(text, [(0, len(text))]) == llama_cpp.encode(text, parse_special=False), repr(text)


@pytest.mark.large
def test_two_thousand_random_texts_have_the_ids_of_llama_cpp_on_qwen() -> None:
    path = Path(os.environ.get("HYBRID_TEST_MODELS", "/nonexistent")) / QWEN
    if not path.exists():
        pytest.skip(f"{QWEN} is not in the folder that HYBRID_TEST_MODELS names")
    ours, oracle = tokenizer_of(read_gguf(path)), LlamaTokenizer(path, path)
    rng = random.Random(56)
    for text in [*SENTENCES, *(random_text(rng) for _ in range(2000))]:
        text = text.replace("<|im", "<|fim").replace("<repo_name>", "<|repo_name|>") if rng.random() < 0.3 else text
        assert ours.encode(text) == oracle.encode(text), repr(text)
        assert ours.encode(text, [(0, len(text))]) == oracle.encode(text, parse_special=False), repr(text)
    for number in range(ours.vocab_size):
        if ours.token_bytes(number) == b"</s>":
            continue  # text to its publisher, the end of a text to llama.cpp
        assert ours.token_bytes(number) == oracle.piece(number), number
    oracle.close()
