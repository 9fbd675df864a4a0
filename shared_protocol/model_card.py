"""What is known about a model without loading its weights."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Identity of a model file. Two models may exchange token ids iff their `fingerprint` is equal."""

    name: str
    architecture: str  # the family, as GGUF names it: "llama"
    quantisation: str  # the most frequent weight type, "Q4_1"
    num_parameters: int
    context_length: int  # tokens
    vocab_size: int  # rows of the logits
    fingerprint: str  # SHA-256 hex over vocabulary, merges, pre-tokenizer, specials and chat template
    file_hash: str  # SHA-256 hex of the file
    file_bytes: int
    licence: str  # SPDX id, or "unknown"
