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
# letters that have a case, by Unicode 11 without what it added to Georgian: the class that DeepSeek LLM's publisher writes out
_CASED = """
    0041-005A 0061-007A 00B5 00C0-00D6 00D8-00F6 00F8-01BA 01BC-01BF 01C4-0293 0295-02AF 0370-0373 0376-0377 037B-037D 037F 0386
    0388-038A 038C 038E-03A1 03A3-03F5 03F7-0481 048A-052F 0531-0556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B
    1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4
    1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 212A-212D 212F-2134
    2139 213C-213F 2145-2149 214E 2183-2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2-2CF3 A640-A66D A680-A69B A722-A76F A771-A787 A78B-A78E
    AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF
    1E900-1E943
"""
_CASED_LETTERS = "".join("-".join(chr(int(code, 16)) for code in span.split("-")) for span in _CASED.split())
# from U+0800 to U+9FA5, and Hangul; white space among them is never met
_CJK = "[\u0800-\u9fa5\uac00-\ud7ff&&[^\\s]]+"
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
    ("deepseek-coder",): (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, _ONE_DIGIT),
    ("deepseek-llm",): (
        r"[\r\n]",
        rf"\s?[{_CASED_LETTERS}]+",
        "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3001\u3002]+",  # from ":" to "~" lie all ASCII letters
        r"\s+\z",
        _CJK,
        r"\p{N}+",
    ),
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
