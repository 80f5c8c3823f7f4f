"""``--watch``: print what a command shows again and again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence

import click

from vmtune.client.connection.errors import ClientError
from vmtune.client.session import CLEAN, INTERRUPTED, Session
from vmtune.client.views.output import paint
from vmtune.remote.events import transient

_HOME, _TO_END_OF_LINE, _TO_END = "\x1b[H", "\x1b[K", "\x1b[J"
_CLEAR = "\x1b[2J"


def repeat(
    session: Session, command: Callable[[], object], wait: Callable[[float], None] = time.sleep
) -> int:
    """Call *command* every so many seconds, until Ctrl-C or until what it shows has ended.

    On a terminal each round is drawn over the last one; elsewhere a round is printed if it
    differs. While the service does not answer, or is starting, what was seen last stays.

    :raise VmtuneError: the service refused.
    """
    seen: list[str] = []
    try:
        if sys.stdout.isatty():
            click.echo(_CLEAR, nl=False)
        while True:
            lines: list[str] = []
            session.echo = lines.append
            note = ""
            try:
                result = command()
            except ClientError as error:
                if not transient(error):
                    raise
                lines, result = seen, CLEAN
                note = paint(f"{error.message}: trying again", "red")
            _draw(session, lines, seen, note)
            seen = lines
            if session.ended:
                return result if isinstance(result, int) else CLEAN
            wait(session.every)
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        session.echo = click.echo


def _draw(session: Session, lines: Sequence[str], before: Sequence[str], note: str) -> None:
    if not sys.stdout.isatty():
        if lines != before:
            click.echo("\n".join(lines))
        if note:
            click.echo(note, err=True)
        return
    now = time.strftime("%H:%M:%S")
    head = note or paint(f"every {session.every:g} s, {now}, Ctrl-C ends", "bright_black")
    shown = [line for each in (head, "", *lines) for line in each.split("\n")]
    room = shutil.get_terminal_size().lines - 1
    if len(shown) > room:
        shown = [*shown[: room - 1], f"... {len(shown) - room + 1} more lines"]
    text = "".join(f"{line}{_TO_END_OF_LINE}\n" for line in shown)
    click.echo(f"{_HOME}{text}{_TO_END}", nl=False)
