"""How a tunable of a pack is found, read and set in QEMU: by an object's property, or by commands
that a patched QEMU has. Pure data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Json = bool | int | float | str | list["Json"] | dict[str, "Json"]
VALUE = "$value"
"""Stands in a command's arguments for the value that is to be set."""
_CONSENT_TO_OBJECTS = "qom:"


def consent_to_qom(name: str) -> str:
    """The operator's consent to ``TYPE.PROPERTY`` (set it) or ``TYPE`` (make such an object), as
    opposed to the names of commands."""
    return _CONSENT_TO_OBJECTS + name


@dataclass(frozen=True, slots=True)
class QomAccess:
    """A property of existing objects, made on the command line, by libvirt or at run time.

    :param types: QOM types; objects of any of them are its parts.
    :param prop: the property.
    :param member: the part of a property that is a structure; empty where it is a value.
    :param create: the id of an object that is made, of the first type and without further
        properties, where there is none and a value is set; empty: none is made.
    """

    types: tuple[str, ...]
    prop: str
    member: str = ""
    create: str = ""

    @property
    def name(self) -> str:
        """As people read it."""
        return ".".join(filter(None, (self.types[0], self.prop, self.member)))

    @property
    def probe(self) -> str:
        """How it is found and read."""
        where = f"qom-get of {self.prop} on each {self.types[0]}"
        return f"qom-list-properties of {', '.join(self.types)}; {where}"

    @property
    def consents(self) -> frozenset[str]:
        """What the operator has to consent to, so that it can be set."""
        names = {f"{each}.{self.prop}" for each in self.types}
        if self.create:
            names.add(self.types[0])
        return frozenset(map(consent_to_qom, names))


@dataclass(frozen=True, slots=True)
class Command:
    """A QMP command.

    :param arguments: ``$value`` in them stands for the value.
    :param result: where the value is in the answer, keys joined by dots; empty for all of it.
    """

    execute: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    result: str = ""


@dataclass(frozen=True, slots=True)
class CommandAccess:
    """Commands of a patched QEMU.

    :param apply: None for what can only be read.
    """

    read: Command
    apply: Command | None = None

    @property
    def name(self) -> str:
        """As people read it."""
        return f"{self.read.execute}:{self.read.result}" if self.read.result else self.read.execute

    @property
    def probe(self) -> str:
        """How it is found and read."""
        return f"query-qmp-schema; {self.read.execute}"

    @property
    def commands(self) -> frozenset[str]:
        """All that it sends."""
        return frozenset({self.read.execute, *((self.apply.execute,) if self.apply else ())})

    @property
    def consents(self) -> frozenset[str]:
        """What the operator has to consent to, so that it can be read and set."""
        return self.commands


Access = QomAccess | CommandAccess


def filled_in(arguments: Json, value: bool | int | str) -> Json:
    """*arguments* with *value* in place of ``$value``."""
    if arguments == VALUE and isinstance(arguments, str):
        return value
    if isinstance(arguments, dict):
        return {name: filled_in(each, value) for name, each in arguments.items()}
    if isinstance(arguments, list):
        return [filled_in(each, value) for each in arguments]
    return arguments
