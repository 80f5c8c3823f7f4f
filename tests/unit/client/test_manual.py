"""The manual pages: all commands are in them, and man(1) has nothing against them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from vmtune.client.cli import COMMANDS, root
from vmtune.client.manual import pages

PAGES = pages()
MAN = shutil.which("man")


def plain(page: str) -> str:
    """A page's words, without the language that they are in."""
    text = re.sub(r"\\f[A-Z]", "", page)
    for code, expected in (
        (r"\-", "-"),
        (r"\(aq", "'"),
        (r"\(ga", "`"),
        (r"\(ti", "~"),
        (r"\e", "\\"),
    ):
        text = text.replace(code, expected)
    return " ".join(text.split())


def leaves(command: click.Command, context: click.Context) -> list[click.Context]:
    if not isinstance(command, click.Group):
        return [context]
    found = []
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        below = click.Context(inner, info_name=name, parent=context)
        found += [] if inner.hidden else leaves(inner, below)
    return found


def test_each_command_has_its_page() -> None:
    assert set(PAGES) == {"vmtune.1", *(f"vmtune-{name}.1" for name in COMMANDS)}
    for name, (_, line) in COMMANDS.items():
        assert f"vmtune-{name}(1) {line}" in plain(PAGES["vmtune.1"])


def test_every_subcommand_and_every_option_is_told() -> None:
    shared = {option.name for option in root.params}
    for context in leaves(root, click.Context(root, info_name="vmtune")):
        words = context.command_path.split()
        page = plain(PAGES[f"vmtune-{words[1]}.1"])
        assert context.command_path in page
        for option in context.command.params:
            if isinstance(option, click.Option) and option.name not in shared and not option.hidden:
                assert option.opts[0] in page, f"{context.command_path} {option.opts[0]}"


def test_what_all_commands_have_is_told_once() -> None:
    assert "--token-file PATH" in plain(PAGES["vmtune.1"])
    assert all("--token-file" not in PAGES[name] for name in PAGES if name != "vmtune.1")


def test_no_text_is_taken_for_a_request() -> None:
    requests = r"\.(TH|SH|SS|TP|PP|B|br|nf|fi)( .*)?"
    for name, page in PAGES.items():
        for line in page.splitlines():
            if line[:1] in (".", "'"):
                assert re.fullmatch(requests, line), f"{name}: {line}"


@pytest.mark.skipif(not MAN, reason="there is no man(1) here")
@pytest.mark.parametrize("name", ["vmtune.1", "vmtune-profile.1"])
def test_man_shows_it_without_a_warning(name: str, tmp_path: Path) -> None:
    assert MAN
    (tmp_path / name).write_text(PAGES[name])
    shown = subprocess.run(
        [MAN, "--warnings", "-l", "-P", "cat", tmp_path / name],
        env={"MANWIDTH": "80", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert shown.stderr == ""
    assert "SYNOPSIS" in shown.stdout
