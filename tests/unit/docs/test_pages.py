"""What README and documentation say of the project is true of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from docs.generator.pages import PAGES as GENERATED
from vmtune.client.cli import COMMANDS, root
from vmtune.model.plan.outcome import Status
from vmtune.model.tunables.tunable import Route

ROOT = Path(__file__).parents[3]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, README.with_name("CONTRIBUTING.md"), *sorted(DOCS.rglob("*.md"))]
EACH_PAGE = pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in PAGES]
)


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 180


def test_every_route_has_a_row() -> None:
    text = (DOCS / "explanation/routes.md").read_text()
    assert {route.value for route in Route} <= set(re.findall(r"^\| `(\w+)` \|", text, re.M))


def test_every_outcome_has_a_row() -> None:
    text = (DOCS / "explanation/routes.md").read_text()
    assert {status.value for status in Status} <= set(
        re.findall(r"^\| \*([\w ]+)\* \|", text, re.M)
    )


@EACH_PAGE
def test_its_commands_and_their_options_exist(page: Path) -> None:
    for line in _commands(page):
        _check(line)


def test_commands_are_found_in_it() -> None:
    assert sum(1 for page in PAGES for _ in _commands(page)) > 150


@EACH_PAGE
def test_its_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = page.read_text()
    named = re.findall(r"`make ([a-z-]+)", text) + re.findall(r"^make ([a-z-]+)", text, re.M)
    assert set(named) <= targets


def test_ci_calls_the_readmes_test_command() -> None:
    assert "make test" in README.read_text()
    assert (ROOT / ".ci/run").read_text().rstrip().endswith("exec make test")


@EACH_PAGE
def test_paths_of_the_repository_that_it_names_exist(page: Path) -> None:
    _check_paths(page.read_text())


@pytest.mark.parametrize("name", GENERATED)
def test_paths_that_a_generated_page_names_exist(name: str) -> None:
    _check_paths(GENERATED[name]())


def _check_paths(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)
    tops = "|".join(("api", "docs", "migrations", "packaging", "tests", "vmtune", "web"))
    for named in re.findall(rf"`((?:{tops})/[\w./-]+)`", text):
        assert (ROOT / named).exists(), named


def test_the_readmes_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text()):
        assert (ROOT / target).exists(), target


def _commands(page: Path) -> Iterator[str]:
    """Calls of vmtune in blocks of code and in the text's code."""
    text = page.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    for block in blocks:
        for line in block.replace("\\\n", " ").splitlines():
            found = re.match(r"(?:[\w./$-]+=\S+ |runuser .* -- |\S*/bin/)*vmtune (\w.*)", line)
            if found:
                yield from found[1].split("; vmtune ")
    without = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    yield from re.findall(r"`vmtune ([a-z][^`]*)`", without)


def _check(line: str) -> None:
    """That the command of *line* exists, with each option that it is given."""
    words = shlex.split(re.split(r"#| [|] | && ", line)[0])
    context = click.Context(root, info_name="vmtune")
    assert words[0] in COMMANDS, line
    command: click.Command = root
    rest = words
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(context, rest[0])
        if found is None:  # the group has a command that need not be named
            rest = ["run", *rest]
            found = command.get_command(context, "run")
        assert found is not None, line
        command, rest = found, rest[1:]
        context = click.Context(command, parent=context)
    known = {name for option in command.get_params(context) for name in _names(option)}
    known |= {name for option in root.params for name in _names(option)} | {"--help"}
    for word in rest:
        if word.startswith("--") and len(word) > 2:
            assert word.partition("=")[0].rstrip("],") in known, f"{word} in: vmtune {line}"


def _names(option: click.Parameter) -> list[str]:
    return [*option.opts, *option.secondary_opts]


def test_the_table_of_attacks_names_tests_that_are_there() -> None:
    tests = Path(__file__).parents[2]
    page = (tests.parent / "docs/explanation/security.md").read_text("utf-8")
    named = re.findall(r"`([\w/]+\.py)` `(test_\w+)`", page)
    rows = page.split("| Attack |")[1].split("\n\n")[0].splitlines()[2:]
    assert rows
    for row in rows:
        assert re.search(r"`[\w/]+\.py` `test_\w+`", row), row
    for file, name in named:
        assert f"def {name}(" in (tests / file).read_text("utf-8"), (file, name)
