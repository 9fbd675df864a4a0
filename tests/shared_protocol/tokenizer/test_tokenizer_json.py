"""tokenizer.json against the library that defines it and against the same vocabulary in a GGUF file; and files that lie."""

from __future__ import annotations

import copy
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from hybrid.shared_protocol.detokenizer import Detokenizer
from hybrid.shared_protocol.errors import ContextOverflow, ModelFileError
from hybrid.shared_protocol.gguf import read_gguf
from hybrid.shared_protocol.tokenizer import template_of_folder, tokenizer_of, tokenizer_of_folder
from hybrid.tests.support.gguf_writer import tiny_vocabulary
from hybrid.tests.support.sentencepiece import BOS, EOS, vocabulary, write_sentencepiece
from hybrid.tests.support.texts import random_texts
from hybrid.tests.support.tokenizer_json import BYTE_LEVEL, METASPACE, added, begin_with, byte_level_json, sentencepiece_json, write_folder
from tokenizers import Tokenizer as Library

FIRST_BYTE = 3  # of the tiny vocabulary


def tiny(**changes: Any) -> dict[str, Any]:
    return byte_level_json(*tiny_vocabulary(), **changes)


def unigram_json() -> dict[str, Any]:
    tokens, kinds, _ = vocabulary()
    scored = [
        [token, 0.0 if kind != 1 else -3.0 * (len(token) < 2) - zlib.crc32(token.encode()) % 1000 / 100]
        for token, kind in zip(tokens, kinds, strict=True)
        if kind != 6
    ]
    ids = {token: number for number, (token, _) in enumerate(scored)}
    root = sentencepiece_json(vocabulary(), normalizer=None, pre_tokenizer={**METASPACE, "prepend_scheme": "always", "split": True})
    marks = [{**item, "id": ids[item["content"]]} for item in root["added_tokens"]]
    return {**root, "added_tokens": marks, "model": {"type": "Unigram", "unk_id": 0, "vocab": scored}}


def with_flags(**flags: bool) -> dict[str, Any]:
    root = tiny()
    root["added_tokens"] = [*root["added_tokens"], added(320, "<|pad|>", **flags), added(321, "word", special=False, **flags)]
    return root


@pytest.mark.parametrize(
    "root",
    [
        pytest.param(sentencepiece_json(vocabulary()), id="llama 2"),
        pytest.param(sentencepiece_json(vocabulary(), normalizer=None, pre_tokenizer=METASPACE), id="metaspace at the first piece only"),
        pytest.param(unigram_json(), id="unigram"),
        pytest.param(tiny(), id="byte level"),
        pytest.param(tiny(normalizer={"type": "NFC"}), id="NFC"),
        pytest.param(tiny(pre_tokenizer={**BYTE_LEVEL, "add_prefix_space": True}), id="a space before every piece"),
        pytest.param(
            tiny(pre_tokenizer={"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": r"\p{N}{1,3}|\s+|[^\s\p{N}]+"}, "behavior": "Isolated", "invert": False},
                {**BYTE_LEVEL, "use_regex": False}]}),
            id="split by a pattern",
        ),
        pytest.param(with_flags(lstrip=True), id="lstrip"),
        pytest.param(with_flags(rstrip=True), id="rstrip"),
        pytest.param(with_flags(single_word=True), id="single word"),
        pytest.param(with_flags(normalized=True), id="normalized"),
    ],
)  # fmt: skip
def test_a_folder_has_the_ids_of_the_library_that_defines_the_format(tmp_path: Path, root: dict[str, Any]) -> None:
    ours, library = tokenizer_of_folder(write_folder(tmp_path, root)), Library.from_file(str(tmp_path / "tokenizer.json"))
    marks = ["x <|pad|>  y", "a word, words word_ word", " \u2003<|pad|>\u00a0\n", "<|im_end|> a<|im_end|>b", "the<|pad|>the"]
    for text in [*marks, *random_texts(3, 300)]:
        assert ours.encode(text) == library.encode(text).ids, repr(text)


def test_one_vocabulary_has_the_same_ids_from_a_gguf_file_and_from_a_folder(tmp_path: Path) -> None:
    from_file = tokenizer_of(read_gguf(write_sentencepiece(tmp_path / "t.gguf")))
    from_folder = tokenizer_of_folder(write_folder(tmp_path, sentencepiece_json(vocabulary())))
    for text in random_texts(4, 2000):
        assert from_folder.encode(text) == from_file.encode(text), repr(text)
        literal = [(0, len(text))]
        assert from_folder.encode(text, literal) == from_file.encode(text, literal), repr(text)
    every = range(from_file.vocab_size)
    assert list(map(from_folder.token_bytes, every)) == list(map(from_file.token_bytes, every))


def test_smollm2_has_the_same_ids_from_its_gguf_file_and_from_a_folder(tmp_path: Path, smollm2_path: Path) -> None:
    gguf = read_gguf(smollm2_path)
    tokens, merges, kinds = (gguf.metadata[f"tokenizer.ggml.{key}"] for key in ("tokens", "merges", "token_type"))
    from_folder = tokenizer_of_folder(write_folder(tmp_path, byte_level_json(tokens, merges, kinds.tolist())))  # type: ignore[arg-type, attr-defined]
    from_file = tokenizer_of(gguf)
    for text in random_texts(5, 1000):
        assert from_folder.encode(text) == from_file.encode(text), repr(text)


@pytest.mark.parametrize("root", [tiny(), unigram_json(), sentencepiece_json(vocabulary())], ids=["byte level", "unigram", "llama 2"])
def test_special_text_that_a_user_typed_stays_text(tmp_path: Path, root: dict[str, Any]) -> None:
    tokenizer = tokenizer_of_folder(write_folder(tmp_path, root))
    assert tokenizer.special_texts
    for special in tokenizer.special_texts:
        inside = tokenizer.encode(special, add_bos=False)
        assert len(inside) == 1
        if special != "<unk>":  # what it stands for are characters that no token writes
            assert inside[0] not in tokenizer.encode(special, [(0, len(special))], add_bos=False)


def test_bos_and_ends_come_from_the_files_beside_it(tmp_path: Path) -> None:
    root = sentencepiece_json(vocabulary())
    told = {"bos_token": {"content": "<s>"}, "eos_token": "</s>"}
    tokenizer = tokenizer_of_folder(write_folder(tmp_path, root, tokenizer_config=told, generation_config={"eos_token_id": [2, 5]}))
    assert (tokenizer.bos_id, tokenizer.eos_id, tokenizer.add_bos) == (BOS, EOS, True)
    assert {2, 5} <= tokenizer.eos_ids
    assert tokenizer.encode("a")[0] == BOS
    assert tokenizer.encode("<s>a").count(BOS) == 1
    assert tokenizer.encode("<s>a", [(0, 4)]).count(BOS) == 1
    silent = tokenizer_of_folder(write_folder(tmp_path, root, tokenizer_config={**told, "add_bos_token": False}))
    assert BOS not in silent.encode("a")
    ends = tokenizer_of_folder(write_folder(tmp_path, root, tokenizer_config={**told, "add_eos_token": True}))
    assert ends.add_eos
    assert ends.encode("a")[-1] != EOS  # a prompt goes on
    assert ends.encode("a", add_eos=True)[-1] == EOS


def test_the_template_of_a_folder_is_its_own_file_or_the_default_of_several(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, tiny())
    assert template_of_folder(folder) is None
    several = [{"name": "default", "template": "{{ messages }}"}, {"name": "tool_use", "template": "no"}]
    assert template_of_folder(write_folder(tmp_path, tiny(), tokenizer_config={"chat_template": several})) == "{{ messages }}"
    (folder / "chat_template.jinja").write_text("own")
    assert template_of_folder(folder) == "own"


def test_the_space_of_an_answer_is_kept_and_that_of_a_whole_text_is_taken_away(tmp_path: Path) -> None:
    tokenizer = tokenizer_of_folder(write_folder(tmp_path, sentencepiece_json(vocabulary())))
    ids = tokenizer.encode("a😊a", add_bos=False)
    detokenizer = Detokenizer(tokenizer)
    assert "".join(map(detokenizer.push, ids)) + detokenizer.flush() == " a😊a" == tokenizer.decode(ids)
    assert tokenizer.decode(ids, whole=True) == "a😊a"


@pytest.mark.parametrize(
    "root", [tiny(normalizer={"type": "NFKC"}), sentencepiece_json(vocabulary()), with_flags(rstrip=True), unigram_json()]
)
def test_a_limit_refuses_nothing_that_fits(tmp_path: Path, root: dict[str, Any]) -> None:
    tokenizer = tokenizer_of_folder(write_folder(tmp_path, root))
    for text in [*random_texts(6, 200), "<|pad|>" + " " * 500, "ﷺ" * 50, "e\u0301" * 50]:
        ids = tokenizer.encode(text)
        assert tokenizer.encode(text, limit=len(ids)) == ids
    if "vocab" in root["model"] and root["model"]["type"] == "BPE":
        with pytest.raises(ContextOverflow, match="at least"):
            tokenizer.encode("a" * 100_000, limit=100)


def test_rows_of_logits_past_the_tokens_are_no_text_and_change_no_fingerprint(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, tiny())
    tokenizer, padded = tokenizer_of_folder(folder), tokenizer_of_folder(folder, 384)
    assert (tokenizer.vocab_size, padded.vocab_size) == (320, 384)
    assert padded.decode([FIRST_BYTE + 0x41, 383]) == "A"
    assert padded.token_text(383) == ""
    assert padded.fingerprint == tokenizer.fingerprint
    with pytest.raises(ModelFileError, match=r"is 300, .* has 320"):
        tokenizer_of_folder(folder, 300)


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "NFC"}},
        {"pre_tokenizer": BYTE_LEVEL},
        {"added_tokens": tiny()["added_tokens"][:-1]},
        {"post_processor": begin_with("<|im_start|>", 1)},
    ],
)
def test_whatever_changes_ids_changes_the_fingerprint(tmp_path: Path, change: dict[str, Any]) -> None:
    plain = tokenizer_of_folder(write_folder(tmp_path, tiny()))
    assert tokenizer_of_folder(write_folder(tmp_path, copy.deepcopy(tiny()))).fingerprint == plain.fingerprint
    assert tokenizer_of_folder(write_folder(tmp_path, tiny(**change))).fingerprint != plain.fingerprint
    assert json.dumps(change) != "{}"
