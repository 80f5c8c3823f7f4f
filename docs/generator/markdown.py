"""The little of Markdown that the generated pages need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines) + "\n"


def cell(text: str) -> str:
    """*text* as one cell of a table: on one line, with its bars escaped."""
    return " ".join(text.split()).replace("|", r"\|")


def plain(text: str) -> str:
    """*text* that is not Markdown, so that nothing in it is taken for HTML or emphasis."""
    for mark in "\\<>*_[]":
        text = text.replace(mark, f"\\{mark}" if mark not in "<>" else f"&{_ENTITY[mark]};")
    return text


def prose(text: str) -> str:
    """*text* that is not Markdown but for the code in it: `` `a_b` `` stays as it is."""
    parts = text.split("`")
    return "`".join(part if at % 2 else plain(part) for at, part in enumerate(parts))


def code(text: str) -> str:
    """*text* in the font of code."""
    return f"`{text}`" if text else ""


_ENTITY = {"<": "lt", ">": "gt"}
