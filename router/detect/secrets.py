"""Keys, tokens and passwords: things that let somebody in."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from .finding import Finding
from .scan import Scan

_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
# a literal that must occur before the pattern is tried: prose holds few of them
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("AKIA", re.compile(r"(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}(?![A-Za-z0-9])")),  # AWS, long-lived
    ("ASIA", re.compile(r"(?<![A-Za-z0-9])ASIA[A-Z0-9]{16}(?![A-Za-z0-9])")),  # AWS, of a session
    ("AIza", re.compile(r"AIza[\w-]{35}")),  # Google
    ("sk-", re.compile(r"(?<![A-Za-z0-9])sk-(?=[a-z_-]{0,20}[A-Z0-9])[A-Za-z0-9_-]{20,255}")),  # OpenAI and the like
    ("xox", re.compile(r"xox[abeoprs]-[A-Za-z0-9-]{10,255}")),  # Slack
    ("glpat-", re.compile(r"glpat-[\w-]{20,255}")),  # GitLab
    ("eyJ", re.compile(r"(?<![\w-])eyJ[\w-]{8,4096}\.eyJ[\w-]{8,4096}\.[\w-]{0,4096}")),  # JSON web tokens
    ("://", re.compile(r"://[^\s/:@]{0,100}:[^\s/:@]{3,100}@")),  # user:password@host
    ("_", re.compile(r"(?<![A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_\w{22,255}|npm_[A-Za-z0-9]{36})")),
    ("_", re.compile(r"(?<![A-Za-z0-9])(?:[spr]k_(?:live|test)_[A-Za-z0-9]{10,255}|hf_[A-Za-z0-9]{30,255})")),  # Stripe, Hugging Face
)
_VALUE = r"[\"']?(?:[ \t]{0,4}(?::=|[:=]{1,2}|=>)[ \t]{0,4}|[ \t]{1,4}is:?[ \t]{1,4})[\"'`]?([^\s\"'`,;<>(){}\[\]]{6,200})"
# the start of a word that announces a secret -> the rest of it, and a value that must look random
_ANNOUNCED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("bearer", re.compile(r"bearer[ \t]{1,4}([\w.~+/=-]{16,4096})", re.IGNORECASE)),
    ("pass", re.compile(r"pass(?:word|wd|phrase|code)\w{0,30}" + _VALUE, re.IGNORECASE)),
    ("pwd", re.compile(r"pwd" + _VALUE, re.IGNORECASE)),
    ("secret", re.compile(r"secret\w{0,30}" + _VALUE, re.IGNORECASE)),
    ("token", re.compile(r"token" + _VALUE, re.IGNORECASE)),
    ("credential", re.compile(r"credentials?" + _VALUE, re.IGNORECASE)),
    ("key", re.compile(r"(?<=[a-z][ _-])key" + _VALUE + r"|(?<=api)key" + _VALUE, re.IGNORECASE)),  # api key, access_key
)


def find_secrets(scan: Scan) -> list[Finding]:
    """Keys of a known shape, and random-looking values behind a word such as "password"."""
    text, lower = scan.text, scan.lower
    found = [scan.finding("secret", *span) for span in _key_blocks(text)]
    for literal, pattern in _SHAPES:
        if literal in text:
            found += [scan.finding("secret", *match.span()) for match in pattern.finditer(text)]
    for word, pattern in _ANNOUNCED:
        at = lower.find(word)
        while at >= 0:
            match = pattern.match(text, at)
            if match and looks_random(match[match.lastindex or 1]):
                found.append(scan.finding("secret", *match.span(match.lastindex or 1)))
            at = lower.find(word, max(at + 1, match.end() if match else 0))
    return found


def _key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Private keys with all their lines; to the end of the text where no last line is found."""
    at = 0
    while (begin := text.find("PRIVATE KEY", at)) >= 0 and (first := _KEY_BEGINS.search(text, max(at, begin - 55))):
        last = _KEY_ENDS.search(text, first.end())
        at = last.end() if last else len(text)
        yield first.start(), at


def looks_random(value: str) -> bool:
    """Whether a value is more likely a secret than a word or a piece of code: varied, and with a digit among other characters,
    or both cases and a mark that names do not have."""
    value = value.rstrip(".!?:")
    lower, upper, digit = any(map(str.islower, value)), any(map(str.isupper, value)), any(map(str.isdigit, value))
    mixed = (digit and not value.isdigit() and (lower or upper)) or (lower and upper and any(c in "@#$%^&*+=!?~|" for c in value))
    return len(value) >= 6 and mixed and entropy(value) >= 2.2


def entropy(value: str) -> float:
    """Shannon's, in bits per character, of the value's own letter counts."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
