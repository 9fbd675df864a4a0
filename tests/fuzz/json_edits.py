"""Edits of JSON that keep it JSON, so that a search gets past the parser: a value or key is replaced, removed, repeated or moved.

head | JSON | tail      head: bytes before the first brace, by target; a safetensors head is the length of the JSON
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

HEADS = {"tokenizer_json": 0, "folder": 1, "listings": 1, "safetensors": 8}  # bytes
VALUES: Sequence[Any] = (
    None, True, False, 0, 1, -1, 2, 3, 64, 320, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 64, 0.5, 1e-9, 1e308, -0.0, "",
    "a", "\ud800", "\0", [], {},
    [[]], [0], [1, 2], ["a", "b"], {"a": 1},
)  # fmt: skip


def edited(target: str, data: bytes, words: Sequence[str], seed: int) -> bytes | None:
    """`data` with one to four edits in its JSON; None where it holds none."""
    head, rest = data[: HEADS[target]], data[HEADS[target] :]
    body, parted, tail = rest.partition(b"\0") if target == "folder" else (rest, b"", b"")
    if target == "safetensors" and len(head) == 8:
        length = min(struct.unpack("<Q", head)[0], len(rest))
        body, tail = rest[:length], rest[length:]
    try:
        root = json.loads(body)
    except (ValueError, RecursionError):
        return None
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        root = _edit(root, words, chance)
    changed = json.dumps(root, ensure_ascii=chance.random() < 0.1, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if target == "safetensors":
        head = struct.pack("<Q", len(changed))
    return head + changed + parted + tail


def _edit(root: Any, words: Sequence[str], chance: random.Random) -> Any:
    places = list(_places(root))
    if not places:
        return chance.choice(VALUES)
    holder, key = chance.choice(places)
    other_holder, other_key = chance.choice(places)
    new = deepcopy(chance.choice([chance.choice(VALUES), other_holder[other_key], _word(words, chance)]))  # may hold `holder`
    action = chance.randrange(5)
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(holder, dict):
        holder[str(_word(words, chance))] = new
    elif action == 2 and isinstance(holder, list):
        holder.insert(chance.randint(0, len(holder)), new)
    elif action == 3 and isinstance(holder[key], int | float):
        holder[key] = holder[key] + chance.choice((-1, 1, 0.5, 256, -1000))
    else:
        holder[key] = new
    return root


def _word(words: Sequence[str], chance: random.Random) -> Any:
    word = chance.choice(words)
    try:
        return json.loads(word)
    except ValueError:
        return word


def _places(root: Any) -> list[tuple[Any, Any]]:
    """Every (container, key or index), but of long lists only some."""
    found: list[tuple[Any, Any]] = []
    pending = [root]
    while pending:
        item = pending.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in [*keys[:24], *keys[-4:]] if len(keys) > 28 else keys:
            found.append((item, key))
            pending.append(item[key])
    return found
