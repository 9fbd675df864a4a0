"""In which language a text is written: told by its script, else by the small words that every sentence has. Bounded work, no model."""

from __future__ import annotations

import re

from .reading import HEAD, Reading

MIN_SHARE = 0.12  # of the distinct words, that must be small words of the language

_SMALL = {
    language: frozenset(words.split())
    for language, words in {
        "en": "a an the of and to in is are was what how why who with for this that you your can would do does it my i please about",
        "de": "der die das und ist sind nicht ein eine wie was warum mit für auf von zu ich du wir bitte den dem im kann dir mir mein",
        "fr": "le la les et est sont des une un dans pour que qui comment avec sur vous je nous ce cette du au pas en quel quelle mon où",
        "es": "el la los las y es son una un de que qué cómo por para con del se no mi tu en su más como está este esta cuál dónde",
        "it": "il lo la gli e è sono una un di che come perché per con del della non mi si nel questo questa più da al quali",
        "pt": "o os as e é são uma um de que como por para com do da não me se no na em mais seu este esta você qual",
        "nl": "de het een en is zijn niet wat hoe waarom met voor van op te ik je wij dit dat aan er ook kan naar bij",
        "pl": "i w na jest są nie co jak dlaczego z do się to że dla od po czy mi ten ta przez o proszę jaki",
        "tr": "ve bir bu ne nasıl için ile mi da de çok daha olan neden ben sen var değil gibi kadar lütfen",
        "sv": "och är en ett det som inte vad hur varför med för på av till jag du vi den kan om från",
    }.items()
}
_LANGUAGES: dict[str, list[str]] = {}  # of each small word
for _language, _words in _SMALL.items():
    for _word in _words:
        _LANGUAGES.setdefault(_word, []).append(_language)
_SCRIPTS = [
    ("ja", re.compile("[\u3040-\u30ff]")),  # before Chinese: Japanese has its characters too
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u4e00-\u9fff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("ar", re.compile("[\u0600-\u06ff]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
]

_NOT_LATIN = re.compile("[\u0370-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")


def language_of(reading: Reading) -> str | None:
    """Two letters (ISO 639-1) of one of 19 languages; None when too little of it says which: a single word, numbers, program text."""
    head, words = reading.text[:HEAD], reading.head_words
    if not head.isascii() and _NOT_LATIN.search(head):
        letters = sum(map(len, words))
        for language, script in _SCRIPTS:
            if len(script.findall(head)) > 0.3 * max(1, letters):
                return language
    if len(words) < 3:
        return None
    distinct = set(words)
    counts = dict.fromkeys(_SMALL, 0)
    for word in distinct & _LANGUAGES.keys():
        for language in _LANGUAGES[word]:
            counts[language] += 1
    *_, (next_most, _), (most, best) = sorted((count, language) for language, count in counts.items())
    return best if most > next_most and most >= MIN_SHARE * len(distinct) else None
