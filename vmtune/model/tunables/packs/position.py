"""Positions in a TOML file: the line and column of a key path, for error messages. The library that
reads TOML does not give them. This searches for headers

and keys at the beginning of
lines, and steps over strings of several lines; what is inside an inline table or a list is at the
key that the line begins with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_WORD = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_PATH = rf"{_WORD}(?:\s*\.\s*{_WORD})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_PATH})\s*\]\]?")
_KEY = re.compile(rf"\s*({_PATH})\s*=")
_PART = re.compile(_WORD)
_QUOTES = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a file, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(slots=True)
class _Scan:
    found: dict[str, Position] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    table: str = ""

    def header(self, parts: list[str], is_list: bool, where: Position) -> None:
        path = ""
        for index, part in enumerate(parts):
            path = f"{path}.{part}" if path else part
            last = index == len(parts) - 1
            if last and is_list:
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts:
                path = f"{path}.{self.counts[path]}"
        self.table = path
        self.found.setdefault(path, where)

    def key(self, parts: list[str], where: Position) -> None:
        path = self.table
        for part in parts:
            path = f"{path}.{part}" if path else part
            self.found.setdefault(path, where)


def positions(text: str) -> dict[str, Position]:
    """The place of each table and key by its path, as in ``tunable.2.qom.property``."""
    scan = _Scan()
    open_quotes = ""
    for number, line in enumerate(text.split("\n"), 1):
        rest = line
        if not open_quotes:
            header, key = _HEADER.match(line), _KEY.match(line)
            if header:
                where = Position(number, header.start(1) + 1)
                scan.header(_parts(header[2]), header[1] == "[[", where)
            elif key:
                scan.key(_parts(key[1]), Position(number, key.start(1) + 1))
        for quotes in _QUOTES.findall(rest):
            if not open_quotes:
                open_quotes = quotes
            elif open_quotes == quotes:
                open_quotes = ""
    return scan.found


def locate(found: dict[str, Position], path: str) -> Position:
    """The place of *path*, or of the nearest that it is part of; the file's beginning at last."""
    while path:
        if path in found:
            return found[path]
        path = path.rpartition(".")[0]
    return Position(1, 1)


def _parts(path: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(path)]
