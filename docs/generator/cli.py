"""The page of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from docs.generator.markdown import code, plain, table
from vmtune.client.cli import COMMANDS, root

_SHARED = {option.name for option in root.params}
_EXIT_CODES = (
    ("0", "Done, and as wanted."),
    ("1", "An error, also of usage."),
    ("2", "Differences: what was found is not what was asked for."),
    ("130", "Stopped by Ctrl-C."),
)


def page() -> str:
    """Every command with its options."""
    context = click.Context(root, info_name="vmtune")
    parts = [
        "# Command line",
        "Every command of `vmtune`, as `vmtune COMMAND --help` prints it. The Debian package has "
        "the same as manual pages (`man vmtune-migrate`).",
        table(("exit code", "means"), _EXIT_CODES),
        "## Options of every command",
        "They may stand before the command's name or after it.",
        _options(root, context),
    ]
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None, name
        inner = click.Context(command, info_name=name, parent=context)
        parts.append(f"## vmtune {name} {{ #{name} }}")
        parts += _command(command, inner, titled=True)
    return "\n\n".join(part for part in parts if part)


def _command(command: click.Command, context: click.Context, titled: bool) -> Iterator[str]:
    if not titled:
        anchor = "-".join(context.command_path.split()[1:])
        yield f"### {context.command_path} {{ #{anchor} }}"
    if isinstance(command, click.Group):
        yield from _text(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            if not below.hidden:
                inner = click.Context(below, info_name=name, parent=context)
                yield from _command(below, inner, titled=False)
        return
    yield f"```\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```"
    yield from _text(command)
    yield _options(command, context)


def _text(command: click.Command) -> Iterator[str]:
    for part in inspect.cleandoc(command.help or command.short_help or "").split("\n\n"):
        if part.startswith("\b"):
            yield f"```\n{part.removeprefix(chr(8)).strip(chr(10))}\n```"
        else:
            yield plain(" ".join(part.replace("\f", "").split()))


def _options(command: click.Command, context: click.Context) -> str:
    rows = []
    for option in command.get_params(context):
        record = option.get_help_record(context)
        shared = command is not root and option.name in _SHARED
        if record and record[1] and not shared and "--help" not in option.opts:
            rows.append((code(record[0]), plain(record[1])))
    return table(("option", "meaning"), rows) if rows else ""
