"""A learned router's file: what was written is read, and nothing else is."""

import hashlib
from pathlib import Path

import msgspec
import pytest
from hybrid.router.learned import store
from hybrid.router.learned.model import Model, predict
from hybrid.router.learned.pair import other_pair
from hybrid.shared_protocol.errors import ConfigError, NotFound
from hybrid.tests.router.learned.outcomes import trained_router
from hypothesis import given, settings
from hypothesis import strategies as st

HEAD = len(store.MAGIC) + 32


@pytest.fixture(scope="module")
def model() -> Model:
    return trained_router(80)


class File(bytes):
    """A failing test shows its arguments: a megabyte of numbers would bury the rest."""

    def __repr__(self) -> str:
        return f"File({len(self)} bytes)"


@pytest.fixture(scope="module")
def data(model: Model) -> File:
    return File(store.to_bytes(model))


def test_a_signalling_nan_is_refused_without_a_warning(data: bytes) -> None:
    """As the last of the numbers: converting one warns, which would be an error here."""
    body = data[HEAD:-4] + b"\x01\x00\x80\x7f"
    with pytest.raises(ConfigError, match="no usable number"):
        store.from_bytes(store.MAGIC + hashlib.sha256(body).digest() + body)


def forged(data: bytes, **changed: object) -> bytes:
    """The file with other values, and a digest that fits."""
    body = msgspec.msgpack.encode({**msgspec.msgpack.decode(data[HEAD:]), **changed})
    return store.MAGIC + hashlib.sha256(body).digest() + body


def test_what_was_saved_is_loaded(model: Model, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "router.hybrid"
    saved = store.save(model, path)
    loaded = store.load(path)
    assert store.to_bytes(loaded) == path.read_bytes() == data and len(data) < 1_000_000
    assert loaded.id == saved.id != "" and loaded.about == model.about
    assert predict(loaded, "How many boats?") == predict(model, "How many boats?")
    assert [file.name for file in tmp_path.iterdir()] == ["router.hybrid"]


def test_a_file_that_is_missing_or_cannot_be_written_is_named(model: Model, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nothing\.hybrid"):
        store.load(tmp_path / "nothing.hybrid")
    with pytest.raises(ConfigError, match="router"):
        store.save(model, tmp_path / "no" / "router")


@settings(max_examples=200, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found(data: bytes, place: float, bit: int) -> None:
    broken = bytearray(data)
    broken[int(place * len(data))] ^= 1 << bit
    with pytest.raises(ConfigError):
        store.from_bytes(bytes(broken))


@settings(max_examples=200, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), new=st.binary(max_size=8))
def test_what_is_forged_with_a_fitting_digest_is_read_or_refused_but_never_trips(data: bytes, place: float, new: bytes) -> None:
    body = bytearray(data[HEAD:])
    at = int(place**8 * len(body))  # mostly at the front, where the structure is
    body[at : at + len(new)] = new
    try:
        read = store.from_bytes(store.MAGIC + hashlib.sha256(body).digest() + bytes(body))
    except ConfigError:
        return
    assert 0 <= predict(read, "How many boats?").rank <= 1


@pytest.mark.parametrize("size", [0, 10, HEAD, HEAD + 1, 1000, -1])
def test_a_file_cut_short_is_refused(data: bytes, size: int) -> None:
    with pytest.raises(ConfigError):
        store.from_bytes(data[:size])


def test_each_lie_is_named(data: bytes) -> None:
    about = msgspec.msgpack.decode(data[HEAD:])["about"]
    arrays = msgspec.msgpack.decode(data[HEAD:])["arrays"]
    nan = b"\x00\x00\xc0\x7f"
    lies: list[tuple[dict[str, object], str]] = [
        ({"features": "0" * 16}, "trained for features"),
        ({"buckets": 2**40}, "buckets"),
        ({"buckets": 4096}, "idf holds"),
        ({"about": {**about, "rows": 0}}, "rows"),
        ({"about": {**about, "noise": float("nan")}}, "noise"),
        ({"about": {**about, "trained": "yesterday"}}, "date"),
        ({"about": {**about, "edge": "x" * 1000}}, "too long"),
        ({"arrays": {}}, "other arrays"),
        ({"arrays": {**arrays, "mean": nan * 2}}, "mean holds what is no usable number"),
        ({"arrays": {**arrays, "scale": bytes(len(arrays["scale"]))}}, "scale and idf must be positive"),
        ({"edge": {"type": "isotonic", "scores": [], "values": []}}, "not as a learned router is written"),
        ({"more": 1}, "not as a learned router is written"),
    ]
    for changed, said in lies:
        with pytest.raises(ConfigError, match=said):
            store.from_bytes(forged(data, **changed))
    assert store.from_bytes(forged(data)).about.edge == "small"


def test_a_foreign_or_huge_file_is_not_read(data: bytes, tmp_path: Path) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.write(data)
        file.truncate(2**34)  # sparse
    with pytest.raises(ConfigError, match="at most"):
        store.load(huge)
    with pytest.raises(ConfigError, match="no learned router"):
        store.from_bytes(b"PK\x03\x04" + bytes(100))


def test_a_router_of_another_pair_is_told_by_its_names(model: Model) -> None:
    assert other_pair(model, edge="small", cloud="large") is None
    assert other_pair(model, edge=None, cloud=None) is None
    assert other_pair(model, edge="small", cloud="huge") == "was trained for large as the model of the cloud, here is huge"
    assert other_pair(model, edge="tiny", cloud=None) == "was trained for small as the model of the device, here is tiny"
