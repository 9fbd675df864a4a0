"""A folder of config.json, safetensors and tokenizer.json as a model like any other."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hybrid.apps.cli.main import cli
from hybrid.cloud.engine.llm import LLM
from hybrid.npu_backends.cpu.reference import ReferenceExecutor
from hybrid.quant.at_load import quantised
from hybrid.shared_protocol import store as store_module
from hybrid.shared_protocol.errors import ModelFileError, ModelNotFound
from hybrid.shared_protocol.model import load_model
from hybrid.shared_protocol.sampling import SamplingParams
from hybrid.shared_protocol.sources.pull import pull
from hybrid.shared_protocol.store import Store
from hybrid.tests.support.executors import native, needs_native
from hybrid.tests.support.hf_writer import write_tiny_folder, write_tokenizer
from hybrid.tests.support.steps import relative_errors, run
from hybrid.tests.support.tiny_families import write_tiny

IDS = [(i * 7919 + 11) % 320 for i in range(40)]
TABLE = [3, 1, 2]
ASK = [{"role": "user", "content": "What would they know about the people of that year?"}]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = write_tiny_folder(tmp_path / "tiny-qwen", "qwen2", dtype="BF16")
    write_tokenizer(path)
    return path


def test_a_folder_is_a_model_with_the_words_and_the_answers_of_the_same_gguf_file(tmp_path: Path) -> None:
    path = write_tiny_folder(tmp_path / "f", "llama")
    write_tokenizer(path)
    model, gguf = load_model(path), load_model(write_tiny(tmp_path / "m.gguf", "llama"))
    assert model.render_chat(ASK) == gguf.render_chat(ASK)
    assert (model.tokenizer.bos_id, model.tokenizer.eos_ids) == (gguf.tokenizer.bos_id, gguf.tokenizer.eos_ids)
    logits = [run(ReferenceExecutor(each, num_blocks=4, kv_type="f32"), IDS, TABLE) for each in (model, gguf)]
    assert relative_errors(*logits).mean() < 1e-6


def test_its_card_says_what_the_folder_holds(folder: Path) -> None:
    card = load_model(folder).card
    assert (card.name, card.architecture, card.quantisation, card.licence) == ("tiny-qwen", "qwen2", "BF16", "unknown")
    assert (card.vocab_size, card.context_length) == (320, 512)
    assert card.file_bytes == (folder / "model.safetensors").stat().st_size
    vectors = 5 * 64 + 2 * (64 + 32 + 32)  # norms and biases, float32 in memory
    assert card.bits_per_weight == pytest.approx(16 + 16 * vectors / card.num_parameters, abs=1e-3)


def test_its_hash_covers_every_file_that_is_read_and_no_other(folder: Path) -> None:
    names = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    before = load_model(folder).card.file_hash
    assert before == hashlib.sha256("".join(lines).encode()).hexdigest()
    (folder / "README.md").write_text("more words")
    assert load_model(folder).card.file_hash == before
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "rope_theta": 10_000.0}))
    assert load_model(folder).card.file_hash != before


def test_a_folder_is_hashed_once_while_none_of_its_files_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_CACHE_FROM_BYTES", 100_000)
    before = load_model(folder).card.file_hash
    monkeypatch.setattr(store_module, "sha256_of", lambda path: "hashed again")
    assert load_model(folder).card.file_hash == before
    (folder / "config.json").touch()
    assert load_model(folder).card.file_hash == "hashed again"


def test_an_engine_serves_it_in_int8_and_says_so(folder: Path) -> None:
    llm, model = LLM(folder, max_model_len=64), load_model(folder)
    assert llm.model.card == quantised(model, "int8").card
    assert llm.model.card.quantisation == "Q8_0"
    (answer,) = llm.chat([ASK], SamplingParams(temperature=0, max_tokens=4))
    assert len(answer.token_ids) == 4
    plain = LLM(model, quantise="none", max_model_len=64)
    assert plain.model.card.quantisation == "BF16"
    assert plain.chat([ASK], SamplingParams(temperature=0, max_tokens=1))[0].token_ids


@needs_native
def test_the_kernels_compute_a_folder_in_its_own_type_and_in_int8(folder: Path) -> None:
    model = load_model(folder)
    exact = run(ReferenceExecutor(model, num_blocks=4), IDS, TABLE)
    with native(model) as floats, native(quantised(model)) as int8:
        assert relative_errors(run(floats, IDS, TABLE), exact).mean() < 0.03  # activations are rounded to int8 in both
        assert relative_errors(run(int8, IDS, TABLE), exact).mean() < 0.06


def test_a_folder_is_pulled_and_loaded_by_its_name(folder: Path) -> None:
    store = Store()
    card = pull(f"file:{folder}", store, name="mine")
    model = load_model("mine", store)
    assert model.card == card
    assert card.file_hash == load_model(folder).card.file_hash
    assert model.render_chat(ASK) == load_model(folder).render_chat(ASK)
    assert quantised(model).card.quantisation == "Q8_0"


def test_a_pipe_in_the_place_of_a_small_file_is_refused_and_not_waited_for(folder: Path) -> None:
    for name in ("tokenizer_config.json", "chat_template.jinja", "tokenizer.json"):
        kept = (folder / name).read_bytes() if (folder / name).exists() else None
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        with pytest.raises(ModelFileError, match="is no file"):
            load_model(folder)
        (folder / name).unlink()
        if kept is not None:
            (folder / name).write_bytes(kept)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "generation_config.json", "tokenizer.json"])
def test_a_key_that_occurs_twice_is_refused_by_name_in_each_of_its_files(folder: Path, name: str) -> None:
    path = folder / name
    held = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({"twice": None} | held | {"twice_": None}).replace('"twice_"', '"twice"'))
    with pytest.raises(ModelFileError, match=rf"^{name}: the key 'twice' occurs twice$"):
        load_model(folder)


def test_show_describes_a_folder(folder: Path) -> None:
    result = CliRunner().invoke(cli, ["show", str(folder), "--json"], catch_exceptions=False)
    shown = json.loads(result.stdout)
    assert (shown["name"], shown["quantisation"], shown["path"]) == ("tiny-qwen", "BF16", str(folder))


def test_a_vocabulary_larger_than_the_embedding_is_refused(tmp_path: Path) -> None:
    path = write_tiny_folder(tmp_path / "f", "llama")
    write_tokenizer(path)
    root = json.loads((path / "tokenizer.json").read_text())
    root["added_tokens"].append({**root["added_tokens"][0], "id": 320, "content": "<one more>"})
    (path / "tokenizer.json").write_text(json.dumps(root))
    with pytest.raises(ModelFileError, match=r"'vocab_size' in config\.json is 320, tokenizer\.json has 321"):
        load_model(path)


def test_a_folder_without_words_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"tokenizer\.json"):
        load_model(write_tiny_folder(tmp_path / "f", "llama"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelNotFound, match=r"config\.json"):
        load_model(tmp_path / "empty")


def test_a_file_that_is_no_folder_and_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(np.zeros(100, np.uint8).tobytes())
    with pytest.raises(ModelFileError):
        load_model(tmp_path / "model.safetensors", Store())
