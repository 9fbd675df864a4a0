"""A folder with config.json, the head of its weights, and the small files beside them. The input is a byte that says
whose weights, and the files, parted by zero bytes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from hybrid.shared_protocol.architecture.hf_folder import read_folder
from hybrid.shared_protocol.errors import HybridError
from hybrid.tests.fuzz.scratch import empty_folder, scratch
from hybrid.tests.support.hf_writer import CONFIGS, tiny_config, write_tiny_folder

FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "chat_template.jinja", "model.safetensors.index.json")


def run(data: bytes) -> None:
    folder = empty_folder("model")
    (folder / "model.safetensors").symlink_to(_weights(list(CONFIGS)[data[0] % len(CONFIGS)] if data else "llama"))
    for name, content in zip(FILES, data[1:].split(b"\0"), strict=False):
        if content:
            (folder / name).write_bytes(content)
    try:
        read_folder(folder)
    except HybridError:
        return


@cache
def _weights(name: str) -> Path:
    return write_tiny_folder(scratch() / f"tiny-{name}", name) / "model.safetensors"


def seeds() -> list[bytes]:
    templates, index = [{"name": "default", "template": "x"}], {"weight_map": {"a": "model.safetensors"}}
    whole = [bytes([number]) + json.dumps(tiny_config(name)).encode() for number, name in enumerate(CONFIGS)]
    beside = b"\0".join(json.dumps(item).encode() for item in ({"eos_token_id": [1, 2]}, {"chat_template": templates}))
    return [*whole, whole[0] + b"\0" + beside + b"\0{{ messages }}", whole[0] + b"\0\0\0\0" + json.dumps(index).encode()]
