"""A model, loaded: what every executor, front-end and session needs of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .architecture import Architecture, architecture_of
from .errors import ModelFileError
from .gguf import GgufFile, Tensor, read_gguf
from .model_card import ModelCard, card_of, sha256_of
from .tokenizer import Tokenizer, tokenizer_of


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Tensors are views of the mapped file; nothing is unpacked."""

    card: ModelCard
    architecture: Architecture
    tensors: Mapping[str, Tensor]
    tokenizer: Tokenizer
    template: str | None  # Jinja2, as the file brings it
    path: Path


def load_model(name_or_path: str | Path) -> Model:
    """Load a GGUF file. Raises ModelNotFound or ModelFileError."""
    path = Path(name_or_path)
    gguf = read_gguf(path)
    return model_of(gguf, name=path.stem, file_hash=sha256_of(path))


def model_of(gguf: GgufFile, *, name: str, file_hash: str, licence: str | None = None) -> Model:
    """Check and assemble what a GGUF file holds. `licence` overrides the one that the file states."""
    architecture = architecture_of(gguf)
    tokenizer = tokenizer_of(gguf)
    if tokenizer.vocab_size != architecture.vocab_size:
        rows, tokens = architecture.vocab_size, tokenizer.vocab_size
        raise ModelFileError(f"{gguf.path.name}: 'token_embd.weight' has {rows} rows, 'tokenizer.ggml.tokens' {tokens} entries")
    template = gguf.metadata.get("tokenizer.chat_template")
    if template is not None and not isinstance(template, str):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.chat_template' must be a string")
    card = card_of(gguf, architecture, tokenizer.fingerprint, name=name, file_hash=file_hash, licence=licence)
    return Model(card, architecture, gguf.tensors, tokenizer, template, gguf.path)
