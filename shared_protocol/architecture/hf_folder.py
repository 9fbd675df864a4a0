"""The network of a model that is a folder, as the transformers library saves them.

    config.json                                what is computed
    model.safetensors                          the weights, or several files and model.safetensors.index.json
    tokenizer.json, tokenizer_config.json,     what the tokenizer reads (tokenizer/tokenizer_json.py)
    generation_config.json, chat_template.jinja

Nothing else is opened, and these only as plain files (a link to one is followed, as hubs keep them). Python code that lies there is
never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import ModelNotFound
from ..gguf import Tensor
from ..safetensors import read_shards
from ..strict_json import read_object
from .architecture import Architecture
from .hf_config import architecture_of_config, family_of
from .hf_keys import Keys
from .hf_names import canonical_tensors
from .tensor_shapes import network_tensors

CONFIG = "config.json"


@dataclass(frozen=True, slots=True, eq=False)
class ModelFolder:
    """What a folder says of its network. Tensors are under GGUF's names, matrices views of the mapped files."""

    path: Path
    architecture: Architecture
    tensors: Mapping[str, Tensor]
    weight_bytes: int  # of the files that hold the tensors


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
    weight_bytes = sum(file.stat().st_size for file in shards.files)
    return ModelFolder(path, architecture, network_tensors(path.name, stored, architecture), weight_bytes)
