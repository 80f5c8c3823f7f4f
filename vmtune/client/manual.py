"""Manual pages, made from the commands themselves.

    python -m vmtune.client.manual FOLDER

writes vmtune.1 and one page for each subcommand, vmtune-plan.1 and so on; those of a group
(`vmtune profile set`) are sections of its page. See man(7) for the language.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from vmtune import __version__
from vmtune.client.cli import COMMANDS, SECTIONS, root
from vmtune.config.settings import DEFAULT_FILE, Settings

_SHARED = {option.name for option in root.params}
"""Options that every command has: described once, in vmtune(1)."""
_EXIT_CODES = (
    ("0", "Success."),
    ("1", "Error, also of usage."),
    ("2", "Differences: the actual state is not the wanted state."),
    ("130", "Stopped by Ctrl-C."),
)


def pages() -> dict[str, str]:
    """Each page's text, by its file's name."""
    found = {"vmtune.1": "\n".join(_first_page()) + "\n"}
    context = click.Context(root, info_name="vmtune")
    for name, (_, line) in COMMANDS.items():
        command = root.get_command(context, name)
        assert command is not None, name
        found[f"vmtune-{name}.1"] = "\n".join(_page(command, context, name, line)) + "\n"
    return found


def _first_page() -> Iterator[str]:
    yield from _head("vmtune", _text(root))
    yield from (".SH SYNOPSIS", ".B vmtune", r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]...")
    yield ".SH COMMANDS"
    for title, names in SECTIONS.items():
        yield from (".SS", _escaped(title))
        for name in names:
            line = COMMANDS[name][1]
            yield from (".TP", rf"\fBvmtune\-{_escaped(name)}\fR(1)", _escaped(line))
    yield from (
        ".SH OPTIONS",
        "All commands accept these options, before or after the command's name.",
    )
    yield from _options(root, click.Context(root, info_name="vmtune"))
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES:
        yield from (".TP", code, _escaped(meaning))
    yield ".SH FILES"
    settings = Settings()
    for path, what in (
        (DEFAULT_FILE, "Settings of the service, with a description of each."),
        (settings.state_dir, "Databases of the service."),
        (settings.socket_path, "Unix socket of the service."),
    ):
        yield from (".TP", rf"\fI{_escaped(str(path))}\fR", _escaped(what))


def _page(command: click.Command, parent: click.Context, name: str, line: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    yield from _head(f"vmtune-{name}", line)
    yield ".SH SYNOPSIS"
    yield from _synopses(command, context)
    yield ".SH DESCRIPTION"
    yield from _paragraphs(_text(command))
    if any(_options(command, context)):
        yield ".SH OPTIONS"
        yield from _options(command, context)
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        yield from _subcommands(command, context)
    yield from (".SH SEE ALSO", r"\fBvmtune\fR(1), for the options of all commands.")


def _head(name: str, line: str) -> Iterator[str]:
    yield f'.TH "{_escaped(name.upper())}" "1" "" "vmtune {_escaped(__version__)}" "vmtune"'
    yield from (".SH NAME", rf"{_escaped(name)} \- {_escaped(line.rstrip('.'))}")


def _synopses(command: click.Command, context: click.Context) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield _synopsis(command, context)
        return
    for number, (inner, below) in enumerate(_below(command, context)):
        if number:
            yield ".br"
        yield from _synopses(inner, below)


def _subcommands(group: click.Group, context: click.Context) -> Iterator[str]:
    for command, below in _below(group, context):
        if isinstance(command, click.Group):
            yield from _subcommands(command, below)
            continue
        yield from (".SS", _synopsis(command, below))
        yield from _paragraphs(_text(command))
        yield from _options(command, below)


def _below(
    group: click.Group, context: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if not command.hidden:
            yield command, click.Context(command, info_name=name, parent=context)


def _synopsis(command: click.Command, context: click.Context) -> str:
    words = " ".join(_escaped(piece) for piece in command.collect_usage_pieces(context))
    return rf"\fB{_escaped(context.command_path)}\fR {words}"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for option in command.get_params(context):
        shared = (command is not root and option.name in _SHARED) or "--help" in option.opts
        record = option.get_help_record(context)
        if record is not None and record[1] and not shared:
            yield from (".TP", rf"\fB{_escaped(record[0])}\fR", _escaped(record[1]))


def _text(command: click.Command) -> str:
    return inspect.cleandoc(command.help or command.short_help or "")


def _paragraphs(text: str) -> Iterator[str]:
    r"""Paragraphs are filled, but for those that begin with click's mark \b."""
    for number, part in enumerate(re.split(r"\n\s*\n", text.replace("\f", ""))):
        if number:
            yield ".PP"
        if part.startswith("\b"):
            yield from (
                ".nf",
                *map(_escaped, part.removeprefix("\b").strip("\n").split("\n")),
                ".fi",
            )
        else:
            yield _escaped(" ".join(part.split()))


def _escaped(text: str) -> str:
    """Text as roff prints it: a line that begins with a dot or quote would be a request."""
    text = " ".join(text.split("\n")) if "\n" in text else text
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("^", r"\(ha")
    text = text.replace("`", r"\(ga").replace("~", r"\(ti")
    return rf"\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for file, page in pages().items():
        (folder / file).write_text(page)
