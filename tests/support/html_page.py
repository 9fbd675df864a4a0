"""A page as a browser would read it: every tag closed, nothing fetched, nothing run."""

import re
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "br", "circle", "line", "rect", "polyline", "path"}


class Page(HTMLParser):
    """Checks nesting; collects tags, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID or (tag == "circle" or tag == "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words += data


def checked(file: Path) -> Page:
    html = file.read_text()
    page = Page(html)
    assert "script" not in page.tags and "://" not in html and "url(" not in html and "@import" not in html
    assert not any(name.startswith("on") or name in ("src", "href") for name, _ in page.attributes)
    assert not re.search(r"[\s\"',(]-?(nan|inf)\b", html)  # a number that is none
    return page
