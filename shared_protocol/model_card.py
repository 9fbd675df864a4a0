"""What is known about a model without loading its weights."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # listing models needs no reader, and its NumPy
    from .architecture import Architecture
    from .gguf import Tensor


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Identity of a model file.

    Two models may exchange token ids iff their `vocabulary` is equal, and render a conversation to the same ids iff their `fingerprint` is.
    """

    name: str
    architecture: str  # the family, as GGUF names it: "llama"
    quantisation: str  # the most frequent weight type, "Q4_1"
    num_parameters: int
    context_length: int  # tokens
    vocab_size: int  # rows of the logits
    fingerprint: str  # SHA-256 hex over vocabulary, merges, pre-tokenizer, specials and chat template
    file_hash: str  # SHA-256 hex of the file, or over those of a folder's files
    file_bytes: int  # of the file, or of those that hold a folder's weights
    licence: str  # SPDX id, or "unknown"
    vocabulary: str = ""  # SHA-256 hex over the same but for the template; empty in records written before it was noted
    bits_per_weight: float | None = None  # of all tensors, scales included; None in records written before it was noted


SPDX = {"apache-2.0": "Apache-2.0", "mit": "MIT", "gpl-3.0": "GPL-3.0-only", "bsd-3-clause": "BSD-3-Clause"}


def card_of(
    tensors: Mapping[str, Tensor],
    architecture: Architecture,
    vocabulary: str,
    template: str | None,
    *,
    name: str,
    file_hash: str,
    file_bytes: int,
    licence: str | None,
    stated: object = None,
) -> ModelCard:
    """The card of a checked model. `licence` overrides the one that its file states."""
    matrices = Counter(tensor.type_name for tensor in tensors.values() if len(tensor.shape) == 2)
    num_parameters = sum(math.prod(tensor.shape) for tensor in tensors.values())
    return ModelCard(
        name=name,
        architecture=architecture.family,
        quantisation=matrices.most_common(1)[0][0],
        num_parameters=num_parameters,
        context_length=architecture.context_length,
        vocab_size=architecture.vocab_size,
        fingerprint=hashlib.sha256(repr((vocabulary, template)).encode()).hexdigest(),
        vocabulary=vocabulary,
        file_hash=file_hash,
        file_bytes=file_bytes,
        licence=licence or (SPDX.get(stated, stated[:80]) if isinstance(stated, str) and stated else "unknown"),
        bits_per_weight=round(8 * sum(tensor.data.nbytes for tensor in tensors.values()) / num_parameters, 3),
    )
