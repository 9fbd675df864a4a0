"""Which placeholder stands for which value: one mapping per conversation, in the memory of the device and nowhere else."""

from __future__ import annotations

import os
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NoReturn

from .placeholder import Placeholder, label_of, suffix_of

MAX_VALUES = 1_000
MAX_CHARACTERS = 2**20  # of all values together


class RedactionFailed(Exception):
    """Says why, without a word of what was to be redacted. It never leaves the router: the conversation stays on the device."""


class RedactionMapping:
    """Equal values (as Unicode sees them, by NFC) have one placeholder, different ones have different placeholders.

    It only grows, up to a bound, until `forget` ends it. It can be used from several threads; it can be neither printed nor pickled.
    """

    def __init__(self, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._secret = random_bytes(16)
        self._placeholders: dict[str, Placeholder] = {}  # by value, NFC
        self._values: dict[str, str] = {}  # by form, as first written; in the same order
        self._numbers: Counter[str] = Counter()  # of the labels
        self._characters = 0
        self._forgotten = False
        self._lock = threading.Lock()

    @staticmethod
    def of_a_dry_run() -> RedactionMapping:
        """With a secret that everybody knows, so that every run shows the same placeholders: for what is never sent."""
        return RedactionMapping(bytes)

    def __repr__(self) -> str:
        return f"RedactionMapping({len(self._values)} values)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a RedactionMapping cannot be pickled or copied: it stays where its conversation is")

    def placeholder(self, kind: str, value: str, avoid: str = "") -> Placeholder:
        """The placeholder of `value`, made if there is none yet; its kind is the first under which the value was found.

        `avoid`: squeezed texts in which a new placeholder's letters must not occur. Raises RedactionFailed when there are too many
        values, or after `forget`.
        """
        key = unicodedata.normalize("NFC", value)
        with self._lock:
            if self._forgotten:
                raise RedactionFailed("the conversation was forgotten")
            found = self._placeholders.get(key)
            if found is not None:
                return found
            if len(self._values) >= MAX_VALUES or self._characters + len(value) > MAX_CHARACTERS:
                raise RedactionFailed(f"a conversation holds at most {MAX_VALUES} values of {MAX_CHARACTERS} characters together")
            label = label_of(kind)
            attempt = 0
            while (suffix := suffix_of(self._secret, key, attempt)) in avoid:
                attempt += 1
            self._numbers[label] += 1
            made = Placeholder(kind, self._numbers[label], suffix)
            self._placeholders[key] = made
            self._values[made.form] = value
            self._characters += len(value)
            return made

    def values(self) -> Mapping[str, str]:
        """Form -> value, as of now: what a restorer needs."""
        with self._lock:
            return dict(self._values)

    def entries(self) -> list[tuple[Placeholder, str]]:
        """Every placeholder with its value, as first written, in the order in which they were made."""
        with self._lock:
            return list(zip(self._placeholders.values(), self._values.values(), strict=True))

    def forget(self) -> None:
        """The conversation has ended: drop every value. No placeholder is made from now on; answers on their way keep their own copy."""
        with self._lock:
            self._forgotten = True
            self._secret = b""
            self._placeholders.clear()
            self._values.clear()
            self._numbers.clear()
