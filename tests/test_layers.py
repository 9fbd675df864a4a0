"""Imports run downward only (docs/structure.md); the lazy root is exempt."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# a package may import itself and what stands in its set
BELOW = {
    "shared_protocol": set(),
    "quant": {"shared_protocol"},
    "npu_backends": {"shared_protocol", "quant"},
    "compiler": {"shared_protocol", "quant", "npu_backends"},
    "router": {"shared_protocol", "quant", "npu_backends"},
    "edge": {"shared_protocol", "quant", "npu_backends", "compiler", "router"},
    "cloud": {"shared_protocol", "quant", "npu_backends", "compiler", "router"},
    "apps": {"shared_protocol", "quant", "npu_backends", "compiler", "router", "edge", "cloud"},
}
# decisions are pure: these never import torch, and never read a clock or a random source of their own
PURE = [
    "cloud/engine/scheduler.py",
    "cloud/engine/block_pool.py",
    "cloud/engine/prefix_cache.py",
    "cloud/engine/request.py",
    "cloud/engine/session.py",
    "shared_protocol/filters.py",
    "shared_protocol/stop.py",
    "shared_protocol/verify.py",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "router").rglob("*.py"))),
]


def imports(path: Path) -> list[str]:
    """Absolute dotted names of all that `path` imports, inside functions too."""
    package = ("hybrid", *path.relative_to(ROOT).parent.parts)
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *(node.module or "").split("."))).strip(".")
            names += [f"{module}.{alias.name}" for alias in node.names]
    return names


@pytest.mark.parametrize("package", BELOW)
def test_a_package_imports_only_what_lies_below_it(package: str) -> None:
    allowed = BELOW[package] | {package}
    for path in (ROOT / package).rglob("*.py"):
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "hybrid" and len(parts) > 1 and parts[1] in BELOW:
                assert parts[1] in allowed, f"{path.relative_to(ROOT)} imports {name}, which does not lie below {package}"


@pytest.mark.parametrize("name", PURE)
def test_a_decision_reads_no_clock_and_no_random_source(name: str) -> None:
    heads = {imported.split(".")[0] for imported in imports(ROOT / name)}
    assert not heads & {"torch", "time", "random", "secrets", "datetime"}, name


def test_the_base_never_imports_torch() -> None:
    for package in BELOW:
        for path in (ROOT / package).rglob("*.py"):
            assert "torch" not in {imported.split(".")[0] for imported in imports(path)}, path
