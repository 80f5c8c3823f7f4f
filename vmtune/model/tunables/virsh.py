"""Tunables in the words of ``virsh migrate``: as its options, and its options as tunables.

Which option sets which tunable, and in which unit, is in the table of tunables; here is what the
table has no column for. Options and their meaning: ``virsh help migrate``, 9.0 to 11.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vmtune.model.plan.plan import Plan
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rows.reaper import OFF
from vmtune.model.tunables.rules import contradictions
from vmtune.model.tunables.tunable import LibvirtKind, Route, Side, Tunable, Value

COMPRESSED, METHODS = "--compressed", "--comp-methods"
_COMPRESSION = f"{COMPRESSED} {METHODS}"
_SWITCHED = {"xbzrle": "xbzrle", "compress": "mt"}
"""Compressions that are switched on rather than chosen, by libvirt's names for them."""
assert all(BUILT_IN[name].libvirt for name in _SWITCHED)


@dataclass(frozen=True, slots=True)
class VirshOption:
    """One option of ``virsh migrate``.

    :param wanted: the tunable's value, which it says.
    :param value: empty for an option that takes none.
    """

    option: str
    tunable: str
    wanted: Value
    value: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """As arguments of a command."""
        return (self.option, self.value) if self.value else (self.option,)


@dataclass(frozen=True, slots=True)
class NotExpressed:
    """A value that no option expresses."""

    tunable: str
    value: Value
    reason: str


@dataclass(frozen=True, slots=True)
class VirshOptions:
    """Values as options, and what these leave not_expressed."""

    options: tuple[VirshOption, ...] = ()
    not_expressed: tuple[NotExpressed, ...] = ()

    @property
    def words(self) -> list[str]:
        """The options as arguments of a command."""
        return [word for option in self.options for word in option.words]


def to_virsh(
    values: Mapping[str, Value],
    tunables: Mapping[str, Tunable],
    against: Mapping[str, str] | None = None,
) -> VirshOptions:
    """What *values* are in options of ``virsh migrate``.

    What is off, or the limit that is none, needs no option: libvirt switches off what is not
    requested.

    >>> to_virsh({"multifd": True, "multifd_channels": 4}, BUILT_IN).words
    ['--parallel', '--parallel-connections', '4']

    :param tunables: rows by name, of all of *values*.
    :param against: why a tunable cannot be set at all, by its name.
    """
    against = against or {}
    options: list[VirshOption] = []
    methods: list[VirshOption] = []
    not_expressed = [
        NotExpressed(name, values[name], why) for name, why in against.items() if name in values
    ]
    left = {name: value for name, value in values.items() if name not in against}
    lonely = without_switch(left)
    for name, value in left.items():
        row = tunables[name]
        reason = (
            lonely.get(name, "") if value == OFF else lonely.get(name) or _no_option(row, value)
        )
        if reason:
            not_expressed.append(NotExpressed(name, value, reason))
        elif not _wants_option(row, value):
            continue  # it is so without one
        elif _option(row).startswith(_COMPRESSION):
            methods.append(VirshOption(METHODS, name, value, _SWITCHED.get(name, str(value))))
        else:
            options.append(VirshOption(_option(row), name, value, _argument(row, value)))
    if methods:
        named = replace(methods[0], value=",".join(method.value for method in methods))
        options += [replace(named, option=COMPRESSED, value=""), named]
    return VirshOptions(tuple(options), tuple(not_expressed))


def plan_to_virsh(plan: Plan) -> VirshOptions:
    """What a plan's values are in options of ``virsh migrate``; those that a blocker stands
    against are left not_expressed, for its reason."""
    against = {item.tunable: plan.reason_against(item.tunable) for item in plan.items}
    for item in plan.items:
        if item.route is Route.MONITOR and item.row.route is Route.MIGRATE:
            why = "this libvirt does not know it: `vmtune apply` sets it beforehand"
            against[item.tunable] = against[item.tunable] or why
    wanted = {item.tunable: item.wanted for item in plan.items}
    rows = {item.tunable: item.row for item in plan.items}
    return to_virsh(wanted, rows, {name: why for name, why in against.items() if why})


def _option(row: Tunable) -> str:
    return row.libvirt.virsh if row.libvirt else ""


def _wants_option(row: Tunable, value: Value) -> bool:
    return value not in (False, "none", OFF) and not (_scale(row) > 1 and value == 0)


def _scale(row: Tunable) -> int:
    return row.libvirt.scale if row.libvirt else 1


def _argument(row: Tunable, value: Value) -> str:
    if value is True:
        return ""
    return str(value // _scale(row)) if isinstance(value, int) else value


def _no_option(row: Tunable, value: Value) -> str:
    """Why no option says it; empty where one does."""
    libvirt = row.libvirt
    if row.route is Route.MIGRATE and libvirt is not None:
        if libvirt.kind is LibvirtKind.AUTOMATIC:
            return f"libvirt decides it: {libvirt.name}"
        if isinstance(value, int) and value % libvirt.scale:
            return f"virsh takes whole MiB/s, and {row.render(value)} is none"
        return ""
    if row.side is Side.DESTINATION:
        return "no option of virsh: it is set on the destination, by vmtune's hook or `migrate`"
    return _OTHERWISE[row.route] + (_ON_THE_WAY if row.running else "")


_ON_THE_WAY = ", and vmtune when it sees the migration"
_OTHERWISE = {
    Route.MONITOR: "no option of virsh: `vmtune apply` sets it beforehand",
    Route.LIVE: "no option of virsh: `vmtune apply` sets it at once",
    Route.BOOT: "no option of virsh: `vmtune apply` writes it for the VM's next start",
    Route.HOST: "no option of virsh: it is a setting of the host",
    Route.CONTROL: "no option of virsh: vmtune does it when it sees the migration",
    Route.RUNNING: "no option of virsh: it is set while the migration runs",
}
assert set(_OTHERWISE) == set(Route) - {Route.MIGRATE}, "a route without its reason"


def without_switch(values: Mapping[str, Value]) -> dict[str, str]:
    """Values that have no effect, or are refused, because what they act on is not among them."""
    found: dict[str, str] = {}
    while True:
        left = {name: value for name, value in values.items() if name not in found}
        lonely = {p.field: p.message for p in contradictions(left, "") if p.field in left}
        if not lonely:
            return found
        found |= lonely


_GIVEN = re.compile(r"\[(--[a-z0-9-]+)[ \]]")


def known_options(help_text: str) -> frozenset[str]:
    """The options that a ``virsh help migrate`` lists.

    >>> sorted(known_options("migrate <domain> <desturi> [--live] [--timeout <number>]"))
    ['--live', '--timeout']
    """
    return frozenset(_GIVEN.findall(help_text))


def only_known(said: VirshOptions, known: frozenset[str], version: str) -> VirshOptions:
    """*said* without the options that a virsh does not know, and what depends on them.

    :param version: of that virsh, for the reason.
    """
    unknown = {o.tunable: o.option for o in said.options if o.option not in known}
    if not unknown:
        return said
    values = {o.tunable: o.wanted for o in said.options}
    reasons = {name: f"virsh {version} has no {option}" for name, option in unknown.items()}
    lonely = without_switch({n: v for n, v in values.items() if n not in unknown})
    dropped = {**reasons, **lonely}
    return VirshOptions(
        tuple(option for option in said.options if option.tunable not in dropped),
        (
            *said.not_expressed,
            *(NotExpressed(name, values[name], why) for name, why in dropped.items()),
        ),
    )


def command(
    uri: str, vm_name: str, destination_uri: str, said: VirshOptions, persistent: bool
) -> str:
    """The command that migrates as vmtune would, on a shell's line."""
    always = ["--live", "--p2p", *(["--persistent", "--undefinesource"] if persistent else [])]
    words: Sequence[str] = ["virsh", "-c", uri, "migrate", *always, *said.words]
    return " ".join(_quoted(word) for word in [*words, vm_name, destination_uri])


_PLAIN = re.compile(r"[A-Za-z0-9@%_+=:,./-]+")


def _quoted(word: str) -> str:
    """For a POSIX shell, as :func:`shlex.quote` does it."""
    return word if _PLAIN.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'"
