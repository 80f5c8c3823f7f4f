"""Strict reading of JSON and TOML: what is unknown or of the wrong kind is a problem.

A reader collects all problems of a document, so that its author can fix them at once.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from vmtune import units
from vmtune.errors import InvalidInput, Problem
from vmtune.units import Unit, UnitError

MOST_FILE_CHARACTERS = 1 << 20
"""Of a file that a user writes."""

_Word = TypeVar("_Word", bound=StrEnum)
_Entry = TypeVar("_Entry")
_LONGEST_SHOWN = 40


def parse_toml(text: str, field: str) -> dict[str, object]:
    """The document that *text* is; *field* is named where it is none.

    :raise InvalidInput: it is longer than MOST_FILE_CHARACTERS, or no TOML; says at which line
        and column.
    """
    if len(text) > MOST_FILE_CHARACTERS:
        raise InvalidInput(
            f"the file has more than {MOST_FILE_CHARACTERS:,} characters",
            field=field,
            code="too_long",
            remedy="split it",
        )
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(
            f"the file is no TOML: {error}", field=field, code="not_toml", remedy="mend it"
        ) from error


class Reader:
    """Reads the parts of a document. A part that cannot be accepted becomes a problem, and
    its default is given instead: the document is good only if there are no problems."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def done(self, message: str) -> None:
        """The end of the document.

        :raise InvalidInput: it has problems.
        """
        if self.problems:
            raise InvalidInput(message, problems=self.problems)

    def refuse(self, field: str, code: str, message: str, remedy: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(field, code, message, remedy))

    def mapping(
        self, raw: object, field: str, known: Sequence[str] = (), required: Sequence[str] = ()
    ) -> Mapping[str, object]:
        """*raw* as an object; empty if it is none.

        :param known: the names it may have besides *required*; without either, any.
        """
        if not isinstance(raw, Mapping):
            self.refuse(field, "not_an_object", f"{short(raw)} is no object", "give an object")
            return {}
        names = (*required, *known)
        for name in raw:
            if names and name not in names:
                self.refuse(
                    join(field, str(name)),
                    "unknown_field",
                    f"there is no {short(name)} here",
                    f"known are {', '.join(names)}",
                )
        for name in required:
            if name not in raw:
                self.refuse(join(field, name), "missing", f"{name} is missing", f"give {name}")
        return raw

    def sequence(
        self, raw: object, field: str, read: Callable[[object, str], _Entry], most: int
    ) -> tuple[_Entry, ...]:
        """*raw* as a list of at most *most* entries, each read by *read*."""
        if not isinstance(raw, list | tuple):
            self.refuse(field, "not_a_list", f"{short(raw)} is no list", "give a list")
            return ()
        if len(raw) > most:
            self.refuse(
                field,
                "too_many",
                f"there are {len(raw):,} entries, and {most:,} are the most",
                "leave some out",
            )
            return ()
        return tuple(read(entry, f"{field}.{index}") for index, entry in enumerate(raw))

    def integer(
        self,
        raw: object,
        field: str,
        least: int,
        most: int,
        default: int = 0,
        unit: Unit = Unit.NONE,
    ) -> int:
        """*raw* as a whole number; a text with a unit counts where *unit* has units."""
        if isinstance(raw, str) and unit is not Unit.NONE:
            try:
                raw = units.parse(raw, unit)
            except UnitError as error:
                self.refuse(field, "invalid_value", str(error), f"write {units.examples(unit)}")
                return default
        if isinstance(raw, int) and not isinstance(raw, bool) and least <= raw <= most:
            return raw
        reach = f"{units.render(least, unit)} to {units.render(most, unit)}"
        self.refuse(
            field, "invalid_value", f"{short(raw)} is no whole number from {reach}", f"use {reach}"
        )
        return default

    def number(self, raw: object, field: str, least: float, most: float) -> float:
        """*raw* as a finite number."""
        if isinstance(raw, int | float) and not isinstance(raw, bool):
            if math.isfinite(raw) and least <= raw <= most:
                return raw
        reach = f"{least:,g} to {most:,g}"
        self.refuse(
            field, "invalid_value", f"{short(raw)} is no number from {reach}", f"use {reach}"
        )
        return 0

    def text(self, raw: object, field: str, most: int, default: str = "") -> str:
        """*raw* as a text of at most *most* characters."""
        if not isinstance(raw, str):
            self.refuse(field, "invalid_value", f"{short(raw)} is no text", "give a text")
            return default
        if len(raw) > most:
            self.refuse(
                field,
                "too_long",
                f"it has {len(raw):,} characters, and {most:,} are the most",
                "shorten it",
            )
            return default
        return raw

    def boolean(self, raw: object, field: str, default: bool = False) -> bool:
        """*raw* as true or false."""
        if isinstance(raw, bool):
            return raw
        self.refuse(
            field, "invalid_value", f"{short(raw)} is neither true nor false", "use true or false"
        )
        return default

    def choice(self, raw: object, field: str, words: type[_Word], default: _Word) -> _Word:
        """*raw* as one of an enumeration's words."""
        if isinstance(raw, str) and raw in {word.value for word in words}:
            return words(raw)
        known = ", ".join(word.value for word in words)
        self.refuse(
            field, "not_a_choice", f"{short(raw)} is none of {known}", f"use one of {known}"
        )
        return default

    def part(self, field: str, make: Callable[[], _Entry], default: _Entry) -> _Entry:
        """What *make* makes; its problems become those of *field*'s parts."""
        try:
            return make()
        except InvalidInput as error:
            self.problems += [
                Problem(join(field, each.field), each.code, each.message, each.remedy)
                for each in error.problems
            ]
            return default


def join(field: str, name: str) -> str:
    """The path of *name* within *field*."""
    return ".".join(part for part in (field, name) if part)


def short(raw: object) -> str:
    """*raw* for a message, shortened."""
    text = repr(raw)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."
