"""Strict reading of JSON and TOML: what is unknown or of the wrong kind is a problem.

A reader collects all problems of a document, so that its author can fix them at once.
"""

from __future__ import annotations

import math
import reprlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from vmtune import units
from vmtune.errors import MAX_PROBLEMS, InvalidInput, Problem, and_more
from vmtune.units import Unit, UnitError

MAX_FILE_CHARACTERS = 1 << 20
"""Of a file that a user writes."""

_Word = TypeVar("_Word", bound=StrEnum)
_Entry = TypeVar("_Entry")
_LONGEST_SHOWN = 40
_LONGEST_NAME = 100


def parse_toml(text: str, field: str) -> dict[str, object]:
    """The document that *text* is; *field* is named where it is none.

    :raise InvalidInput: it is longer than MAX_FILE_CHARACTERS, or no TOML; says at which line
        and column.
    """
    if len(text) > MAX_FILE_CHARACTERS:
        raise InvalidInput(
            f"the file has more than {MAX_FILE_CHARACTERS:,} characters",
            field=field,
            code="too_long",
            remedy="split it",
        )
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(
            f"the file is not a TOML: {error}", field=field, code="not_toml", remedy="correct it"
        ) from error


class Reader:
    """Reads the parts of a document. A part that cannot be accepted becomes a problem, and
    its default is given instead: the document is good only if there are no problems.

    Problems beyond the first 50 are counted, not worded.
    """

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._more = 0

    def done(self, message: str) -> None:
        """The end of the document.

        :raise InvalidInput: it has problems.
        """
        if self.problems:
            more = [and_more(self._more)] if self._more else []
            raise InvalidInput(message, problems=self.problems + more)

    @property
    def refused(self) -> int:
        """How many problems there are, those that are only counted among them."""
        return len(self.problems) + self._more

    def refuse(self, field: str, code: str, message: str, remedy: str) -> None:
        """Add a problem."""
        self.report(lambda: Problem(field, code, message, remedy))

    def report(self, problem: Callable[[], Problem]) -> None:
        """Add a problem whose words take time to find, such as a guess at what was meant."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem())
        else:
            self._more += 1

    def mapping(
        self, raw: object, field: str, known: Sequence[str] = (), required: Sequence[str] = ()
    ) -> Mapping[str, object]:
        """*raw* as an object; empty if it is none.

        :param known: the names it may have besides *required*; without either, any.
        """
        if not isinstance(raw, Mapping):
            self.refuse(field, "not_an_object", f"{short(raw)} is not an object", "give an object")
            return {}
        names = (*required, *known)
        for name in raw:
            if names and name not in names:
                self.report(lambda name=name: _unknown_field(field, name, names))  # type: ignore[misc]  # mypy cannot infer it
        for name in required:
            if name not in raw:
                self.refuse(join(field, name), "missing", f"{name} is missing", f"give {name}")
        return raw

    def sequence(
        self, raw: object, field: str, read: Callable[[object, str], _Entry], most: int
    ) -> tuple[_Entry, ...]:
        """*raw* as a list of at most *most* entries, each read by *read*."""
        if not isinstance(raw, list | tuple):
            self.refuse(field, "not_a_list", f"{short(raw)} is not a list", "give a list")
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
            field,
            "invalid_value",
            f"{short(raw)} is not a whole number from {reach}",
            f"use {reach}",
        )
        return default

    def number(self, raw: object, field: str, least: float, most: float) -> float:
        """*raw* as a finite number."""
        if isinstance(raw, int | float) and not isinstance(raw, bool):
            if math.isfinite(raw) and least <= raw <= most:
                return raw
        reach = f"{least:,g} to {most:,g}"
        self.refuse(
            field, "invalid_value", f"{short(raw)} is not a number from {reach}", f"use {reach}"
        )
        return 0

    def text(self, raw: object, field: str, most: int, default: str = "") -> str:
        """*raw* as a text of at most *most* characters."""
        if not isinstance(raw, str):
            self.refuse(field, "invalid_value", f"{short(raw)} is not text", "give a text")
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
            field, "not_a_choice", f"{short(raw)} is not one of {known}", f"use one of {known}"
        )
        return default

    def part(self, field: str, make: Callable[[], _Entry], default: _Entry) -> _Entry:
        """What *make* makes; its problems become those of *field*'s parts."""
        try:
            return make()
        except InvalidInput as error:
            for each in error.problems:
                self.refuse(join(field, each.field), each.code, each.message, each.remedy)
            return default


def _unknown_field(field: str, name: object, names: Sequence[str]) -> Problem:
    where = join(field, str(name)[:_LONGEST_NAME])
    known = f"known are {', '.join(names)}"
    return Problem(where, "unknown_field", f"there is no {short(name)} here", known)


def join(field: str, name: str) -> str:
    """The path of *name* within *field*."""
    return ".".join(part for part in (field, name) if part)


def _bounded_repr() -> reprlib.Repr:
    made = reprlib.Repr()
    made.maxlevel, made.maxlist, made.maxtuple, made.maxdict = 3, 9, 9, 9
    made.maxstring = made.maxlong = made.maxother = 99
    return made


_SHORT = _bounded_repr()


def short(raw: object, most: int = _LONGEST_SHOWN) -> str:
    """*raw* for a message, of at most *most* characters. Takes no longer for a large object."""
    if isinstance(raw, str):
        raw = raw[:most]
    text = _SHORT.repr(raw)
    return text if len(text) <= most else text[: most - 3] + "..."
