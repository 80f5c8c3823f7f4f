"""Tunable values as people give them: on the command line, and in a file."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from vmtune.errors import InvalidInput, Problem

RawValues = dict[str, object]
"""Values by tunable, as text; the service validates and converts them."""

_LARGEST_FILE_BYTES = 1 << 20


def parse_assignments(arguments: Iterable[str], unset: bool = False) -> RawValues:
    """``multifd=on downtime_limit_ms=300`` as values.

    :param unset: allow ``NAME-``, which unsets a tunable: its value is then None.
    :raise InvalidInput: naming every argument that is none, or a tunable given twice.
    """
    values: RawValues = {}
    problems: list[Problem] = []
    for argument in arguments:
        name, equals, text = argument.partition("=")
        value: str | None = text.strip()
        if unset and not equals and argument.endswith("-"):
            name, value = argument[:-1], None
        name = name.strip()
        if not name or (value is not None and not (equals and value)):
            problems.append(_malformed(argument, unset))
        elif name in values:
            problems.append(Problem(name, "given_twice", "is given twice", "give it once"))
        else:
            values[name] = value
    if problems:
        raise InvalidInput("an argument is not TUNABLE=VALUE", problems=problems)
    _note_rounding(values)
    return values


def _note_rounding(values: RawValues) -> None:
    """A note, for people, for each value that is rounded where it is read."""
    from vmtune.model.tunables.built_in import BUILT_IN  # noqa: PLC0415 - a command starts in a blink

    ctx = click.get_current_context(silent=True)
    if ctx is not None and not getattr(ctx.obj, "shows_progress", True):
        return
    for name, raw in values.items():
        row = BUILT_IN.get(name)
        note = row.rounding(raw) if row else ""
        if note:
            click.echo(f"note: {name}: {note}, as libvirt takes whole MiB/s", err=True)


def _malformed(argument: str, unset: bool) -> Problem:
    removing = ", or TUNABLE- to unset it" if unset else ""
    return Problem(
        argument[:60] or "TUNABLE=VALUE",
        "malformed_argument",
        "is not TUNABLE=VALUE",
        f"write it like multifd_channels=8{removing}",
    )


def read_file(path: Path) -> Mapping[str, Any]:  # any: what the file holds, checked by use
    """A profile file: TOML or JSON, by its ending, with ``values`` and maybe ``steps``,
    ``description`` and ``note``.

    :raise InvalidInput: naming the file: unreadable, too large, of another kind, or no profile.
    """
    document = read_document(path)
    if not isinstance(document, dict):
        raise InvalidInput("is not an object", field=str(path), remedy=_SHAPE)
    _check_keys(str(path), document)
    return document


def read_document(path: Path) -> Any:  # any: what the file holds, checked by use
    """What a TOML or JSON file holds, by its ending.

    :raise InvalidInput: naming the file: unreadable, too large, or of another kind.
    """
    where = str(path)
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", field=where) from error
    if len(content) > _LARGEST_FILE_BYTES:
        raise InvalidInput("is larger than 1 MiB", field=where, remedy="use a smaller file")
    return _parse(path, content)


def _parse(path: Path, content: bytes) -> Any:  # any: what the file holds
    where = str(path)
    try:
        text = content.decode()
        if path.suffix == ".json":
            return json.loads(text)
        if path.suffix == ".toml":
            return tomllib.loads(text)
    except ValueError as error:
        raise InvalidInput(f"is not valid: {error}", field=where) from error
    raise InvalidInput(
        "has neither the suffix .toml nor .json",
        field=where,
        remedy="use a file that ends in .toml or .json",
    )


_SHAPE = "add a [values] table, such as: [values] multifd = true"
_KEYS = ("values", "steps", "description", "note")


def _check_keys(where: str, document: Mapping[str, Any]) -> None:  # any: what the file holds
    if not isinstance(document.get("values"), dict):
        raise InvalidInput("has no [values] table", field=where, remedy=_SHAPE)
    for key, value in document.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, 1)
            raise InvalidInput(
                f"{key[:60]!r} is unknown",
                field=where,
                remedy=f"did you mean {near[0]}?" if near else f"use one of {', '.join(_KEYS)}",
            )
        if key not in ("values", "steps") and not isinstance(value, str):
            raise InvalidInput(f"{key} is not text", field=where)
    for name, value in document["values"].items():
        if not isinstance(value, bool | int | str):
            raise InvalidInput(
                f"{name}: expected a number, text, true or false", field=where, remedy=_SHAPE
            )
