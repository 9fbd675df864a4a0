"""What servers say about their files: a hub's list, and the pages of a package index in JSON and HTML. The first byte says which."""

from __future__ import annotations

import json

from hybrid.shared_protocol.errors import HybridError
from hybrid.shared_protocol.model_files import is_model_file
from hybrid.shared_protocol.sources.hf_source import HubName, read_listing
from hybrid.shared_protocol.sources.package_index import choose, read_page, wheels_of
from hybrid.shared_protocol.sources.web import Access, check_url

HUB, ENDPOINT, INDEX = HubName("me/tiny", "main", None), "https://hub.example", "https://index.example/simple/a/"


def run(data: bytes) -> None:
    kind, raw = data[:1], data[1:]
    try:
        if kind == b"h":
            found = read_listing(raw, HUB, ENDPOINT, Access())
            assert len(found.names) == len(found.remotes) > 0
            for name, remote in zip(found.names, found.remotes, strict=True):
                assert "/" not in name
                assert name.endswith(".gguf") or is_model_file(name)
                assert check_url(remote.url).startswith(f"{ENDPOINT}/me/tiny/resolve/")
                assert ".." not in remote.url.split("/")
        else:
            files = read_page(raw, "application/vnd.pypi.simple.v1+json" if kind == b"j" else "text/html", INDEX)
            wheels = list(wheels_of(files, "a", INDEX, "index.example", "me:s3cret"))
            for version in (None, "1.0"):
                chosen = choose(wheels, version)
                assert chosen is None or chosen in wheels
            for wheel in wheels:
                assert not wheel.url.startswith("file:")
                assert "s3cret" not in wheel.url or wheel.url.split("@")[1].startswith("index.example")
    except HybridError:
        return


def seeds() -> list[bytes]:
    listing = {
        "sha": "c0ffee",
        "cardData": {"license": "mit"},
        "siblings": [{"rfilename": "a.gguf", "size": 9, "lfs": {"sha256": "0" * 64, "size": 9}}, {"rfilename": "sub/README.md", "size": 1}],
    }
    folder = {"sha": "main", "siblings": [{"rfilename": name} for name in ("config.json", "tokenizer.json", "model.safetensors", "x.bin")]}
    files = [{"filename": "a-1.0-py3-none-any.whl", "url": "../../a-1.0-py3-none-any.whl#sha256=0", "hashes": {"sha256": "0"}, "size": 1}]
    files += [{"filename": f"a-{version}-py3-none-any.whl", "url": "/x", "yanked": "bad"} for version in ("2.0rc1", "1!1.0.post1")]
    page = b'<!DOCTYPE html><a href="../a-1.0-py3-none-any.whl#sha256=00" data-yanked>x</a><a href="/a-2-py3-none-any.whl">y</a>'
    return [*(b"h" + json.dumps(item).encode() for item in (listing, folder)), b"j" + json.dumps({"files": files}).encode(), b"p" + page]
