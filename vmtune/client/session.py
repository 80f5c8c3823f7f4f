"""What every command shares: the common options and the client of the service."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from vmtune.client.connection.credentials import find_token
from vmtune.client.connection.http import Client, Document, Url
from vmtune.config.settings import Settings

_F = TypeVar("_F", bound=Callable[..., Any])  # any: click calls it with its options

CLEAN, ERROR, DIFFERENCES, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: success; an error; differences; stopped by Ctrl-C."""


@dataclass
class Session:
    """The common options of this invocation.

    :param socket: where the service listens; None for the settings' path.
    :param json: print the service's JSON instead of tables.
    :param url: the service's, instead of its socket.
    :param token_file: holds the token for the URL.
    :param reason: why the command changes something, for the audit log.
    :param quiet: print errors only; see the exit code.
    """

    socket: Path | None = None
    json: bool = False
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
    def shows_progress(self) -> bool:
        """Whether to print progress and notes, which are for people only."""
        return not (self.json or self.quiet)

    def show(self, document: Document, table: Callable[[], Iterable[str]]) -> None:
        """Print *document* as JSON, or else the lines of *table*."""
        if self.json:
            click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        elif not self.quiet:
            for line in table():
                click.echo(line)

    def report(self, document: Document, sentence: str) -> None:
        """Print *document* as JSON, or else one *sentence*."""
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


_KEEP: dict[str, Any] = {"expose_value": False, "callback": _remember}  # any: click's keywords
_OPTIONS = (
    click.option(
        "--json",
        is_flag=True,
        **_KEEP,
        help="Print JSON from the service, and errors as JSON on stderr.",
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


def common(command: _F) -> _F:
    """The options that every command has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
