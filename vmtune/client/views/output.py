"""Tables and lists for people: aligned plain text when piped, rich on a terminal."""

# ruff: noqa: PLC0415 - imported where needed: a command is to start in a blink

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

COLORS = {
    "effective": "green",
    "completed": "green",
    "applied": "green",
    "done": "green",
    "running": "green",
    "tuned": "green",
    "yes": "green",
    "pending migration": "yellow",
    "pending restart": "yellow",
    "unknown": "yellow",
    "overwritten": "red",
    "not applied": "yellow",
    "drifted": "red",
    "rejected": "red",
    "refused": "red",
    "failed": "red",
    "never": "red",
}
"""The colour of a cell with only one of these words."""

_NARROWEST = 40
_LEAST_PROSE = 12


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    :param right: numbers stand at the right.
    :param wraps: prose that may be broken into lines where the terminal is narrow.
    :param spare: left out if the terminal is too narrow for all columns.
    """

    title: str
    right: bool = False
    wraps: bool = False
    spare: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], empty: str) -> Iterator[str]:
    """The lines of a table; *empty* where there are no rows."""
    if not rows:
        yield empty
    elif sys.stdout.isatty():
        yield _rich_table(columns, rows)
    else:
        yield from _plain_table(columns, rows)


def _plain_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = [tuple(column.title for column in columns), *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        cells = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        )
        yield "  ".join(cells).rstrip()


def _rich_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> str:
    """The table as a terminal shows it: within its width, and nothing cut off."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    whole = _fits(columns, rows, width)
    if not whole and any(column.spare for column in columns):
        kept = [index for index, column in enumerate(columns) if not column.spare]
        fewer = [[row[index] for index in kept] for row in rows]
        return _rich_table([columns[index] for index in kept], fewer)
    out = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, column in enumerate(columns):
        kept_whole = whole and not column.wraps
        out.add_column(
            column.title,
            justify="right" if column.right else "left",
            overflow="fold",
            min_width=_natural(index, columns, rows) if kept_whole else None,
            no_wrap=kept_whole,  # else rich shares the narrowness out, and then cuts off
        )
    for row in rows:
        out.add_row(*(Text(cell, style=COLORS.get(cell, "")) for cell in row))
    console = Console(width=width, highlight=False)
    with console.capture() as capture:
        console.print(out)
    lines = capture.get().splitlines()
    return "\n".join(line.rstrip() for line in lines)


def _natural(index: int, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    return max(len(columns[index].title), *(len(row[index]) for row in rows))


def _fits(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether only the columns of prose have to be broken into lines."""
    needed = [
        _LEAST_PROSE if column.wraps else _natural(index, columns, rows)
        for index, column in enumerate(columns)
    ]
    return sum(needed) + 2 * (len(needed) - 1) <= width


def fields(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """``name: value`` lines, the values aligned; those without a value are left out."""
    shown = [(name, value) for name, value in pairs if value]
    widest = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        yield f"{name + ':':<{widest + 1}}  {paint(value)}"


def paint(word: str, color: str = "") -> str:
    """*word* in *color*, or its own of :data:`COLORS`; plain when piped or with NO_COLOR."""
    color = color or COLORS.get(word, "")
    wanted = color and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return click.style(word, fg=color) if wanted else word
