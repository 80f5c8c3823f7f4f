"""The QMP commands that leave vmtune, and no others.

A client of a QEMU's monitor can end it, give it the host's files and run programs. So each command
is checked before it is sent: its name has to be in the tables below, which follow
from the tunables, from how a QEMU is probed and migrated, and from what benchmarks count; and
where a command can do more than vmtune needs, so do its arguments. A tunable pack may add names
(not arguments) that the operator lists in the setting ``allow_qmp_commands``, and properties and
types of objects that he lists in ``allow_qom``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu import block_allowlist as block_allowed
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.packs.access import consent_to_qom
from vmtune.model.tunables.tunable import QmpKind

Arguments = Mapping[str, Any]  # any JSON
NOT_ALLOWED = "qmp_not_allowed"
"""Code of the refusal."""

_OBJECTS = ("query-iothreads", "qom-get", "qom-set", "qom-list")
FOR_TUNABLES: Mapping[QmpKind, tuple[str, ...]] = {
    QmpKind.CAPABILITY: ("query-migrate-capabilities", "migrate-set-capabilities"),
    QmpKind.PARAMETER: ("query-migrate-parameters", "migrate-set-parameters"),
    QmpKind.IOTHREAD: _OBJECTS,
    QmpKind.MAIN_LOOP: (*_OBJECTS, "object-add"),
    QmpKind.DEVICE: ("qom-get", "qom-list"),
    QmpKind.ACCELERATOR: ("query-kvm", "query-accelerators"),
    QmpKind.QOM: (*_OBJECTS, "qom-list-properties"),
    QmpKind.COMMAND: ("query-qmp-schema",),
}
"""What each place in QEMU that a tunable can have is read and set with."""
assert set(FOR_TUNABLES) == set(QmpKind), "a place in QEMU without its commands"

FOR_PROBING = (
    "query-uuid",
    "query-name",
    "query-status",
    "query-version",
    "query-cpus-fast",
    "query-memory-size-summary",
    "qom-get",
)
FOR_MIGRATION = (
    "query-migrate",
    "migrate",
    "migrate-incoming",
    "migrate_cancel",
    "migrate-start-postcopy",
    "migrate-continue",
    "migrate-pause",
    "migrate-recover",
    "calc-dirty-rate",
    "query-dirty-rate",
    "x-query-virtio-queue-status",
    "cancel-vcpu-dirty-limit",
    "stop",
    "cont",
)
FOR_PACKS = (*FOR_TUNABLES[QmpKind.QOM], *FOR_TUNABLES[QmpKind.COMMAND])
FOR_BENCHMARKS = ("trace-event-set-state", "query-chardev", *block_allowed.COMMANDS)

_USED = {row.qmp.kind for row in BUILT_IN.values() if row.qmp is not None}
ALLOWED: frozenset[str] = frozenset(
    {
        *FOR_PROBING,
        *FOR_MIGRATION,
        *FOR_BENCHMARKS,
        *FOR_PACKS,
        *(command for kind in _USED for command in FOR_TUNABLES[kind]),
    }
)


def _names(kind: QmpKind) -> frozenset[str]:
    rows = (row.qmp for row in BUILT_IN.values())
    return frozenset(qmp.name for qmp in rows if qmp is not None and qmp.kind is kind)


BLOCKTIME = "postcopy-blocktime"
SWITCHES = ("return-path", "pause-before-switchover", "background-snapshot", BLOCKTIME)
"""Capabilities that are no tunables, and that change how a migration goes: set for one and restored
after it."""
_CAPABILITIES = _names(QmpKind.CAPABILITY) | {"events", *SWITCHES}
MADE_UP = "vmtune-asks-only"
"""A parameter that no QEMU has: given it, QEMU reports the first error and sets nothing."""
_PARAMETERS = _names(QmpKind.PARAMETER) | {"tls-creds", "tls-hostname", "tls-authz", MADE_UP}
_PROPERTIES = _names(QmpKind.IOTHREAD) | _names(QmpKind.MAIN_LOOP)
OBJECT_FOLDERS = ("/objects", "/machine/peripheral", "/machine/peripheral-anon")
"""Where QEMU has the objects that users made."""
_RING_EVENTS = "kvm_dirty_ring_"


def _goes_to_a_socket(arguments: Arguments) -> str:
    uri = str(arguments.get("uri", ""))
    known = set(arguments) == {"uri"} and uri.startswith(("tcp:", "unix:"))
    return "" if known else "a migration goes to a socket, never to a program or a file"


def _goes_or_resumes(arguments: Arguments) -> str:
    if "resume" in arguments and arguments["resume"] is not True:
        return "resume is true where it is given"
    return _goes_to_a_socket({k: v for k, v in arguments.items() if k != "resume"})


def _sets_capabilities(arguments: Arguments) -> str:
    named = {str(row.get("capability")) for row in arguments.get("capabilities", ())}
    return _unknown(named - _CAPABILITIES, "capability")


def _sets_parameters(arguments: Arguments) -> str:
    return _unknown(set(arguments) - _PARAMETERS, "parameter")


def _sets_a_property(arguments: Arguments) -> str:
    if not str(arguments.get("path", "")).startswith("/objects/"):
        return "only iothreads and the main loop have properties to set"
    return _unknown({str(arguments.get("property"))} - _PROPERTIES, "property")


def _adds_the_main_loop(arguments: Arguments) -> str:
    known = set(arguments) == {"qom-type", "id"} and arguments["qom-type"] == "main-loop"
    return "" if known else "only the main-loop object may be added"


def _traces_the_ring(arguments: Arguments) -> str:
    known = str(arguments.get("name", "")).startswith(_RING_EVENTS)
    return "" if known and "*" not in str(arguments["name"]) else "only the ring is traced"


def _first_queue_of_a_device(arguments: Arguments) -> str:
    path = str(arguments.get("path", ""))
    inside = path.startswith(tuple(f"{folder}/" for folder in OBJECT_FOLDERS[1:]))
    known = inside and path.endswith("/virtio-backend") and arguments.get("queue") == 0
    return "" if known else "only the first queues of devices are looked at"


def _unknown(names: Collection[str], what: str) -> str:
    return f"no tunable has the {what} {min(names)}" if names else ""


GUARDS: Mapping[str, Callable[[Arguments], str]] = {
    "migrate": _goes_or_resumes,
    "migrate-incoming": _goes_to_a_socket,
    "migrate-recover": _goes_to_a_socket,
    "migrate-set-capabilities": _sets_capabilities,
    "migrate-set-parameters": _sets_parameters,
    "qom-set": _sets_a_property,
    "object-add": _adds_the_main_loop,
    "trace-event-set-state": _traces_the_ring,
    "x-query-virtio-queue-status": _first_queue_of_a_device,
    **block_allowed.GUARDS,
}
"""What the arguments of a command have to be: why they are refused, empty where they are not."""
assert set(GUARDS) <= ALLOWED, "a guard for what is never sent"


def _consented(command: str, arguments: Arguments, more: Collection[str]) -> bool:
    """Whether the operator allows a pack to set this property, or to make this object."""
    if command == "qom-set":
        name = str(arguments.get("property"))
        path = str(arguments.get("path", "")).rpartition("/")[0]
        ends = {each.rpartition(".")[2] for each in more if each.startswith(consent_to_qom(""))}
        return path in OBJECT_FOLDERS and name in ends
    if command == "object-add" and set(arguments) == {"qom-type", "id"}:
        return consent_to_qom(str(arguments["qom-type"])) in more
    return False


def check(command: str, arguments: Arguments | None, more: Collection[str] = ()) -> None:
    """Let a command through to a QEMU.

    :param more: what the operator also allows: names of commands, and consents to objects
        (:func:`vmtune.model.tunables.packs.access.consent_to_qom`).
    :raise CommandRefused: it is not sent, and why; code ``qmp_not_allowed``.
    """
    if command not in ALLOWED:
        if command in more:
            return
        raise CommandRefused(
            f"vmtune does not send the QMP command {command[:80]!r}",
            code=NOT_ALLOWED,
            remedy="a tunable pack's own commands have to be in the setting allow_qmp_commands",
        )
    guard = GUARDS.get(command)
    why = guard(arguments or {}) if guard else ""
    if why and not _consented(command, arguments or {}, more):
        raise CommandRefused(
            f"vmtune does not send {command} with these arguments: {why}",
            code=NOT_ALLOWED,
            remedy="what a tunable pack sets and makes has to be in the setting allow_qom"
            if command in ("qom-set", "object-add")
            else "",
        )
