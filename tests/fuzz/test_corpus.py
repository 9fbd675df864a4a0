"""Inputs that a coverage-guided search has kept (run.py): no exception but typed errors, no loop and no allocation without a bound."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hybrid.tests.fuzz.bounds import MAX_BYTES, TooMany, within_bounds
from hybrid.tests.fuzz.json_edits import HEADS, edited
from hybrid.tests.fuzz.run import MAX_INPUT, watched

CORPUS = Path(__file__).parent / "corpus"


@pytest.mark.parametrize("target", MAX_INPUT)
def test_every_kept_input_ends_with_a_result_or_a_typed_error_within_bounds(target: str) -> None:
    module = import_module(f"hybrid.tests.fuzz.{target}")
    paths = sorted((CORPUS / target).iterdir())
    assert paths
    for path in paths:
        within_bounds(module.run, path.read_bytes())


@pytest.mark.parametrize("target", MAX_INPUT)
def test_the_search_begins_with_inputs_of_which_one_is_sound(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module(f"hybrid.tests.fuzz.{target}")
    error = "TemplateError" if target == "template" else "HybridError"
    monkeypatch.setattr(import_module("hybrid.tests.fuzz.gguf") if target == "metadata" else module, error, ZeroDivisionError)
    module.run(module.seeds()[0])  # a typed error would be raised


@pytest.mark.parametrize("target", HEADS)
def test_an_edit_of_json_keeps_it_json_and_changes_it(target: str) -> None:
    data = import_module(f"hybrid.tests.fuzz.{target}").seeds()[0]
    changed = {edited(target, data, ["word", '"type"'], seed) for seed in range(50)}
    assert len(changed) > 30
    for other in changed:
        assert other is not None
        assert edited(target, other, ["word"], 0) is not None
    assert edited(target, b"no JSON at all", ["word"], 0) is None


def test_the_corpus_stays_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*")) < 500_000


def test_a_loop_and_an_allocation_without_a_bound_are_found() -> None:
    def loops(data: bytes) -> None:
        while True:
            with suppress(Exception):
                data = data[1:] or b"again"

    with pytest.raises(TooMany, match="steps"):
        within_bounds(loops, b"", max_steps=1000)
    with pytest.raises(TooMany, match="memory"):
        within_bounds(lambda data: bytearray(MAX_BYTES + 1) and None, b"")
    assert within_bounds(len, b"")[0] < 10


def test_one_input_of_each_kind_of_failure_is_noted_and_the_search_goes_on(tmp_path: Path) -> None:
    def run(data: bytes) -> None:
        if data:
            raise {b"k": KeyError, b"v": ValueError}[data[:1]]

    search = watched(run, tmp_path)
    for data in (b"k1", b"", b"k2", b"v1"):
        search(data)
    assert {path.read_bytes() for path in tmp_path.iterdir() if not path.suffix} == {b"k1", b"v1"}
