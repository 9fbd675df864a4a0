"""A model, loaded: what every executor, front-end and session needs of it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypedDict

from .architecture import Architecture
from .architecture.gguf_architecture import architecture_of
from .architecture.gguf_rotary import FACTOR_TENSORS
from .architecture.hf_folder import ModelFolder, read_folder
from .architecture.tensor_shapes import network_tensors
from .errors import ModelFileError, TemplateError
from .gguf import GgufFile, Tensor, read_gguf
from .model_card import ModelCard, card_of
from .model_files import path_of
from .store import Store
from .template.render import Rendered, render
from .tokenizer import Tokenizer, template_of_folder, tokenizer_of, tokenizer_of_folder


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Tensors are views of the mapped file; nothing is unpacked."""

    card: ModelCard
    architecture: Architecture
    tensors: Mapping[str, Tensor]
    tokenizer: Tokenizer
    template: str | None  # Jinja2, as the file brings it
    path: Path

    def for_context(self, tokens: int) -> Model:
        """The same model where no sequence grows beyond `tokens` (see Architecture.for_context); the weights are shared."""
        return dataclasses.replace(self, architecture=self.architecture.for_context(tokens))

    def render(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[Mapping[str, object]] | None = None,
        add_generation_prompt: bool = True,
        variables: Mapping[str, object] | None = None,
        now: datetime | None = None,
    ) -> Rendered:
        """The prompt's text by the model's own template. Content given as a list of text parts is joined with line breaks.

        Raises TemplateError, also when the model has no template.
        """
        if self.template is None:
            raise TemplateError(f"{self.card.name} has no chat template", hint="send a plain prompt instead of messages")
        bos, eos = self.tokenizer.bos_id, self.tokenizer.eos_id
        return render(
            self.template,
            [{**message, "content": _joined_parts(message.get("content"))} if "content" in message else message for message in messages],
            tools=tools,
            add_generation_prompt=add_generation_prompt,
            bos_token="" if bos is None else self.tokenizer.token_text(bos),
            eos_token="" if eos is None else self.tokenizer.token_text(eos),
            specials=self.tokenizer.special_texts,
            variables=variables,
            now=now,
        )

    def render_chat(self, messages: Sequence[Mapping[str, object]], *, limit: int | None = None, **options: Any) -> list[int]:
        """The prompt's ids: `render`, then `encode`; at most one BOS. Options and errors as for `render`, `limit` as for `encode`."""
        rendered = self.render(messages, **options)
        return self.tokenizer.encode(rendered.text, rendered.literal_spans, limit=limit)


def _joined_parts(content: object) -> object:
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content if isinstance(part, Mapping) and part.get("type") == "text"]
    if len(texts) != len(content) or not all(isinstance(text, str) for text in texts):
        raise TemplateError("only parts of the type 'text' can be rendered", param="messages")
    return "\n".join(str(text) for text in texts)


def load_model(name_or_path: str | Path, store: Store | None = None) -> Model:
    """Load a model of the store by its name, or any by its path: a Path, or a string with a separator or ending in .gguf.

    A path is that of a GGUF file, or of a folder with config.json, safetensors and tokenizer.json. A stored model must be the one that
    was pulled. Raises ModelNotFound, ModelFileError, ChecksumMismatch.
    """
    store = store or Store()
    if isinstance(name_or_path, str) and not name_or_path.endswith(".gguf") and os.sep not in name_or_path:
        stored = store.checked(name_or_path)
        known: _Known = {"name": name_or_path, "file_hash": stored.card.file_hash, "licence": stored.card.licence}
        return folder_model_of(read_folder(stored.path), **known) if stored.path.is_dir() else model_of(read_gguf(stored.path), **known)
    path = path_of(name_or_path)
    if os.path.isdir(path):
        folder = read_folder(path)
        return folder_model_of(folder, name=path.resolve().name, file_hash=store.hash_of(path))
    gguf = read_gguf(path)
    return model_of(gguf, name=path.stem, file_hash=store.hash_of(path))


class _Known(TypedDict):
    """What is known of a model from elsewhere."""

    name: str
    file_hash: str
    licence: str | None


def model_of(gguf: GgufFile, *, name: str, file_hash: str, licence: str | None = None) -> Model:
    """Check and assemble what a GGUF file holds. `licence` overrides the one that the file states."""
    architecture = architecture_of(gguf)
    weights = {name: tensor for name, tensor in gguf.tensors.items() if name not in FACTOR_TENSORS}
    tensors = network_tensors(gguf.path.name, weights, architecture)
    tokenizer = tokenizer_of(gguf)
    if tokenizer.vocab_size > architecture.vocab_size:  # fewer tokens than rows is padding: engines and sessions mask it
        rows, tokens = architecture.vocab_size, tokenizer.vocab_size
        raise ModelFileError(f"{gguf.path.name}: 'token_embd.weight' has {rows} rows, 'tokenizer.ggml.tokens' {tokens} entries")
    template = gguf.metadata.get("tokenizer.chat_template")
    if template is not None and not isinstance(template, str):
        raise ModelFileError(f"{gguf.path.name}: the key 'tokenizer.chat_template' must be a string")
    card = card_of(
        gguf.tensors,
        architecture,
        tokenizer.fingerprint,
        template,
        name=name,
        file_hash=file_hash,
        file_bytes=gguf.path.stat().st_size,
        licence=licence,
        stated=gguf.metadata.get("general.license"),
    )
    return Model(card, architecture, tensors, tokenizer, template, gguf.path)


def folder_model_of(folder: ModelFolder, *, name: str, file_hash: str, licence: str | None = None) -> Model:
    """Assemble what a checked folder holds, which states no licence of its own."""
    architecture, tokenizer = folder.architecture, tokenizer_of_folder(folder.path, folder.architecture.vocab_size)
    template = template_of_folder(folder.path)
    card = card_of(
        folder.tensors,
        architecture,
        tokenizer.fingerprint,
        template,
        name=name,
        file_hash=file_hash,
        file_bytes=folder.weight_bytes,
        licence=licence,
    )
    return Model(card, architecture, folder.tensors, tokenizer, template, folder.path)
