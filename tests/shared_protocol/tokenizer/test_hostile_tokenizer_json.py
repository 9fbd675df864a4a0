"""tokenizer.json from a stranger: refused by the part at fault, and the process lives on."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from hybrid.shared_protocol.errors import ModelFileError
from hybrid.shared_protocol.tokenizer import tokenizer_of_folder
from hybrid.tests.support.gguf_writer import tiny_vocabulary
from hybrid.tests.support.tokenizer_json import BYTE_LEVEL, METASPACE, added, begin_with, byte_level_json, write_folder


def tiny(**changes: Any) -> dict[str, Any]:
    return byte_level_json(*tiny_vocabulary(), **changes)


def deep(levels: int) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "NFC"}
    for _ in range(levels):
        part = {"type": "Sequence", "normalizers": [part]}
    return part


def changed(**model: Any) -> dict[str, Any]:
    root = tiny()
    return {**root, "model": {**root["model"], **model}}


def split(**fields: Any) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": [{"type": "Split", "invert": False, **fields}, BYTE_LEVEL]}


VOCAB = tiny()["model"]["vocab"]
HOSTILE: list[tuple[Any, str]] = [
    ([], "object"),
    ({}, "no 'model'"),
    (tiny(model=None), "no 'model'"),
    (changed(type="WordPiece"), "WordPiece.*supported: BPE, Unigram"),
    (changed(type=["BPE"]), "not supported"),
    (changed(vocab=None), "malformed"),
    (changed(vocab={"a": "b"}), "malformed"),
    (changed(vocab={**VOCAB, "x": 2**40}), "at most"),
    (changed(vocab={**VOCAB, "x": -1}), "ids from -1"),
    (changed(vocab={**VOCAB, "xx": 5}), "same id 5"),
    (changed(vocab={}, merges=[]), "no token for the byte 0x09"),
    (changed(merges=[["a"]]), "malformed"),
    (changed(merges=["a b c"]), "malformed"),
    (changed(merges=[["q", "zz"]]), "merges' number 0 joins"),
    (changed(merges=[["<", "|im_end|>"]], vocab={**VOCAB, "|im_end|>": 400}), "merges' number 0 can make a control token"),
    (changed(dropout=0.1), "dropout"),
    (changed(continuing_subword_prefix="##"), "continuing_subword_prefix"),
    (changed(unk_token="nobody"), "byte 0x|unk_token"),
    (changed(byte_fallback="yes"), "byte_fallback"),
    (changed(unk_token={"a": 1}), "unk_token"),
    (tiny(post_processor=begin_with("<nobody>", 1)), r"tokenizer\.json: a special token of the 'post_processor' is '<nobody>'"),
    (tiny(normalizer={"type": "BertNormalizer"}), "BertNormalizer"),
    (tiny(normalizer={"type": "Nonsense"}), "Nonsense"),
    (tiny(normalizer="NFC"), "'type'"),
    (tiny(normalizer={"type": "Sequence", "normalizers": None}), "normalizers"),
    (tiny(normalizer={"type": "Sequence", "normalizers": [None]}), "'type'"),
    (tiny(normalizer=deep(60)), "deeper"),
    (tiny(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "normalizer"),
    (tiny(normalizer={"type": "Replace", "pattern": {"Regex": "("}, "content": ""}), "normalizer"),
    (tiny(pre_tokenizer=split(behavior="Isolated")), "pre_tokenizer"),
    (tiny(pre_tokenizer=split(behavior="Isolated", pattern={"Regex": "("})), "pre_tokenizer"),
    (tiny(pre_tokenizer=split(behavior="Removed", pattern={"String": " "})), "removes text"),
    (tiny(pre_tokenizer={"type": "Whitespace"}), "Whitespace.*not supported"),
    (tiny(pre_tokenizer=None), "neither an unknown token nor bytes"),
    (tiny(decoder={"type": "WordPiece"}), "WordPiece"),
    (tiny(post_processor={"type": "BertProcessing"}), "BertProcessing"),
    (tiny(added_tokens={}), None),  # empty: as if there were none
    (tiny(added_tokens=[{"id": "1", "content": "x"}]), "added_tokens"),
    (tiny(added_tokens=[added(5, "<|im_end|>")]), "another one"),
    (tiny(added_tokens=[{**added(2, "<|im_end|>"), "rstrip": 1}]), "rstrip"),
    (tiny(added_tokens=[added(400, "ＡＢ", normalized=True)], normalizer={"type": "NFKC"}), "normalised"),
]  # fmt: skip


@pytest.mark.parametrize(("root", "named"), HOSTILE)
def test_a_file_that_cannot_be_read_is_refused_by_the_part_at_fault(tmp_path: Path, root: Any, named: str | None) -> None:
    folder = write_folder(tmp_path, root)
    if named is None:
        assert tokenizer_of_folder(folder).special_texts == ()
        return
    with pytest.raises(ModelFileError, match=named):
        tokenizer_of_folder(folder)


@pytest.mark.parametrize(
    ("text", "named"),
    [("", "is no JSON"), ("{", "is no JSON"), ('{"model": ' * 100_000, "deep|JSON"), ("[" * 100_000, "deep|JSON"), ("\ud800", "UTF-8")],
    ids=["empty", "cut off", "deep objects", "deep lists", "no UTF-8"],
)  # fmt: skip
def test_bytes_that_are_no_json_are_refused(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "tokenizer.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(ModelFileError, match=named):
        tokenizer_of_folder(tmp_path)


def test_a_folder_without_tokenizer_json_and_a_file_that_is_too_long_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelFileError, match=r"no tokenizer\.json"):
        tokenizer_of_folder(tmp_path)
    with (tmp_path / "tokenizer.json").open("wb") as file:
        file.truncate(1 << 30)  # a hole: no byte of it is written or read
    with pytest.raises(ModelFileError, match="limit"):
        tokenizer_of_folder(tmp_path)


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"tokenizer_config": {"bos_token": 5}}, "bos_token"),
        ({"tokenizer_config": {"bos_token": "nobody"}}, "nobody"),
        ({"tokenizer_config": {"add_bos_token": "yes"}}, "add_bos_token"),
        ({"tokenizer_config": {"chat_template": 7}}, "chat_template"),
        ({"generation_config": {"eos_token_id": "2"}}, "eos_token_id"),
        ({"generation_config": {"eos_token_id": [2, 10**9]}}, "1000000000"),
    ],
)
def test_a_neighbour_that_lies_is_refused_by_its_name(tmp_path: Path, files: dict[str, Any], named: str) -> None:
    with pytest.raises(ModelFileError, match=named):
        tokenizer_of_folder(write_folder(tmp_path, tiny(), **files))


def test_a_pattern_that_explodes_ends_with_an_error_and_not_with_the_process(tmp_path: Path) -> None:
    evil = {"type": "Split", "pattern": {"Regex": r"^(a+)+$"}, "behavior": "Isolated", "invert": False}
    root = tiny(pre_tokenizer={"type": "Sequence", "pretokenizers": [evil, {**BYTE_LEVEL, "use_regex": False}]})
    tokenizer = tokenizer_of_folder(write_folder(tmp_path, root))
    assert tokenizer.decode(tokenizer.encode("aaa")) == "aaa"
    try:
        tokenizer.encode("a" * 60 + "!")
    except ModelFileError as error:
        assert "pattern" in str(error)


ODD: list[Any] = [
    None, True, 0, -1, 2**31, 2**63, 1.5, "", "a", "\0", [], {}, [None], {"type": "NFC"}, {"type": "Sequence"}, "Removed", "Contiguous",
    [["a", 1]], ["a b"], {"a": 0}, {"Regex": "("}, {"Regex": ""}, {"String": ""}, "x" * 300,
]  # fmt: skip
PARTS = {
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"}]},
    "pre_tokenizer": {
        "type": "Sequence",
        "pretokenizers": [
            {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithNext", "invert": False},
            {"type": "Punctuation", "behavior": "Isolated"},
            METASPACE,
            BYTE_LEVEL,
        ],
    },
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a JSON value; of long lists and objects only the first few."""
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    return [path, *(place for key, item in inside[:12] for place in places(item, (*path, key)))]


def test_changed_at_random_it_is_refused_or_reads_every_text(tmp_path: Path) -> None:
    rng, built = random.Random(87), 0
    assert tokenizer_of_folder(write_folder(tmp_path, tiny(**PARTS))).encode("a b")
    for _ in range(200):
        root = copy.deepcopy(tiny(**PARTS) if rng.random() < 0.5 else tiny())
        *path, last = rng.choice(places(root)[1:])
        holder = root
        for key in path:
            holder = holder[key]
        holder[last] = copy.deepcopy(rng.choice(ODD))
        try:
            tokenizer = tokenizer_of_folder(write_folder(tmp_path, root))
            for text in ("", " the and</s><|im_end|>\n", "é😊\u0301 1234  x\r\n\0"):
                ids = tokenizer.encode(text)
                assert all(0 <= number < tokenizer.vocab_size for number in ids)
                assert tokenizer.encode(text, limit=len(ids)) == ids
                tokenizer.decode(ids)
            built += 1
        except ModelFileError:
            pass
    assert 10 < built < 290  # both ways were taken
