"""Which llama.cpp is taken, and what is noticed about one that is not what it should be."""

from __future__ import annotations

import ctypes
import importlib.metadata
import struct
from pathlib import Path

import msgspec
import pytest
from hybrid.edge.llama_cpp import library
from hybrid.edge.llama_cpp.library import LlamaCppUnavailable, find_library, load_library
from hybrid.edge.llama_cpp.params import Batch, Params, check_batch, check_defaults, context_params


def test_a_library_that_the_user_names_comes_first(tmp_path: Path) -> None:
    named = tmp_path / "libllama.so"
    named.write_bytes(b"")
    assert find_library({"HYBRID_LIBLLAMA": str(named)}).path == named
    with pytest.raises(LlamaCppUnavailable, match=r"HYBRID_LIBLLAMA names .*, which is no file"):
        find_library({"HYBRID_LIBLLAMA": str(tmp_path / "absent.so")})


def test_a_file_that_is_no_library_or_another_one_is_refused_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = tmp_path / "libllama.so"
    text.write_text("no library")
    monkeypatch.setenv("HYBRID_LIBLLAMA", str(text))
    with pytest.raises(LlamaCppUnavailable, match=r"libllama\.so cannot be loaded"):
        load_library()
    monkeypatch.setenv("HYBRID_LIBLLAMA", msgspec._core.__file__)  # modules of Python itself may be built into it
    with pytest.raises(LlamaCppUnavailable, match="has no function llama_backend_init"):
        load_library()


def test_without_a_library_the_error_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "PACKAGES", {"nothing": ("hybrid_nothing_here", "*", (1,))})
    with pytest.raises(LlamaCppUnavailable, match="pip install xllamacpp"):
        find_library({})


def test_an_old_library_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.2.1")
    with pytest.raises(LlamaCppUnavailable, match=r"0\.2\.1 is too old, at least"):
        find_library({})


def test_llama_cpp_python_goes_before_the_wheel_and_brings_its_library_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "llama_cpp"
    (folder / "lib").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('nobody runs their code')")
    (folder / "lib" / "libggml.so").write_bytes(b"")
    (folder / "lib" / "libllama.so").symlink_to(find_library({}).path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(importlib.metadata, "version", lambda name: {"llama-cpp-python": "0.3.36"}[name])
    found = find_library({})
    assert (found.path, found.origin, found.version) == (folder / "lib" / "libllama.so", "llama-cpp-python", "0.3.36")
    monkeypatch.setenv("HYBRID_LIBLLAMA", "")
    assert load_library().found == found


def test_the_installed_library_is_laid_out_as_known() -> None:
    functions = load_library().functions
    assert check_defaults(functions) is None
    assert check_batch(functions) is None
    params = context_params(functions, tokens=1024, batch=64, sequences=3, unified=True)
    assert struct.unpack_from("<4I", params.content) == (1024, 64, 64, 3)


class Drifted:
    """A library whose structs have another layout."""

    def __init__(self, params: bytes) -> None:
        self._params = params

    def llama_context_default_params(self) -> Params:
        params = Params()
        ctypes.memmove(params.content, self._params, len(self._params))
        return params

    def llama_batch_init(self, tokens: int, embeddings: int, sequences: int) -> Batch:
        return Batch(n_tokens=tokens)


def test_a_layout_that_moved_is_noticed_before_anything_is_written() -> None:
    head = struct.pack("<4I", 512, 2048, 512, 1)
    flags = bytes(64) + bytes((0, 1, 1, 1, 1, 0))
    drifted = (Drifted(bytes(8) + head + flags), Drifted(head + bytes(200)), Drifted(struct.pack("<5I", 7, 512, 2048, 512, 1) + flags))
    for functions in drifted:
        assert check_defaults(functions) is not None  # type: ignore[arg-type]
        assert check_batch(functions) == "llama_batch has other fields"  # type: ignore[arg-type]
    assert check_defaults(Drifted(head + flags)) is None  # type: ignore[arg-type]
