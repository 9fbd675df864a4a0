"""Keys, tokens and passwords: things that let somebody in."""

from __future__ import annotations

import math
import re
from collections import Counter

# a literal that must occur (in lower case) before the pattern is tried -> pattern, and the group whose randomness must show
_SHAPES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (("private key-----",), re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----")),
    (("akia", "asia"), re.compile(r"(?<![A-Za-z0-9])A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])")),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"gh[pousr]_[A-Za-z0-9]{30,255}")),
    (("github_pat_",), re.compile(r"github_pat_\w{22,255}")),
    (("glpat-",), re.compile(r"glpat-[\w-]{20,255}")),
    (("sk-",), re.compile(r"(?<![A-Za-z0-9])sk-(?:[a-z]{2,12}-)?[A-Za-z0-9_-]{20,255}")),
    (("k_live_", "k_test_"), re.compile(r"(?<![A-Za-z0-9])[spr]k_(?:live|test)_[A-Za-z0-9]{10,255}")),
    (("xox",), re.compile(r"xox[abeoprs]-[A-Za-z0-9-]{10,255}")),
    (("aiza",), re.compile(r"AIza[\w-]{35}")),
    (("hf_",), re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{30,255}")),
    (("eyj",), re.compile(r"(?<![\w-])eyJ[\w-]{8,4096}\.eyJ[\w-]{8,4096}\.[\w-]{0,4096}")),
)
_GIVEN = re.compile(
    r"(?i)(?:bearer\s{1,4}|(?:pass(?:word|wd|phrase|code)?|pwd|secret|api[ _-]?key|access[ _-]?key|auth[ _-]?token|token|credentials?)"
    r"[\"']?(?:\s{0,4}[:=]{1,2}\s{0,4}|\s{1,4}is\s{1,4}))[\"'`]?([^\s\"'`,;<>(){}\[\]]{6,200})"
)
_GIVEN_HINTS = ("bearer", "pass", "pwd", "secret", "key", "token", "credential")
_LOGIN = re.compile(r"://[^\s/:@]{1,100}:([^\s/:@]{3,100})@")


def count_secrets(text: str) -> int:
    lower = text.lower()
    found = 0
    for literals, pattern in _SHAPES:
        if any(literal in lower for literal in literals):
            found += sum(1 for _ in pattern.finditer(text))
    if any(hint in lower for hint in _GIVEN_HINTS):
        found += sum(looks_random(match[1]) for match in _GIVEN.finditer(text))
    if "://" in lower:
        found += sum(1 for _ in _LOGIN.finditer(text))
    return found


def looks_random(value: str) -> bool:
    """Whether a value is more likely a secret than a word: of mixed kinds of characters, and not one of few repeated ones."""
    kinds = sum((any(c.islower() for c in value), any(c.isupper() for c in value), any(c.isdigit() for c in value)))
    kinds += any(not c.isalnum() for c in value)
    return kinds >= 2 and any(not c.isalpha() for c in value.rstrip(".!?:")) and entropy(value) >= 2.2


def entropy(value: str) -> float:
    """Shannon's, in bits per character, of the value's own letter counts."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
