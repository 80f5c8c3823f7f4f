"""Reading and setting what tunable packs add, over any monitor: properties of objects, and
commands of a patched QEMU."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu.allowlist import OBJECT_FOLDERS
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.qom import children_of
from vmtune.model.host.facts import Reading
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.packs.access import CommandAccess, QomAccess, filled_in
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Kind, QmpKind, Tunable, Value

PACK_KINDS = (QmpKind.QOM, QmpKind.COMMAND)
"""Where in QEMU the tunables of packs are."""
NOT_OFFERED = "this QEMU does not have it"
_NO_VALUE = "QEMU's answer has no such value in it"

Objects = Mapping[str, tuple[str, ...]]
"""Paths of objects by their QOM type."""


@dataclass(frozen=True, slots=True)
class PackSeen:
    """What was found of packs' tunables.

    :param offered: the names of those that this QEMU has.
    """

    offered: frozenset[str] = frozenset()
    readings: Mapping[str, Reading] = field(default_factory=dict)


class PackProbe:
    """Reads packs' tunables of one QEMU process, and remembers what its program is able to do.

    Where no pack is loaded it sends nothing.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._properties: dict[str, frozenset[str]] = {}
        self._commands: frozenset[str] | None = None

    async def see(self, rows: Collection[Tunable]) -> PackSeen:
        """Whether QEMU has each of *rows*, and what it is set to.

        :raise VmtuneError: as :meth:`Monitor.execute` does, but for a refusal.
        """
        if not rows:
            return PackSeen()
        offered = [row for row in rows if await self._offers(row)]
        objects: Objects = {}
        if any(isinstance(row.access, QomAccess) for row in offered):
            objects = await list_objects(self._monitor)
        answers = await _all(*(self._reading(row, objects) for row in offered))
        readings = {row.name: Reading(None, why_unknown=NOT_OFFERED) for row in rows}
        readings |= {row.name: answer for row, answer in zip(offered, answers, strict=True)}
        return PackSeen(frozenset(row.name for row in offered), readings)

    async def _offers(self, row: Tunable) -> bool:
        match row.access:
            case QomAccess() as access:
                for name in access.types:
                    if name not in self._properties:
                        self._properties[name] = await self._properties_of(name)
                return any(access.prop in self._properties[name] for name in access.types)
            case CommandAccess() as access:
                if self._commands is None:
                    self._commands = await self._schema_commands()
                return access.commands <= self._commands
            case None:
                return False

    async def _properties_of(self, type_: str) -> frozenset[str]:
        try:
            reply = await self._monitor.execute("qom-list-properties", {"typename": type_})
        except CommandRefused:
            return frozenset()  # there is no such type
        return frozenset(row["name"] for row in reply)

    async def _schema_commands(self) -> frozenset[str]:
        """All commands; the answer has some 200 KB, so it is asked once."""
        reply = await self._monitor.execute("query-qmp-schema")
        return frozenset(row["name"] for row in reply if row["meta-type"] == "command")

    async def _reading(self, row: Tunable, objects: Objects) -> Reading:
        try:
            if isinstance(row.access, QomAccess):
                return await self._of_objects(row, row.access, objects)
            assert isinstance(row.access, CommandAccess), f"{row.name} is of no pack"
            read = row.access.read
            reply = await self._monitor.execute(read.execute, dict(read.arguments) or None)
        except CommandRefused as refusal:
            return Reading(None, why_unknown=refusal.message)
        return _single(row, _member(reply, read.result))

    async def _of_objects(self, row: Tunable, access: QomAccess, objects: Objects) -> Reading:
        paths = paths_of(access, objects)
        if not paths:
            if access.create and row.default is not None:
                return Reading(row.default)  # without the object QEMU's own behaviour holds
            return Reading(None, why_unknown=f"the VM has no {access.types[0]}")
        values = await _all(
            *(
                self._monitor.execute("qom-get", {"path": path, "property": access.prop})
                for path in paths
            )
        )
        read = [_typed(row, _member(value, access.member)) for value in values]
        parts = {
            path.rpartition("/")[2]: value
            for path, value in zip(paths, read, strict=True)
            if value is not None
        }
        if access.create:
            return _single(row, next(iter(parts.values()), None))
        return Reading.of_parts(parts, _NO_VALUE)


async def list_objects(monitor: Monitor) -> Objects:
    """The objects that users made, by type.

    :raise VmtuneError: as :meth:`Monitor.execute` does, but for a refusal.
    """
    lists = await _all(*(children_of(monitor, folder) for folder in OBJECT_FOLDERS))
    found: dict[str, list[str]] = {}
    for folder, children in zip(OBJECT_FOLDERS, lists, strict=True):
        for row in children:
            if row["type"].startswith("child<"):
                type_ = row["type"].removeprefix("child<").removesuffix(">")
                found.setdefault(type_, []).append(f"{folder}/{row['name']}")
    return {type_: tuple(sorted(paths)) for type_, paths in found.items()}


def paths_of(access: QomAccess, objects: Objects) -> tuple[str, ...]:
    """The objects that *access* is about."""
    return tuple(path for type_ in access.types for path in objects.get(type_, ()))


async def set_values(
    monitor: Monitor, changes: Sequence[Change], tunables: TunableRegistry
) -> None:
    """Set packs' tunables, one after the other.

    :raise CommandRefused: QEMU or the operator's consent refused one, with its field; those
        before it are set.
    :raise VmtuneError: as :meth:`Monitor.execute` does.
    """
    objects: Objects | None = None
    for change in changes:
        row = tunables.row(change.tunable)
        try:
            match row.access:
                case CommandAccess(apply=command) if command is not None:
                    arguments = filled_in(dict(command.arguments), change.value)
                    assert isinstance(arguments, dict)
                    await monitor.execute(command.execute, arguments)
                case QomAccess() as access:
                    if objects is None or access.create:
                        objects = await list_objects(monitor)
                    await _set_objects(monitor, change, row, access, objects)
                case _:
                    raise CommandRefused(f"{change.tunable} can only be read")
        except CommandRefused as refusal:
            problem = refusal.problems[0]
            raise CommandRefused(
                refusal.message,
                field=f"values.{change.tunable}",
                code=problem.code,
                remedy=problem.remedy,
            ) from refusal


async def _set_objects(
    monitor: Monitor, change: Change, row: Tunable, access: QomAccess, objects: Objects
) -> None:
    paths = paths_of(access, objects)
    if change.owner:
        paths = tuple(path for path in paths if path.rpartition("/")[2] == change.owner)
    if not paths and access.create:
        if change.value == row.default:
            return  # as it is without the object, which cannot be taken away again
        await monitor.execute("object-add", {"qom-type": access.types[0], "id": access.create})
        paths = (f"/objects/{access.create}",)
    if not paths:
        what = change.owner or access.types[0]
        raise CommandRefused(f"the VM has no {what}", code="no_such_part")
    value = {access.member: change.value} if access.member else change.value
    for path in paths:
        await monitor.execute("qom-set", {"path": path, "property": access.prop, "value": value})


def _member(reply: Any, path: str) -> Any:  # any JSON
    """What is at *path*, keys joined by dots; None where there is nothing."""
    for key in filter(None, path.split(".")):
        reply = reply.get(key) if isinstance(reply, Mapping) else None
    return reply


_TYPES: Mapping[Kind, type] = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.CHOICE: str,
    Kind.TEXT: str,
}
assert set(_TYPES) == set(Kind), "a kind of value without its type"


def _typed(row: Tunable, value: object) -> Value | None:
    """*value* where it is of the tunable's type."""
    if isinstance(value, bool) and row.kind is not Kind.BOOLEAN:
        return None
    fits = isinstance(value, bool | int | str) and isinstance(value, _TYPES[row.kind])
    return value if fits else None  # type: ignore[return-value]  # mypy does not follow *fits*


def _single(row: Tunable, value: object) -> Reading:
    typed = _typed(row, value)
    return Reading(typed, why_unknown="" if typed is not None else _NO_VALUE)


async def _all(*awaitables: Awaitable[Any]) -> list[Any]:  # any JSON, and what is read from it
    """All results, or the first error once all have ended: nothing runs on behind."""
    results = await asyncio.gather(*awaitables, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
