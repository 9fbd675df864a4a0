"""A SentencePiece vocabulary of our own, learned on random texts, and files that hold it."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from hybrid.tests.support.gguf_writer import tiny_metadata, tiny_tensors, write_gguf
from hybrid.tests.support.texts import random_texts
from tokenizers import Tokenizer, models, trainers

# user-defined: words and white space that have an id of their own, and a mark of turns
USER_DEFINED = ["\n\n", "   ", "<table>", " the", "<|user|>", "<|end|>"]
RUNS = ["▁" * length for length in range(2, 17)] + ["a" * length for length in range(2, 9)]
UNKNOWN_ID, BOS, EOS, FIRST_BYTE = 0, 1, 2, 3

Vocabulary = tuple[list[str], list[int], list[float]]  # tokens, kinds, scores


@cache
def _learned() -> tuple[str, ...]:
    learner = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=2000, show_progress=False, max_token_length=8)
    learner.train_from_iterator([f" {text}".replace(" ", "▁").replace("|", "!|") for text in random_texts(2, 3000)], trainer)
    return tuple(sorted(learner.get_vocab(), key=learner.token_to_id))


def vocabulary(ties: bool = False) -> Vocabulary:
    """Half of the characters are missing, so that they are written in bytes. `ties`: forty tokens have one score."""
    learned = [token for token in _learned() if token not in RUNS]
    single = random.Random(1).sample([token for token in learned if len(token) == 1], 300)
    pieces = [*RUNS, *(token for token in learned if len(token) > 1), *single]
    pieces += [token for token in ("▁", "a", "<", "/", "s", ">", "</", "s>") if token not in pieces]  # "</" and "s>" spell "</s>"
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces, *USER_DEFINED]
    kinds = [2, 3, 3] + [6] * 256 + [1] * len(pieces) + [4] * len(USER_DEFINED)
    scores = [0.0] * 259 + [-float(rank // 40 if ties else rank) for rank in range(len(pieces))] + [-1000.0] * len(USER_DEFINED)
    return tokens, kinds, scores


def metadata(parts: Vocabulary, **changes: object) -> dict[str, object]:
    tokens, kinds, scores = parts
    keys: dict[str, object] = {
        "tokenizer__ggml__model": "llama",
        "tokenizer__ggml__pre": "default",
        "tokenizer__ggml__tokens": tokens,
        "tokenizer__ggml__token_type": kinds,
        "tokenizer__ggml__scores": scores,
        "tokenizer__ggml__merges": None,
        "tokenizer__ggml__add_bos_token": True,
        "llama__vocab_size": len(tokens),
        "template": "{{ bos_token }}{% for m in messages %}<|user|>\n{{ m.content }}<|end|>\n{% endfor %}",
    }
    return tiny_metadata(**{**keys, **changes})  # type: ignore[arg-type]


def write_sentencepiece(path: Path, parts: Vocabulary | None = None, **changes: object) -> Path:
    """A tiny Llama with a SentencePiece vocabulary."""
    parts = parts or vocabulary()
    return write_gguf(path, metadata(parts, **changes), tiny_tensors(vocab_size=len(parts[0])))
