"""How byte-level BPE cuts text into words, by the name that GGUF files carry.

A pre-tokenizer is a list of patterns: each cuts what the ones before it have left. The patterns are the ones that the models' publishers
give, written as llama.cpp reads them, and each name is proven against llama.cpp in the tests:
- contractions ignore the case of ASCII letters only ("ſ" is no "s");
- in `tekken` and `gpt-4o` a letter outside ASCII counts as upper and as lower case;
- no text is normalised: GGUF files do not say that the model's own tokenizer would.
What is a letter, a digit or a mark follows the `tokenizers` library's Unicode version, as in the publishers' own tokenizers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tokenizers import Regex, pre_tokenizers

from ..errors import ModelFileError

_CONTRACTION = r"'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
_SPACE_RUNS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _words(digits: str, symbols: str = r" ?[^\s\p{L}\p{N}]+[\r\n]*", letter: str = r"\p{L}", spaces: str = _SPACE_RUNS) -> str:
    return rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{letter}+|{digits}|{symbols}|{spaces}"


def _cased_words(digits: str, tail: str) -> str:
    """Words end where lower case meets upper case: "fooBar" is two."""
    head, upper, lower = r"[^\r\n\p{L}\p{N}]?", r"[\p{L}&&[^a-z]]", r"[\p{L}&&[^A-Z]]"
    return rf"{head}{upper}*{lower}+{tail}|{head}{upper}+{lower}*{tail}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACE_RUNS}"


_ONE_DIGIT, _THREE_DIGITS = r"\p{N}", r"\p{N}{1,3}"
_NO_PUNCTUATION = r" ?[^(\s|.,!?…。，、।۔،)]+"
_PATTERNS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "exaone4", "modern-bert", "gigachat", "a.x-4.0", "mellum"): (_GPT2,),
    ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"): (_ONE_DIGIT, _GPT2),
    ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"): (_words(_THREE_DIGITS),),
    ("dbrx", "smaug-bpe", "glm4", "chatglm-bpe"): (_words(_THREE_DIGITS),),
    ("qwen2", "deepseek-r1-qwen", "megrez", "stablelm2", "hunyuan", "grok-2"): (_words(_ONE_DIGIT),),
    ("qwen35",): (_words(_ONE_DIGIT, r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*", r"[\p{L}\p{M}]"),),
    ("seed-coder",): (_words(_ONE_DIGIT, r" ?[^\s\p{L}\p{N}\r\n]+"),),
    ("tekken",): (_cased_words(_ONE_DIGIT, ""),),
    ("gpt-4o", "llama4", "kanana2"): (_cased_words(_THREE_DIGITS, f"(?:{_CONTRACTION})?"),),
    ("falcon",): (r"[\p{P}$+<=>^~|`]+", _GPT2, "[0-9][0-9][0-9]"),
    ("default",): (r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
    # CJK from U+0800 to U+9FA5 and Hangul; white space among them is never met
    ("deepseek-coder",): (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u0800-\u9fa5\uac00-\ud7ff&&[^\\s]]+", _ONE_DIGIT),
    ("deepseek-v3",): (
        _THREE_DIGITS,
        "[\u4e00-\u9fa5\u3040-\u30ff]+",
        # "~" is a symbol by Unicode, not here
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|(?:[^\r\n\p{L}\p{P}\p{S}]|~)?[\p{L}\p{M}]+"
        rf"| ?[\p{{P}}\p{{S}}&&[^~]]+[\r\n]*|{_SPACE_RUNS}",
    ),
    ("poro-chat", "bloom", "gpt3-finnish"): (_NO_PUNCTUATION,),
    ("viking",): (_NO_PUNCTUATION, _ONE_DIGIT),
}
PRE_TOKENIZERS: Mapping[str, tuple[str, ...]] = MappingProxyType({name: cuts for names, cuts in _PATTERNS.items() for name in names})
# begin a text with BOS unless the file says otherwise
ADD_BOS = frozenset({"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "tekken"})
# a word that is a token is that token, whatever the merges would make of it
IGNORE_MERGES = ADD_BOS | {"glm4"}


def pre_tokenizer(name: str) -> pre_tokenizers.PreTokenizer:
    """The library's pre-tokenizer for a name. Raises ModelFileError for one that is not proven."""
    if name not in PRE_TOKENIZERS:
        raise ModelFileError(f"the pre-tokenizer {name!r:.40} is not supported; supported: {', '.join(PRE_TOKENIZERS)}")
    patterns = PRE_TOKENIZERS[name]
    if patterns[-1] == _GPT2:  # the library's own loop for this pattern is faster than its regular expressions
        *before, last = patterns[:-1], pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        return pre_tokenizers.Sequence([*_splits(*before), last])
    return pre_tokenizers.Sequence([*_splits(patterns), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _splits(patterns: tuple[str, ...]) -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
