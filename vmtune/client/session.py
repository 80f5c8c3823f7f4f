"""What every command shares: the common options and the client of the service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from vmtune.client.connection.http import Client, Document, Url
from vmtune.client.views import sorting
from vmtune.client.views.formats import FORMATS
from vmtune.client.views.output import Column, table
from vmtune.config.settings import Settings
from vmtune.remote.credentials import find_token

_F = TypeVar("_F", bound=Callable[..., Any])  # any: click calls it with its options

CLEAN, ERROR, DIFFERENCES, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: success; an error; differences; stopped by Ctrl-C."""


_TABLE = "table"


@dataclass
class Session:
    """The common options of this invocation.

    :param socket: where the service listens; None for the settings' path.
    :param output: how to print: ``table``, or one of ``json``, ``yaml``, ``csv`` and ``name``.
    :param wide: show every column and whole ids, also beyond the terminal's width.
    :param sort: columns or fields that lists are sorted by; empty for the service's order.
    :param url: the service's, instead of its socket.
    :param token_file: holds the token for the URL.
    :param reason: why the command changes something, for the audit log.
    :param watch: show it again every :attr:`every` seconds, until Ctrl-C or the end.
    :param ended: what was shown last has ended and will not change.
    :param echo: prints a line of the result.
    :param quiet: print errors only; see the exit code.
    """

    socket: Path | None = None
    output: str = _TABLE
    wide: bool = False
    sort: str = ""
    watch: bool = False
    every: float = 2.0
    ended: bool = False
    echo: Callable[[str], None] = click.echo
    quiet: bool = False
    debug: bool = False
    url: str = ""
    token_file: Path | None = None
    reason: str = ""

    @cached_property
    def client(self) -> Client:
        """The service's client."""
        return self.connect()

    def connect(self, answer_within_s: float | None = None) -> Client:
        """A client of the service.

        :raise InvalidInput: the URL or the token file cannot be used.
        """
        token = find_token(os.environ, self.token_file, remote=bool(self.url))
        given: dict[str, Any] = {"token": token, "reason": self.reason}  # any: keywords
        if answer_within_s is not None:
            given["answer_within_s"] = answer_within_s
        if self.url:
            return Client(Path(), url=Url.read(self.url), **given)
        return Client(self.socket_path, **given)

    @property
    def socket_path(self) -> Path:
        """Where the service listens."""
        return self.socket or Settings.load(None, os.environ).socket_path

    @property
    def json(self) -> bool:
        """Whether to print JSON, errors too."""
        return self.output == "json"

    @property
    def for_programs(self) -> bool:
        """Whether a program reads what is printed."""
        return self.output != _TABLE

    @property
    def shows_progress(self) -> bool:
        """Whether to print progress and notes, which are for people only."""
        return not (self.for_programs or self.quiet)

    def show(self, document: Document, lines: Callable[[], Iterable[str]]) -> None:
        """Print *document* in the format that was asked for, or else *lines* for people."""
        self.ended = bool(document.get("ended"))
        if self.for_programs:
            for line in FORMATS[self.output](document):
                self.echo(line)
        elif not self.quiet:
            for line in lines():
                self.echo(line)

    def show_list(
        self,
        document: Document,
        columns: Sequence[Column],
        cells: Callable[[Document], Sequence[str]],
        empty: str,
        below: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Print the ``items`` of *document*, a row for each, in the order of ``--sort``.

        :param cells: an item's text for each column.
        :param empty: what people read where there are no items.
        :param below: lines below the table.
        :raise InvalidInput: ``--sort`` names no column.
        """
        rows = sorting.by(document["items"], columns, self.sort)

        def lines() -> Iterable[str]:
            yield from table(columns, [cells(row) for row in rows], empty)
            yield from below()

        self.show({**document, "items": rows}, lines)

    def report(self, document: Document, sentence: str) -> None:
        """Print *document* in the format that was asked for, or else one *sentence*."""
        self.show(document, lambda: [sentence])


pass_session = click.make_pass_decorator(Session, ensure=True)


def _remember(ctx: click.Context, option: click.Parameter, value: object) -> None:
    """Keep an option in the session; also one that was given before the subcommand's name."""
    session = ctx.ensure_object(Session)
    if not value or option.name is None:
        return
    by_variable = ctx.get_parameter_source(option.name) is ParameterSource.ENVIRONMENT
    if not (by_variable and getattr(session, option.name)):
        setattr(session, option.name, value)


def _json(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    """``--json`` is ``-o json``."""
    if value:
        ctx.ensure_object(Session).output = "json"


_KEEP: dict[str, Any] = {"expose_value": False, "callback": _remember}  # any: click's keywords
_OPTIONS = (
    click.option(
        "-o",
        "--output",
        type=click.Choice((_TABLE, *FORMATS)),
        **_KEEP,
        help="Format: table, json, yaml, csv, or the names alone.",
    ),
    click.option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_json,
        help="The same as -o json. Errors are JSON too, on stderr.",
    ),
    click.option(
        "--wide",
        is_flag=True,
        **_KEEP,
        help="Show all columns and whole ids, also if they do not fit the terminal.",
    ),
    click.option("-q", "--quiet", is_flag=True, **_KEEP, help="Print errors only."),
    click.option(
        "--socket",
        type=click.Path(path_type=Path),
        envvar="VMTUNE_SOCKET",
        **_KEEP,
        help="Unix socket of the service.  [env: VMTUNE_SOCKET]",
    ),
    click.option(
        "--url",
        envvar="VMTUNE_URL",
        **_KEEP,
        help="URL of the service; needs a token in VMTUNE_TOKEN or a file.  [env: VMTUNE_URL]",
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        envvar="VMTUNE_TOKEN_FILE",
        **_KEEP,
        help="File with the token.  [env: VMTUNE_TOKEN_FILE; with --url ~/.config/vmtune/token]",
    ),
    click.option("--reason", **_KEEP, help="Reason of the change, for the audit log."),
    click.option("--debug", is_flag=True, **_KEEP, help="Show the traceback of an error."),
)


_sort = click.option(
    "--sort",
    metavar="COLUMN[,...]",
    **_KEEP,
    help="Sort by columns or fields, such as host,-begun; a minus sorts downwards.",
)


_watch = (
    click.option("--watch", is_flag=True, **_KEEP, help="Show it again and again; Ctrl-C ends it."),
    click.option(
        "--every",
        type=click.FloatRange(min=0.2),
        metavar="SECONDS",
        **_KEEP,
        help="How often, with --watch. Default: 2.",
    ),
)


def listing(command: _F) -> _F:
    """The options of a command that prints a list by :meth:`Session.show_list`."""
    return watchable(_sort(command))


def sortable(command: _F) -> _F:
    """The options of a command that changes something and prints a list of what it did."""
    return common(_sort(command))


def watchable(command: _F) -> _F:
    """The options of a command that reads and shows, and may do so again and again."""

    @wraps(command)
    def called(*args: Any, **options: Any) -> Any:  # any: click's options, and what it returns
        session = click.get_current_context().ensure_object(Session)
        if not session.watch:
            return command(*args, **options)
        from vmtune.client.repeat import repeat  # noqa: PLC0415 - it needs this module

        return repeat(session, lambda: command(*args, **options))

    for option in reversed(_watch):
        called = option(called)
    return common(cast("_F", called))


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, told before it is parsed: for errors of its own."""
    pairs = pairwise(arguments)
    alone = ("--json", "-ojson", "--output=json")
    return any(word in alone for word in arguments) or any(
        option in ("-o", "--output") and format == "json" for option, format in pairs
    )


def common(command: _F) -> _F:
    """The options that every command has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
