"""Keys, tokens and passwords: things that let somebody in."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from .finding import Finding
from .scan import Scan

# A word, how the first line with it begins, and how the last one ends.
_BLOCKS = (
    (
        "PRIVATE KEY",
        re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
        re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    ),
    ("PuTTY-User-Key-File-", re.compile(r"PuTTY-User-Key-File-\d:"), re.compile(r"Private-MAC: [0-9a-f]{1,64}")),
)
_START = r"(?<![A-Za-z0-9])"
# How a key begins (a beginning per word), and how it goes on from there; with whose key it is.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (begin, re.compile(pattern))
    for begins, pattern in (
        ("://", r"://[^\s/:@]{0,100}:[^\s/:@]{3,100}@"),  # user:password@host
        ("&sig=", r"&sig=[\w%+/=-]{20,200}"),  # Azure, a signed address
        ("?sig=", r"\?sig=[\w%+/=-]{20,200}"),
        ("AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),  # age
        ("AIza", r"AIza[\w-]{35}"),  # Google
        ("AKIA", _START + r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),  # AWS, long-lived
        ("ASIA", _START + r"ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),  # AWS, of a session
        ("AccountKey=", r"AccountKey=[\w+/]{40,100}={0,2}"),  # Azure, storage
        ("FwoG", _START + r"FwoG[\w+/=]{100,2000}"),  # AWS, session token
        ("GOCSPX-", r"GOCSPX-[\w-]{20,64}"),  # Google, OAuth
        ("HRKU-", r"HRKU-[\w-]{30,80}"),  # Heroku
        ("NRAK-", r"NRAK-[A-Z0-9]{27}"),  # New Relic
        ("PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),  # Postman
        ("SG.", _START + r"SG\.[\w-]{16,32}\.[\w-]{32,64}"),  # SendGrid
        ("SharedAccessKey=", r"SharedAccessKey=[\w+/]{40,100}={0,2}"),  # Azure, service bus
        ("X-Amz-Signature=", r"X-Amz-Signature=[0-9a-f]{64}"),  # AWS, a signed address
        ("dapi", _START + r"dapi[0-9a-f]{32}(?:-\d)?(?![A-Za-z0-9])"),  # Databricks
        ("dckr_pat_", r"dckr_pat_[\w-]{20,64}"),  # Docker
        ("dop_v1_ doo_v1_ dor_v1_", _START + r"do[opr]_v1_[0-9a-f]{64}"),  # DigitalOcean
        ("eyJ", r"(?<![\w-])eyJ[\w-]{8,4096}\.eyJ[\w-]{8,4096}\.[\w-]{0,4096}"),  # JSON web tokens
        ("ghp_ gho_ ghu_ ghs_ ghr_", _START + r"gh[pousr]_[A-Za-z0-9]{30,255}"),  # GitHub
        ("github_pat_", r"github_pat_\w{22,255}"),
        ("glpat- gldt- glrt- glcbt- glft- glsoat- glc_ glsa_", _START + r"gl[a-z]{1,5}[-_][\w=-]{20,400}"),  # GitLab, Grafana
        ("gsk_", _START + r"gsk_[A-Za-z0-9]{40,80}"),  # Groq
        ("hf_", _START + r"hf_[A-Za-z0-9]{30,255}"),  # Hugging Face
        ("hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{20,200}"),
        ("hvs.", _START + r"hvs\.[\w-]{24,300}"),  # Vault
        ("key-", _START + r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),  # Mailgun
        ("lin_api_", r"lin_api_[A-Za-z0-9]{30,64}"),  # Linear
        ("npm_", _START + r"npm_[A-Za-z0-9]{36}"),
        ("ntn_", _START + r"ntn_[A-Za-z0-9]{40,60}"),  # Notion
        ("pypi-AgE", r"pypi-AgE[\w-]{50,1000}"),
        ("r8_", _START + r"r8_[A-Za-z0-9]{30,60}"),  # Replicate
        ("shpat_ shpca_ shppa_ shpss_", _START + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),  # Shopify
        ("sk-", _START + r"sk-(?=[a-z_-]{0,20}[A-Z0-9])[A-Za-z0-9_-]{20,255}"),  # OpenAI, Anthropic and the like
        ("sk_ rk_ pk_", _START + r"[spr]k_(?:live|test)_[A-Za-z0-9]{10,255}"),  # Stripe
        ("sntrys_ sntryu_", _START + r"sntry[su]_[\w+/=-]{40,300}"),  # Sentry
        ("sq0", _START + r"sq0[a-z]{3}-[\w-]{22,43}"),  # Square
        ("tvly-", _START + r"tvly-[\w-]{20,64}"),  # Tavily
        ("whsec_", r"whsec_[\w+/=]{24,80}"),  # Stripe, Svix
        ("xai-", _START + r"xai-[A-Za-z0-9]{40,120}"),  # xAI
        ("xox", r"xox[abceoprs]-[A-Za-z0-9-]{10,255}"),  # Slack
        ("xapp-", r"xapp-\d-[A-Za-z0-9-]{20,200}"),
        ("ya29.", _START + r"ya29\.[\w-]{20,1000}"),  # Google, OAuth
    )
    for begin in begins.split()
)
# Most texts are prose, which has no run of letters, digits and a key's marks that is as long as all but the shortest keys: then only
# those are looked for. The others by a mark that their beginnings have, and most texts have not.
_SHORT_SHAPES = tuple(shape for shape in _SHAPES if shape[0] in ("://", "xox"))
_LONG_SHAPES: dict[str, list[tuple[str, re.Pattern[str]]]] = {"_": [], "=": [], "": []}
for _shape in _SHAPES:
    if _shape not in _SHORT_SHAPES:
        _LONG_SHAPES["_" if "_" in _shape[0] else "=" if "=" in _shape[0] else ""].append(_shape)
_SHORTEST = 18  # characters of a long one
_RUN = b"x" * _SHORTEST
_RUNS = bytes(120 if chr(code).isalnum() or chr(code) in "_-./=+%:?&" else 32 for code in range(128)) + b"x" * 128
_BOT = re.compile(r"(?<![A-Za-z0-9])\d{8,10}:AA[\w-]{33}(?![\w-])")  # Telegram
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
    spans = list(_key_blocks(text))
    for begins, pattern in _shapes_for(text):
        if begins in text:
            spans += _shaped(text, begins, pattern)
    if ":AA" in text:
        spans += [match.span() for match in _BOT.finditer(text)]
    for word, pattern in _ANNOUNCED:
        if word in lower:
            spans += _announced(text, lower, word, pattern)
    return [scan.finding("secret", *span) for span in spans]


def _shapes_for(text: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    yield from _SHORT_SHAPES
    if _RUN in text.encode("utf-8", "surrogatepass").translate(_RUNS):
        for mark, shapes in _LONG_SHAPES.items():
            if mark in text:
                yield from shapes


def _shaped(text: str, begins: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    at = text.find(begins)
    while at >= 0:
        match = pattern.match(text, at)
        if match:
            yield match.span()
        at = text.find(begins, match.end() if match else at + 1)


def _announced(text: str, lower: str, word: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    at = lower.find(word)
    while at >= 0:
        match = pattern.match(text, at)
        if match and looks_random(match[match.lastindex or 1]):
            yield match.span(match.lastindex or 1)
        at = lower.find(word, max(at + 1, match.end() if match else 0))


def _key_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Private keys with all their lines; to the end of the text where no last line is found."""
    for word, begins, ends in _BLOCKS:
        at = 0
        while (found := text.find(word, at)) >= 0 and (first := begins.search(text, max(at, found - 55))):
            last = ends.search(text, first.end())
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
