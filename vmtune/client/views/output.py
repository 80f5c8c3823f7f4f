"""Tables and lists for people: aligned plain text, on a terminal within its width.

Nothing is cut off. Where a terminal is too narrow, a table leaves columns out and says which;
only prose is broken into lines. ``--wide`` shows every column and whole ids.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

import click

from vmtune.client.ids import distinct, in_text

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
    "postcopy-paused": "red",
    "post-copy is paused": "red",
}
"""The colour of a cell with only one of these words."""

_NARROWEST = 40
_LEAST_PROSE = 24
_NARROW_PROSE = 12
_LEAST = 4
_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    :param right: numbers stand at the right.
    :param wraps: prose that may be broken into lines where the terminal is narrow.
    :param spare: left out if the terminal is too narrow; those with the highest number first,
        those with 0 never.
    :param id: cells are ids: shown as short as they are distinct, whole with ``--wide``.
    :param field: what ``--sort`` sorts by: the field of the rows' documents, as a path with
        dots; empty for the title in small letters.
    """

    title: str
    right: bool = False
    wraps: bool = False
    spare: int = 0
    id: bool = False
    field: str = ""

    @property
    def path(self) -> str:
        """The field of the rows' documents that the column shows."""
        return self.field or self.title.lower().replace(" ", "_")


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], empty: str) -> Iterator[str]:
    """The lines of a table; *empty* where there are no rows."""
    if not rows:
        yield empty
        return
    wide = _wide()
    if not wide:
        rows = _with_short_ids(columns, rows)
    if wide or not sys.stdout.isatty():
        yield from _lines(columns, rows, _natural(columns, rows))
        return
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    kept = _kept(columns, rows, width)
    fewer = [[row[index] for index in kept] for row in rows]
    shown = [columns[index] for index in kept]
    yield from _lines(shown, fewer, _widths(shown, fewer, width))
    left_out = [
        column.title
        for index, column in enumerate(columns)
        if index not in kept and any(row[index] for row in rows)
    ]
    if left_out:
        yield paint(f"not shown: {', '.join(left_out)}; --wide shows all", "bright_black")


def _wide() -> bool:
    """Whether this command was called with ``--wide``."""
    ctx = click.get_current_context(silent=True)
    return bool(getattr(ctx.obj, "wide", False)) if ctx else False


def line(text: str) -> Iterator[str]:
    """*text* with short ids, on a terminal broken at its width and indented as it begins; as it is
    with ``--wide``."""
    if _wide():
        yield text
        return
    text = in_text(text)
    if not sys.stdout.isatty():
        yield text
        return
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    indent = " " * (len(text) - len(text.lstrip()) + _GAP)
    yield from textwrap.wrap(
        text, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True
    ) or [text]


def _with_short_ids(
    columns: Sequence[Column], rows: Sequence[Sequence[str]]
) -> Sequence[Sequence[str]]:
    by_column = [
        distinct([row[index] for row in rows]) if column.id else [row[index] for row in rows]
        for index, column in enumerate(columns)
    ]
    return list(zip(*by_column, strict=True))


def _cells(text: str) -> int:
    """How many cells of a terminal *text* takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def _natural(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column with nothing broken."""
    return [
        max(_cells(column.title), *(_cells(row[index]) for row in rows))
        for index, column in enumerate(columns)
    ]


def _least(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[int]:
    """The least width of each column: prose may be broken."""
    natural = _natural(columns, rows)
    return [
        min(width, max(_LEAST_PROSE, _cells(column.title))) if column.wraps else width
        for width, column in zip(natural, columns, strict=True)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _kept(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Which columns are shown: spare ones without any text go, and others until all fit."""
    least = _least(columns, rows)
    kept = [
        index
        for index, column in enumerate(columns)
        if not column.spare or any(row[index] for row in rows)
    ]
    while _total([least[index] for index in kept]) > width:
        spare = max(kept, key=lambda index: (columns[index].spare, index))
        if not columns[spare].spare:
            break
        kept.remove(spare)
    return kept


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column so that all fit: prose shares what the others leave."""
    natural, widths = _natural(columns, rows), _least(columns, rows)
    while _total(widths) < width and widths != natural:
        index = min(
            (index for index in range(len(widths)) if widths[index] < natural[index]),
            key=lambda index: widths[index] / natural[index],
        )
        widths[index] += 1
    prose = [index for index, column in enumerate(columns) if column.wraps]
    for shrunk, least in ((prose, _NARROW_PROSE), (range(len(widths)), _LEAST)):
        while _total(widths) > width:
            widest = max(shrunk, key=lambda index: widths[index], default=None)
            if widest is None or widths[widest] <= least:
                break
            widths[widest] -= 1
    return widths


def _lines(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> Iterator[str]:
    titles = [column.title for column in columns]
    for number, row in enumerate([titles, *rows]):
        broken = [_broken(cell, width) for cell, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, broken))):
            parts = []
            for cell, pieces, column, width in zip(row, broken, columns, widths, strict=True):
                piece = pieces[line] if line < len(pieces) else ""
                blank = " " * (width - _cells(piece))
                said = _bold(piece) if number == 0 else paint(piece, COLORS.get(cell, ""))
                parts.append(blank + said if column.right else said + blank)
            yield "  ".join(parts).rstrip()


def _broken(cell: str, width: int) -> list[str]:
    """*cell* in lines of at most *width*."""
    return [cell] if _cells(cell) <= width else textwrap.wrap(cell, width) or [""]


def _bold(title: str) -> str:
    return click.style(title, bold=True) if title and _styled() else title


def remedy(text: str, indent: str = "  ", err: bool = False) -> Iterator[str]:
    """What to do, as :func:`prose`; a command that is to be run stays in one line: it is copied."""
    if text.startswith("run: "):
        yield f"{indent}remedy: {text}"
    else:
        yield from prose(f"remedy: {text}", indent, err)


def prose(text: str, indent: str = "", err: bool = False) -> Iterator[str]:
    """*text* in lines that a terminal does not break within a word; one line when piped.

    :param err: it goes to stderr.
    """
    if not (sys.stderr if err else sys.stdout).isatty():
        yield indent + text
        return
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    yield from textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def fields(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """``name: value`` lines, the values aligned; those without a value are left out. A value that
    a terminal has no room for goes on below itself."""
    shown = [(name, value) for name, value in pairs if value]
    widest = max((len(name) for name, _ in shown), default=0)
    begin = widest + 1 + _GAP
    width = max(_NARROWEST, shutil.get_terminal_size().columns) - begin
    whole = not sys.stdout.isatty() or width < _LEAST_PROSE
    for name, value in shown:
        first, *more = [value] if whole or _cells(value) <= width else _wrapped(value, width)
        yield f"{name + ':':<{widest + 1}}  {paint(first)}"
        for rest in more:
            yield " " * begin + rest


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [text]


def paint(word: str, color: str = "") -> str:
    """*word* in *color*, or its own of :data:`COLORS`; plain when piped or with NO_COLOR."""
    color = color or COLORS.get(word, "")
    return click.style(word, fg=color) if color and _styled() else word


def _styled() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
