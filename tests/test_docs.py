"""The docs name what the code has."""

import ast
import re
import shlex
import tomllib
from pathlib import Path

import click
import hybrid
import pytest
from hybrid.apps.cli.main import cli
from hybrid.router.policy.policy import Policy
from hybrid.shared_protocol import compile_errors, errors
from hybrid.shared_protocol.sources.catalogue import load_catalogue

ROOT = Path(__file__).parents[1]
SOURCES = [
    source for folder in ("shared_protocol", "npu_backends", "router", "edge", "cloud", "apps") for source in (ROOT / folder).rglob("*.py")
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def test_every_error_code_is_explained() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    named = vars(errors) | vars(compile_errors)
    classes = [value for value in named.values() if isinstance(value, type) and issubclass(value, errors.HybridError)]
    codes = {cls.code for cls in classes if "code" in vars(cls)}
    assert len(codes) > 10
    assert {code for code in codes if f"`{code}`" not in page} == set()


def test_every_command_exit_code_and_variable_is_on_the_page_of_the_command_line() -> None:
    page = (ROOT / "docs/command_line.md").read_text()
    assert {name for name in cli.list_commands(click.Context(cli)) if not re.search(rf"`(hybrid )?{name}\b", page)} == set()
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.HybridError)]
    assert {cls.exit_code for cls in classes} <= {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    read = {
        name for source in SOURCES for name in re.findall(r'"(HYBRID_[A-Z_]+)"', source.read_text()) if not name.startswith("HYBRID_SERVE_")
    }
    assert {"HYBRID_HOME", "HYBRID_RUNTIME"} <= read
    assert {name for name in read if f"`{name}`" not in page} == set()


def test_every_option_that_a_variable_sets_says_so_in_its_help() -> None:
    seen = 0
    left: list[click.Command] = [cli]
    while left:
        command = left.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            left += [found for name in command.list_commands(context) if (found := command.get_command(context, name)) is not None]
        for option in command.params:
            if isinstance(option, click.Option) and option.envvar:
                seen += 1
                assert option.show_envvar, f"{command.name}: {option.name}"
    assert seen > 10


def test_every_link_between_pages_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_shown_is_one_that_the_parser_takes(page: Path) -> None:
    for line in "".join(blocks(page, "")).splitlines():
        if not line.startswith("hybrid "):
            continue
        _, name, *arguments = shlex.split(line, comments=True)
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, line
        if arguments:
            command.make_context(name, arguments)


def test_every_snippet_is_python_and_imports_what_there_is() -> None:
    trees = [ast.parse(text) for page in PAGES for text in blocks(page, "python")]
    assert len(trees) > 3
    imported = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "hybrid"]
    assert all(hasattr(hybrid, alias.name) for node in imported for alias in node.names)


def test_every_policy_and_catalogue_shown_is_valid(tmp_path: Path) -> None:
    policies = [text for page in PAGES for text in blocks(page, "toml")]
    assert policies and all(Policy.parse(text) for text in policies)
    (shown,) = blocks(ROOT / "docs/models.md", "json")
    (tmp_path / "ours.json").write_text(shown)
    assert list(load_catalogue(tmp_path / "ours.json")) == ["mine"]


def test_the_package_and_its_build_file_name_one_version() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == hybrid.__version__
