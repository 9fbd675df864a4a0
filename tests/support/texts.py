"""Random texts on which tokenizers tend to differ."""

from __future__ import annotations

import random
import unicodedata

SPECIAL_PARTS = ["<|im_end|>", "<|im_start|>", "<|im", "_end|>", "<|", "|>", "<repo_name>", "<file_sep>", " ", "a", "\n", "<", ">"]
AWKWARD = ["don't", "WE'LL", " it's", "x²", "½", "①", "١٢٣", "२", "def f(x):\n\treturn x\r\n", "\x04", ".\x06.", "\u0085", "\u200b", "  "]
SPACES = list(" \t\r\n\u00a0\u3000\u2003 aZ9.,'-_é")
# fmt: off
SENTENCES = [
    "Café déjà vu — 123 😊", "He'S I'LL we'd 'tis ſ'ſ", "a  b   c\t\td\r\n\r\n e\n\n\n", "12345678 1 22 333 4444 0x1F 3.14159",
    "中文字符测试 テスト 한국어", "ÀÉîõü ΑΒΓαβγ ДЖЗдж", "fooBar HTTPServer éÉcole ÉCole", "a_b-c+d=e<f>g^h~i|j`k", "x/y//z/\n/", "¿¡§©«»…",
    "١٢٣٤ ½⅓ Ⅷ ²", "!!!\n\n???\r\n", "$100 €5 £3", "e\u0301 n\u0303 \u0301", "👨‍👩‍👧 🏳️‍🌈", "\u3000\u00a0x", "\x0b\x0c\x1c\x85",
    " ", "\n", "  ",
]
# fmt: on


def random_text(rng: random.Random) -> str:
    def characters(low: int, high: int) -> str:
        codes = (rng.randrange(low, high) for _ in range(rng.randrange(1, 40)))
        return "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)

    def parts(of: list[str]) -> str:
        return "".join(rng.choice(of) for _ in range(rng.randrange(1, 40)))

    kinds = [
        lambda: characters(1, 0x110000),
        lambda: characters(1, 0x3000),
        lambda: characters(0x1F300, 0x1FA00),
        lambda: parts(SPECIAL_PARTS),
        lambda: parts(AWKWARD),
        lambda: parts(SPACES),
        lambda: str(rng.randrange(10 ** rng.randrange(1, 30))),
    ]
    return rng.choice(kinds)()


def random_texts(seed: int, count: int) -> list[str]:
    """Every sentence, then sentences joined and random texts; only characters that are of one kind in every version of Unicode."""
    rng = random.Random(seed)
    made = [
        random_text(rng) if rng.random() < 0.7 else "".join(rng.choice(SENTENCES) for _ in range(rng.randrange(2, 5))) for _ in range(count)
    ]
    return ["".join(filter(_never_changed, text)) for text in [*SENTENCES, *made]]


def _never_changed(character: str) -> bool:
    """Python 3.11's Unicode is newer than llama.cpp's for some scripts, older for others: keep what has been the same since 3.2."""
    code = ord(character)
    category = unicodedata.category(character)
    return unicodedata.ucd_3_2_0.category(character) == category != "Cn" or 0x40000 <= code < 0xE0000 or 0x1F300 <= code < 0x1F6D0
