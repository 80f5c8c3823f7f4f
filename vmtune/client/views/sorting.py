"""``--sort``: the rows of a list in the order of a column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from vmtune.client.connection.http import Document
from vmtune.client.views.output import Column
from vmtune.errors import InvalidInput

_NUMBER = re.compile(r"(\d+)")

_Key = tuple[int, tuple[tuple[int, int | float, str], ...]]


def by(rows: Sequence[Document], columns: Sequence[Column], order: str) -> list[Document]:
    """*rows* sorted by the columns or fields of *order*, the first one first.

    Numbers in a name count as numbers: web2 is before web10. Rows without a value are last.

    :param order: titles of columns or fields of the rows, such as ``HOST,-downtime``; a minus
        sorts from the highest down.
    :raise InvalidInput: there is no such column or field.
    """
    ordered = list(rows)
    for word in reversed([word.strip() for word in order.split(",") if word.strip()]):
        path = _path(word.removeprefix("-"), rows, columns)
        valued = [row for row in ordered if _at(row, path) not in (None, "")]
        others = [row for row in ordered if _at(row, path) in (None, "")]
        valued.sort(key=lambda row, path=path: _key(_at(row, path)), reverse=word.startswith("-"))  # type: ignore[misc]  # a default argument fixes path
        ordered = valued + others
    return ordered


def _path(word: str, rows: Sequence[Document], columns: Sequence[Column]) -> str:
    folded = word.lower().replace("-", "_").replace(" ", "_")
    for column in columns:
        if folded == column.title.lower().replace("-", "_").replace(" ", "_"):
            return column.path
    if not rows or any(_at(row, folded) is not None for row in rows) or folded in rows[0]:
        return folded
    titles = [column.title.lower().replace(" ", "-") for column in columns]
    near = get_close_matches(word.lower(), titles, 1)
    raise InvalidInput(
        f"there is no column {word[:60]}",
        field="--sort",
        code="unknown_column",
        remedy=f"did you mean {near[0]}?" if near else f"sort by one of: {', '.join(titles)}",
    )


def _at(row: Document, path: str) -> object:
    value: object = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _key(value: object) -> _Key:
    """Numbers before texts; texts with the numbers in them as numbers."""
    if isinstance(value, bool | int | float):
        return 0, ((0, value, ""),)
    parts = _NUMBER.split(str(value).casefold())
    return 1, tuple((0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts if p)
