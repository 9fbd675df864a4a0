"""A model that is a folder, as the transformers library saves them.

    config.json                          the network
    model.safetensors, or several and model.safetensors.index.json
    tokenizer.json                       read by the tokenizer, with tokenizer_config.json
    chat_template.jinja                  else `chat_template` in tokenizer_config.json
    generation_config.json               which tokens end a text; else config.json

Only these are opened, and only as plain files (a link to one is followed, as hubs keep them). Python code that lies there is never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .architecture import Architecture
from .errors import ModelFileError, ModelNotFound
from .gguf import Tensor
from .hf_config import architecture_of_config, family_of
from .hf_keys import Keys
from .hf_names import canonical_tensors
from .safetensors import INDEX, read_shards
from .strict_json import read_object, read_text
from .tensor_shapes import network_tensors

CONFIG, GENERATION, TEMPLATE = "config.json", "generation_config.json", "chat_template.jinja"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
MAX_TEMPLATE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, eq=False)
class ModelFolder:
    """What a folder says of its network. Tensors are under GGUF's names, matrices views of the mapped files."""

    path: Path
    architecture: Architecture
    tensors: Mapping[str, Tensor]
    template: str | None
    end_ids: tuple[int, ...]
    weight_bytes: int  # of the files that hold the tensors
    files: tuple[Path, ...]  # all that the model consists of


def read_folder(path: Path) -> ModelFolder:
    """Check and map. Raises ModelNotFound, or ModelFileError naming the file, and the key or tensor at fault."""
    if not (path / CONFIG).exists():
        raise ModelNotFound(
            f"no {CONFIG} in the folder {path}", hint="a model's folder has config.json, .safetensors files and tokenizer.json"
        )
    keys = Keys(CONFIG, read_object(path / CONFIG))
    architecture, family = architecture_of_config(keys), family_of(keys)
    shards = read_shards(path)
    stored = canonical_tensors(
        path.name, shards.tensors, post_norms=family.post_norms, gemma=family.gemma, tied=architecture.tied_embeddings
    )
    others = (CONFIG, GENERATION, TEMPLATE, TOKENIZER, TOKENIZER_CONFIG, INDEX)
    return ModelFolder(
        path,
        architecture,
        network_tensors(path.name, stored, architecture),
        _template(path),
        _end_ids(path, keys, architecture.vocab_size),
        sum(file.stat().st_size for file in shards.files),
        (*(path / name for name in others if (path / name).exists()), *shards.files),
    )


def _template(path: Path) -> str | None:
    """The default chat template, of the several that a folder may name."""
    if (path / TEMPLATE).exists():
        return read_text(path / TEMPLATE, MAX_TEMPLATE)
    template: Any = _optional(path / TOKENIZER_CONFIG).get("chat_template")
    if isinstance(template, list):
        named = {
            entry["name"]: entry.get("template") for entry in template if isinstance(entry, dict) and isinstance(entry.get("name"), str)
        }
        template = named.get("default")
    if template is not None and not isinstance(template, str):
        raise ModelFileError(f"{TOKENIZER_CONFIG}: the key 'chat_template' must be a string, or a list with one named 'default'")
    return template


def _end_ids(path: Path, config: Keys, vocab_size: int) -> tuple[int, ...]:
    generation = Keys(GENERATION, _optional(path / GENERATION))
    keys = generation if "eos_token_id" in generation else config
    found: Any = keys.values.get("eos_token_id")
    ids = found if isinstance(found, list) else [] if found is None else [found]
    right = all(type(number) is int and 0 <= number < vocab_size for number in ids)
    keys.require(right, "eos_token_id", f"must be ids below {vocab_size}, found {found!r:.60}")
    return tuple(ids)


def _optional(path: Path) -> Mapping[str, Any]:
    return read_object(path) if path.exists() else {}
