"""The docs name what the code has."""

import re
from pathlib import Path

from hybrid.shared_protocol import errors

ROOT = Path(__file__).parents[1]


def test_every_error_code_is_explained() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.HybridError)]
    codes = {cls.code for cls in classes if "code" in vars(cls)}
    assert len(codes) > 10
    assert {code for code in codes if f"`{code}`" not in page} == set()


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
