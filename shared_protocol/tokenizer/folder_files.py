"""The small JSON files beside a model's weights, and what they say of a tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..errors import ModelFileError, ModelNotFound
from ..strict_json import parse_object, read_bytes

MAX_BYTES = 64 << 20  # tokenizer.json of a vocabulary of 262,144 has 33 MB


def read_text(path: Path) -> str | None:
    """None when there is no such file. Raises ModelFileError."""
    try:
        return read_bytes(path, MAX_BYTES).decode()
    except ModelNotFound:
        return None
    except UnicodeDecodeError:
        raise ModelFileError(f"{path.name} is not UTF-8") from None


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file, None when there is no such file. Raises ModelFileError, also for a key that occurs twice."""
    try:
        raw = read_bytes(path, MAX_BYTES)
    except ModelNotFound:
        return None
    value = parse_object(raw, path.name)
    try:
        msgspec.json.decode(raw)  # Python's reader takes NaN, and halves of surrogate pairs, which no text holds
    except (msgspec.DecodeError, RecursionError) as error:
        raise ModelFileError(f"{path.name} is no JSON: {error!s:.80}") from None
    return value


def template_of_folder(folder: Path) -> str | None:
    """The chat template: chat_template.jinja, else the one of tokenizer_config.json (the one named "default", where it has several)."""
    if (text := read_text(folder / "chat_template.jinja")) is not None:
        return text
    template = (read_object(folder / "tokenizer_config.json") or {}).get("chat_template")
    if isinstance(template, list):
        named = {str(item.get("name")): item.get("template") for item in template if isinstance(item, dict)}
        template = named.get("default")
    if template is not None and not isinstance(template, str):
        raise ModelFileError("tokenizer_config.json: 'chat_template' must be a string, or a list of templates with their names")
    return template


def token_text(config: dict[str, Any], name: str) -> str | None:
    """A token that tokenizer_config.json names, given as a string or as an object."""
    token = config.get(name)
    if isinstance(token, dict):
        token = token.get("content")
    if token is not None and not isinstance(token, str):
        raise ModelFileError(f"tokenizer_config.json: {name!r} must be a string or an object with 'content'")
    return token


def token_ids(config: dict[str, Any], name: str, file: str) -> list[int]:
    """One id or a list of ids."""
    value = config.get(name)
    ids = value if isinstance(value, list) else [] if value is None else [value]
    for number in ids:
        if not isinstance(number, int) or isinstance(number, bool):
            raise ModelFileError(f"{file}: {name!r} must be token ids, found {type(number).__name__}")
    return ids


def flag(config: dict[str, Any], name: str) -> bool | None:
    value = config.get(name)
    if value is not None and not isinstance(value, bool):
        raise ModelFileError(f"tokenizer_config.json: {name!r} must be true or false, found {type(value).__name__}")
    return value
