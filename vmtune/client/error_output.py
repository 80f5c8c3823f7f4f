"""Errors as the command prints them, always on stderr."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import json
import re

import click

from vmtune.client.connection.errors import ClientError, problem_document
from vmtune.errors import InvalidInput, VmtuneError

_MOST = 3
_ALIKE = {
    "get": "vm show",
    "list": "vm list",
    "login": "token create",
    "ls": "vm list",
    "ps": "migration list",
    "show": "vm show",
    "status": "health",
}
"""What people type at first, and the command that answers it."""
_NO_COMMAND = re.compile(r"No such command '(.+?)'\.")


def print_error(error: VmtuneError, as_json: bool) -> None:
    """Print one ``error:`` line for each problem, with its remedy below; or a problem document."""
    if as_json:
        document = error.document() if isinstance(error, ClientError) else problem_document(error)
        click.echo(json.dumps(document, indent=2, ensure_ascii=False), err=True)
        return
    from vmtune.client.views.output import prose, remedy

    for problem in error.problems:
        where = f"{problem.field}: " if problem.field else ""
        lines = [*prose(f"error: {where}{_one_line(problem.message)}", err=True)]
        if problem.remedy:
            lines += remedy(_one_line(problem.remedy), err=True)
        for line in lines:
            click.echo(line, err=True)


def usage_error(error: click.ClickException) -> VmtuneError:
    """An error of click about the command line, as an error of vmtune."""
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    remedy = f"see `{ctx.command_path} --help`" if ctx else "see `vmtune --help`"
    if ctx and (unknown := _NO_COMMAND.match(error.message)):
        return _unknown_command(ctx, unknown[1], remedy)
    field = ""
    if isinstance(error, click.BadParameter) and error.param is not None:
        field = error.param.get_error_hint(ctx) if ctx else error.param.name or ""
        field = field.strip("'")
    message = error.message if field and error.message else error.format_message()
    return InvalidInput(message, field=field, code="usage", remedy=remedy)


def _unknown_command(ctx: click.Context, name: str, remedy: str) -> VmtuneError:
    from vmtune.client.near import near

    group = ctx.command
    names = group.list_commands(ctx) if isinstance(group, click.Group) else ()
    below = [f"{each} {name}" for each in names if _has_command(ctx, each, name)]
    if ctx.parent is None and (alike := _ALIKE.get(name)):
        below = [alike, *(each for each in below if each != alike)]
    hint = f"did you mean {' or '.join(below[:_MOST])}?" if below else near(name, names)
    return InvalidInput(
        f"{ctx.command_path} has no command {name}",
        code="usage",
        remedy="; ".join(filter(None, (hint, remedy))),
    )


def _has_command(ctx: click.Context, group: str, name: str) -> bool:
    """Whether the command *group* below this one has one of that name."""
    found = ctx.command.get_command(ctx, group) if isinstance(ctx.command, click.Group) else None
    return isinstance(found, click.Group) and name in found.list_commands(ctx)


def internal_error(error: Exception) -> VmtuneError:
    """An unexpected exception, reported without its traceback."""
    return VmtuneError(
        f"internal error: {type(error).__name__}: {error}",
        code="internal",
        remedy="repeat the command with --debug and report its output",
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
