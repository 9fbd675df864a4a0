"""Tokens and what kind each is: which are text, which are marks that no user may write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import ModelFileError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

# fmt: off
END_TOKEN_TEXTS = frozenset({
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>", "<|return|>", "<|call|>", "</s>", "<eos>",
    "<end_of_turn>", "<end_of_utterance>", "<EOT>", "[EOT]", "[EOS]", "<｜end▁of▁sentence｜>",
})
# fmt: on


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Tokens by id. One that ends a turn by its name is a control token though its file calls it user-defined, or normal when it is
    written "<|…|>": so old files are read as llama.cpp reads them. (Qwen's normal "</s>" stays text, which it is to its publisher.)"""

    tokens: Sequence[str]
    kinds: Sequence[int]
    where: str = "tokenizer.ggml."  # put before a key that an error names

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def ids(self) -> dict[str, int]:
        """Id by text, without empty tokens, which no text contains. Raises ModelFileError when two ids have one text."""
        ids = {token: number for number, token in enumerate(self.tokens)}
        ids.pop("", None)
        if len(ids) != sum(map(bool, self.tokens)):
            token, number = next((token, number) for number, token in enumerate(self.tokens) if token and ids[token] != number)
            raise ModelFileError(f"'{self.where}tokens' holds a token twice: {token!r:.40} has the ids {number} and {ids[token]}")
        return ids

    def guarded(self, number: int, template: str | None) -> bool:
        """Whether the token is a mark that users must not be able to write, not merely a word that has an id of its own.

        Files call both user-defined: "<|user|>" of a chat model, and the "\\n\\n" or "<table>" of Gemma's text.
        """
        text, kind = self.tokens[number], self.kinds[number]
        if kind != USER_DEFINED:
            return kind in (CONTROL, UNKNOWN)
        bracketed = text[:1] in ("<", "[") and text[-1:] in (">", "]")
        return bracketed and (text[1:2] in ("|", "｜") or template is None or text in template)


def vocabulary_of(tokens: Sequence[str], kinds: Sequence[int] | None, where: str = "tokenizer.ggml.") -> Vocabulary:
    """Checked; `kinds` are GGUF's token types, all normal when None."""
    if not tokens:
        raise ModelFileError(f"'{where}tokens' is empty")
    if kinds is None:
        kinds = [NORMAL] * len(tokens)
    if len(kinds) != len(tokens):
        raise ModelFileError(f"'{where}token_type' has {len(kinds)} entries for {len(tokens)} tokens")
    kinds = list(kinds)
    vocabulary = Vocabulary(tokens, kinds, where)
    for text in END_TOKEN_TEXTS & vocabulary.ids.keys():
        number = vocabulary.ids[text]
        if kinds[number] == USER_DEFINED or (kinds[number] == NORMAL and text.startswith("<|")):
            kinds[number] = CONTROL
    return vocabulary
