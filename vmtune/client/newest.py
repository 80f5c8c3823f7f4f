"""Lists that commands print newest first: which rows of them, and how many."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

import click

from vmtune.client.connection.http import Document, Query
from vmtune.client.session import Session

_C = TypeVar("_C", bound=Callable[..., object])

newest_option = click.option(
    "-n", "--newest", type=click.IntRange(min=0), default=30, show_default=True,
    help="Show only the newest; 0 for all.",
)  # fmt: skip
"""How many rows a command prints."""


def named_options(things: str, state: str) -> Callable[[_C], _C]:
    """The options that choose among rows with a name: ``name``, ``search`` and ``state`` of the
    API's query, and ``newest``.

    :param things: what the rows are, such as ``campaigns``.
    :param state: one of their states, as an example.
    """
    options = (
        click.option("--name", help=f"Only {things} of one name."),
        click.option("--search", help=f"Only {things} with this part in their name."),
        click.option("--state", multiple=True, help=f"Only in this state, such as {state}."),
        newest_option,
    )

    def with_options(command: _C) -> _C:
        for option in reversed(options):
            command = option(command)
        return command

    return with_options


def newest_of(session: Session, path: str, query: Query, newest: int) -> list[Document]:
    """The rows of a list that are asked for.

    :param newest: how many of them; 0 for all.
    """
    return list(islice(session.client.items(path, query), newest or None))
