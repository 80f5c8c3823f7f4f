"""Tunable packs: TOML files that add tunables of a patched QEMU, without code.

Read by hand and not by field types: what a tunable may have (bounds, choices, the form of its
default) depends on its type and on how QEMU is asked for it.

A pack is written as in::

    format = 1
    name = "my-qemu"
    title = "What my QEMU has"

    [[tunable]]
    name = "guest_stats_interval_s"
    title = "Interval of guest statistics"
    why = "How often the guest is asked; 0 is never."
    type = "integer"              # boolean, integer, choice, text
    unit = "s"                    # the name ends with it
    minimum = 0
    maximum = 86400
    default = 0
    [tunable.qom]                 # an object's property ...
    types = ["virtio-balloon-pci"]
    property = "guest-stats-polling-interval"

    [[tunable]]
    name = "rounds_count"
    title = "Rounds"
    why = "How many rounds there were."
    type = "integer"
    unit = "count"
    minimum = 0
    maximum = 9223372036854775807
    read_only = true
    [tunable.command]             # ... or commands
    read = {execute = "x-query-rounds", result = "rounds"}

What a pack may send is up to the operator: the settings ``allow_qom`` and ``allow_qmp_commands``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vmtune.documents.strict import Reader, join, parse_toml, short
from vmtune.errors import InvalidInput, Problem
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.access import (
    VALUE,
    Access,
    Command,
    CommandAccess,
    Json,
    QomAccess,
)
from vmtune.model.tunables.packs.position import locate, positions
from vmtune.model.tunables.tunable import Kind, QmpKind, QmpName, Route, Side, Tunable, Value
from vmtune.model.versions import Version
from vmtune.units import Unit

FORMAT = 1
Parts = Mapping[str, object]
MAX_TUNABLES = 200
_MAX_TEXT = 2000
_MAX_NUMBER = (1 << 63) - 1
_DEEPEST = 8
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_PACK_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)
_QEMU_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}", re.ASCII)
_QOM_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}", re.ASCII)
_RESULT = re.compile(r"[A-Za-z0-9_-]{1,62}(\.[A-Za-z0-9_-]{1,62}){0,7}", re.ASCII)
_VERSION = re.compile(r"\d{1,3}(\.\d{1,3}){0,2}", re.ASCII)
_KEYS = (
    "type", "unit", "minimum", "maximum", "power_of_two", "choices", "default", "route", "side",
    "read_only", "since", "until", "overwriter", "qom", "command",
)  # fmt: skip
_ROUTES = (Route.LIVE, Route.MONITOR)
_SIDES = (Side.SOURCE, Side.BOTH)


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that was read."""

    name: str
    title: str
    why: str
    tunables: tuple[Tunable, ...]

    @property
    def consents(self) -> frozenset[str]:
        """All that the operator has to consent to, so that it works."""
        rows = (row for row in self.tunables if row.access is not None)
        return frozenset(name for row in rows for name in needed_consents(row))


def needed_consents(row: Tunable) -> frozenset[str]:
    """What the operator has to consent to for one tunable of a pack; reading an object's
    property needs nothing."""
    if row.access is None or (row.read_only and isinstance(row.access, QomAccess)):
        return frozenset()
    return row.access.consents


def read_toml(text: str, file: str) -> Pack:
    """The pack that a file holds.

    :param file: its name, for messages, which begin with ``FILE:LINE:COLUMN``.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    document = _parsed(text, file)
    reader = _Reader()
    pack = reader.pack(document)
    if reader.problems:
        places = positions(text)
        problems = [
            Problem(p.field, p.code, f"{file}:{locate(places, p.field)}: {p.message}", p.remedy)
            for p in reader.problems
        ]
        raise InvalidInput(f"the pack {file} cannot be accepted", problems=problems)
    return pack


_AT = re.compile(r"\(at line (\d+), column (\d+)\)")
_AT_END = re.compile(r"\(at end of document\)")


def _parsed(text: str, file: str) -> Mapping[str, object]:
    try:
        return parse_toml(text, "pack")
    except InvalidInput as error:
        (problem,) = error.problems
        at = _AT.search(problem.message)
        lines = text.split("\n")
        end = f"{len(lines)}:{len(lines[-1]) + 1}" if _AT_END.search(problem.message) else "1:1"
        place = f"{at[1]}:{at[2]}" if at else end
        located = replace(problem, message=f"{file}:{place}: {problem.message}")
        raise InvalidInput(located.message, problems=[located]) from error


class _Reader(Reader):
    """Reads a pack's parts and gathers what is wrong with them."""

    def pack(self, raw: object) -> Pack:
        parts = self.mapping(raw, "", ("why",), ("format", "name", "title", "tunable"))
        if "format" in parts:
            self.integer(parts["format"], "format", FORMAT, FORMAT)
        name = self._named(parts.get("name", "x"), "name", _PACK_NAME, "a-z, 0-9 and dashes")
        title = self.text(parts.get("title", ""), "title", _MAX_TEXT)
        why = self.text(parts.get("why", ""), "why", _MAX_TEXT)
        rows = self.sequence(
            parts.get("tunable", ()), "tunable", lambda raw, at: self._tunable(raw, at, name),
            MAX_TUNABLES,
        )  # fmt: skip
        if not rows and "tunable" in parts and not self.problems:
            self.refuse("tunable", "missing", "a pack without tunables", "write [[tunable]]")
        self._distinct(rows)
        return Pack(name, title, why, tuple(row for row in rows if row is not None))

    def _distinct(self, rows: tuple[Tunable | None, ...]) -> None:
        names: set[str] = set()
        places: set[QmpName | None] = set()
        for index, row in enumerate(rows):
            if row is None:
                continue
            if row.name in BUILT_IN:
                self.refuse(
                    f"tunable.{index}.name", "shadowing_name",
                    f"vmtune has a tunable {row.name} of its own", "choose another name",
                )  # fmt: skip
            if row.name in names:
                self.refuse(
                    f"tunable.{index}.name", "duplicate_name",
                    f"{row.name} is there twice", "rename one of them",
                )  # fmt: skip
            elif row.qmp in places:
                self.refuse(
                    f"tunable.{index}", "duplicate_place",
                    f"{row.qmp.name if row.qmp else ''} is tuned twice", "remove one of them",
                )  # fmt: skip
            names.add(row.name)
            places.add(row.qmp)

    def _tunable(self, raw: object, at: str, pack: str) -> Tunable | None:
        before = self.refused
        parts = self.mapping(raw, at, _KEYS[1:], ("name", "title", "why", "type"))
        kind = self.choice(parts.get("type", "text"), join(at, "type"), Kind, Kind.TEXT)
        unit = self.choice(parts.get("unit", ""), join(at, "unit"), Unit, Unit.NONE)
        access = self._access(parts, at)
        read_only = self.boolean(parts.get("read_only", False), join(at, "read_only"))
        if access is None or self.refused > before:
            return None
        row = Tunable(
            name=self._row_name(parts["name"], at, kind, unit),
            title=self._filled(parts["title"], join(at, "title")),
            why=self._sentence(parts["why"], join(at, "why")),
            kind=kind,
            route=self._one_of(parts.get("route", "live"), join(at, "route"), _ROUTES, Route.LIVE),
            side=self._one_of(parts.get("side", "source"), join(at, "side"), _SIDES, Side.SOURCE),
            unit=unit,
            minimum=self._bound(parts, at, "minimum", kind),
            maximum=self._bound(parts, at, "maximum", kind),
            power_of_two=self.boolean(parts.get("power_of_two", False), join(at, "power_of_two")),
            choices=self._choices(parts, at, kind),
            qmp=QmpName(_KIND_OF[type(access)], access.name),
            since=self._version(parts, at, "since") or Version(7, 2),
            until=self._version(parts, at, "until"),
            overwriter=self.text(parts.get("overwriter", ""), join(at, "overwriter"), _MAX_TEXT),
            pack=pack,
            access=access,
        )
        self._fits(row, access, read_only, parts, at)
        row = replace(row, default=self._default(parts, at, row), read_only=read_only)
        return row if self.refused == before else None

    def _fits(self, row: Tunable, access: Access, read_only: bool, parts: Parts, at: str) -> None:
        """What its parts may be, and all together not."""
        least, most = row.minimum, row.maximum
        wrong: list[tuple[bool, str, str, str]] = [
            (
                least is not None and most is not None and least > most,
                "minimum", f"{least} is above the maximum, {most}", "exchange them",
            ),
            (
                isinstance(access, CommandAccess) and (access.apply is None) is not read_only,
                "command", "what can be set has an apply, and what is read_only has none",
                "remove apply" if read_only else "write apply, or read_only = true",
            ),
            (
                isinstance(access, QomAccess) and bool(access.create and access.member),
                "qom.create", "an object that is made has no members to keep", "remove one",
            ),
            (
                isinstance(access, QomAccess)
                and bool(access.create) and not read_only and "default" not in parts,
                "default", "nobody knows what holds while there is no object", "give default",
            ),
            (
                read_only and "default" in parts,
                "default", "a counter has no default", "remove it",
            ),
        ]  # fmt: skip
        for is_so, key, message, remedy in wrong:
            if is_so:
                self.refuse(join(at, key), "contradiction", message, remedy)

    def _row_name(self, raw: object, at: str, kind: Kind, unit: Unit) -> str:
        field = join(at, "name")
        name = self._named(raw, field, _NAME, "a-z, 0-9 and underscores")
        counts = unit in (Unit.NONE, Unit.COUNT)
        if kind is Kind.INTEGER and not counts and not name.endswith(f"_{unit.value}"):
            self.refuse(field, "name_without_unit", f"{name} does not end with its unit",
                        f"call it {name}_{unit.value}")  # fmt: skip
        if kind is not Kind.INTEGER and unit is not Unit.NONE:
            self.refuse(join(at, "unit"), "misplaced", "only integers have a unit", "remove it")
        return name

    def _bound(self, parts: Parts, at: str, key: str, kind: Kind) -> int | None:
        field = join(at, key)
        if kind is Kind.INTEGER and key not in parts:
            self.refuse(field, "missing", f"an integer needs a {key}", f"give {key}")
        elif kind is not Kind.INTEGER and key in parts:
            self.refuse(field, "misplaced", f"only integers have a {key}", "remove it")
        elif key in parts:
            return self.integer(parts[key], field, -_MAX_NUMBER, _MAX_NUMBER)
        return None

    def _choices(self, parts: Parts, at: str, kind: Kind) -> tuple[str, ...]:
        field = join(at, "choices")
        if (kind is Kind.CHOICE) is not ("choices" in parts):
            needs = kind is Kind.CHOICE
            self.refuse(field, "missing" if needs else "misplaced",
                        "a choice, and nothing else, has choices",
                        "give choices" if needs else "remove it")  # fmt: skip
            return ()
        if kind is not Kind.CHOICE:
            return ()
        words = self.sequence(
            parts["choices"], field, lambda raw, at: self._named(raw, at, _QEMU_NAME, "a word"), 100
        )
        if not words or len(set(words)) < len(words):
            self.refuse(field, "invalid_value", "choices are some different words", "correct it")
        return words

    def _default(self, parts: Parts, at: str, row: Tunable) -> Value | None:
        if "default" not in parts or self.refused:
            return None
        try:
            return row.accept(parts["default"])
        except ValueError as error:
            self.refuse(join(at, "default"), "invalid_value", str(error),
                        f"allowed: {row.allowed()}")  # fmt: skip
            return None

    def _access(self, parts: Parts, at: str) -> Access | None:
        given = [key for key in ("qom", "command") if key in parts]
        if len(given) != 1:
            self.refuse(at, "not_one", f"a tunable has one of qom and command, not {len(given)}",
                        "write [tunable.qom] or [tunable.command]")  # fmt: skip
            return None
        field = join(at, given[0])
        return (
            self._qom(parts["qom"], field)
            if given == ["qom"]
            else self._commands(parts["command"], field)
        )

    def _qom(self, raw: object, at: str) -> QomAccess | None:
        parts = self.mapping(raw, at, ("member", "create"), ("types", "property"))
        types = self.sequence(
            parts.get("types", ()), join(at, "types"),
            lambda raw, at: self._named(raw, at, _QOM_NAME, "a QOM type"), 20,
        )  # fmt: skip
        if "types" in parts and not types:
            self.refuse(join(at, "types"), "missing", "no type is named", "name a QOM type")
        if not types or "property" not in parts:
            return None

        def name(key: str) -> str:
            if key not in parts:
                return ""
            return self._named(parts[key], join(at, key), _QOM_NAME, "a name of QEMU's")

        return QomAccess(types, name("property"), name("member"), name("create"))

    def _commands(self, raw: object, at: str) -> CommandAccess | None:
        parts = self.mapping(raw, at, ("apply",), ("read",))
        if "read" not in parts:
            return None
        read = self._command(parts["read"], join(at, "read"), ("arguments", "result"))
        apply = None
        if "apply" in parts:
            apply = self._command(parts["apply"], join(at, "apply"), ("arguments",))
            if apply is not None and not _mentions_value(dict(apply.arguments)):
                self.refuse(join(at, "apply.arguments"), "missing",
                            f"no argument is {VALUE}, so nothing would be set",
                            f'write an argument such as interval = "{VALUE}"')  # fmt: skip
        return CommandAccess(read, apply) if read else None

    def _command(self, raw: object, at: str, known: tuple[str, ...]) -> Command | None:
        parts = self.mapping(raw, at, known, ("execute",))
        if "execute" not in parts:
            return None
        name = self._named(parts["execute"], join(at, "execute"), _QEMU_NAME, "a QMP command")
        field = join(at, "arguments")
        arguments = self.mapping(parts.get("arguments", {}), field)
        result = parts.get("result", "")
        if result != "":
            result = self._named(result, join(at, "result"), _RESULT, "keys joined by dots")
        values = {key: self._json(each, join(field, key), 0) for key, each in arguments.items()}
        return Command(name, values, str(result))

    def _json(self, raw: object, field: str, depth: int) -> Json:
        if depth < _DEEPEST:
            if isinstance(raw, bool | str) or (isinstance(raw, int) and abs(raw) <= _MAX_NUMBER):
                return raw
            if isinstance(raw, float) and math.isfinite(raw):
                return raw
            if isinstance(raw, list):
                return [self._json(e, f"{field}.{i}", depth + 1) for i, e in enumerate(raw)]
            if isinstance(raw, dict):
                return {k: self._json(e, join(field, k), depth + 1) for k, e in raw.items()}
        self.refuse(field, "invalid_value", f"{short(raw)} has no place in JSON, or too deep a one",
                    "use numbers, texts, true, false, lists and tables")  # fmt: skip
        return ""

    def _version(self, parts: Parts, at: str, key: str) -> Version | None:
        if key not in parts:
            return None
        text = self._named(parts[key], join(at, key), _VERSION, 'a version such as "10.0"')
        return Version.parse(text) if _VERSION.fullmatch(text) else None

    def _named(self, raw: object, field: str, pattern: re.Pattern[str], what: str) -> str:
        text = self.text(raw, field, _MAX_TEXT, "x")
        if isinstance(raw, str) and len(raw) <= _MAX_TEXT and not pattern.fullmatch(text):
            self.refuse(field, "invalid_value", f"{short(raw)} is not {what}", f"write {what}")
        return text

    def _filled(self, raw: object, field: str) -> str:
        text = self.text(raw, field, _MAX_TEXT, "x")
        if not text.strip():
            self.refuse(field, "missing", "it is empty", "write a few words")
        return text

    def _sentence(self, raw: object, field: str) -> str:
        text = self._filled(raw, field)
        if text.strip() and not text.endswith(".") and isinstance(raw, str):
            self.refuse(field, "invalid_value", "it is not a sentence", "end it with a full stop")
        return text

    def _one_of(self, raw: object, field: str, some: tuple[Any, ...], default: Any) -> Any:
        # any: an enumeration's words, of which a pack may use some
        chosen = self.choice(raw, field, type(default), default)
        if chosen not in some:
            words = " or ".join(word.value for word in some)
            self.refuse(field, "not_a_choice", f"a pack cannot have {chosen.value} here",
                        f"use {words}")  # fmt: skip
        return chosen


_KIND_OF: Mapping[type, QmpKind] = {QomAccess: QmpKind.QOM, CommandAccess: QmpKind.COMMAND}


def _mentions_value(raw: Json) -> bool:
    if isinstance(raw, dict):
        return any(_mentions_value(each) for each in raw.values())
    if isinstance(raw, list):
        return any(_mentions_value(each) for each in raw)
    return raw == VALUE
