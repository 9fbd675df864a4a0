"""A policy file with other thresholds: the text of the old one, with nothing else changed."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from ...shared_protocol.errors import ConfigError
from ..policy.policy import Policy

_TABLE = re.compile(r"\s*\[\s*complexity\s*\]\s*(?:#.*)?")
_OTHER = re.compile(r"\s*\[")


def patched(text: str, policy: Policy, note: str, source: str = "policy", folder: Path | None = None) -> str:
    """`text`, a policy file, with the bands of `policy` in its table [complexity], and `note` as a comment there.

    `folder`: where files that it names are looked for. Raises ConfigError when `text` is no policy file; asserts that the result says
    just what `policy` says.
    """
    bands = policy.complexity
    ours = [f"# {line}" for line in note.splitlines()] + [f"cascade_from = {bands.cascade_from!r}", f"hard_from = {bands.hard_from!r}"]
    lines, inside, done = [], False, False
    for line in text.splitlines():
        if _OTHER.match(line):
            inside = _TABLE.fullmatch(line) is not None
        if inside and re.match(r"\s*[\"']?(cascade_from|hard_from)[\"']?\s*=", line):
            continue
        lines.append(line)
        if inside and _TABLE.fullmatch(line):
            lines += ours
            done = True
    if not done:
        lines += ([""] if lines else []) + ["[complexity]", *ours]
    result = "\n".join(lines) + "\n"
    try:
        read = Policy.parse(result, source, folder)
    except ConfigError:
        why = f"{source}: the bands cannot be put into this file"
        raise ConfigError(why, param="complexity", hint="write cascade_from and hard_from under a header [complexity]") from None
    assert msgspec.structs.replace(read, version=policy.version) == policy, "the patch changes the bands and nothing else"
    return result
