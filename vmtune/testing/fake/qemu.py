"""A QEMU that is not there: answers QMP commands from a recording, and fails on demand.

For tests of what a real QEMU cannot be made to do: lose the connection after the third
command, hang, migrate as fast or as slowly as the test wants. It refuses what the real one
refuses, as far as vmtune relies on it, and in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any
from uuid import UUID

from vmtune.errors import CommandRefused
from vmtune.hypervisor.qemu import names as qemu_names
from vmtune.model.migration.record import QemuStatus
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.tunable import Kind, QmpKind, Value
from vmtune.testing.fake.dirty_ring import FakeRing
from vmtune.testing.fake.migration import FakeMigration

Recording = Mapping[str, Any]  # any JSON
"""Recorded replies by command; see tests/data/qmp/record.py for what has to be there."""

Network = dict[str, "FakeQemu"]
"""Which fake listens at which migration URI."""

_BLOCKED_MS = 9
DIRTIED_BYTES_PER_S = 8 << 20
"""What its guest writes: a migration with less bandwidth does not converge."""

_LEFT_ALONE_BY_LIBVIRT = frozenset(
    {"dirty-limit", "events", "validate-uuid", "release-ram", "background-snapshot"}
    | {"postcopy-blocktime"}
)


class FaultKind(Enum):
    """What goes wrong."""

    REFUSE = auto()
    LOSE_BEFORE = auto()
    LOSE_AFTER = auto()
    HANG = auto()


@dataclass(slots=True)
class Fault:
    """Something that goes wrong once.

    :param command: at this command; empty for any.
    :param at: at the how-manieth such command from now on.
    :param text: QEMU's error text, for a refusal.
    """

    kind: FaultKind
    command: str = ""
    at: int = 1
    text: str = "refused by the test"


class FakeQemu:
    """One QEMU.

    :param network: shared by the QEMUs that can migrate to each other.
    :param incoming: it waits for a migration, as with ``-incoming defer``.
    :param paced: migrations move only by :meth:`step`; otherwise with each query-migrate.
    :param like_libvirt: something sets the capabilities anew at each migration.
    :param ring_entries: the size of its vCPUs' dirty rings; 0 for a bitmap.
    """

    def __init__(
        self,
        recording: Recording,
        uuid: UUID,
        name: str = "vm",
        network: Network | None = None,
        incoming: bool = False,
        paced: bool = False,
        like_libvirt: bool = False,
        ring_entries: int = 0,
    ) -> None:
        self.recording = recording
        self.uuid = uuid
        self.name = name
        self.network = network if network is not None else {}
        self.paced = paced
        self.like_libvirt = like_libvirt
        self.ring = FakeRing(ring_entries)
        self.iterations_when_paused = 3
        self.stops_again = False  # as by an I/O error, whenever it is resumed
        self.version = qemu_names.version(recording["query-version"])
        self.capabilities = qemu_names.capabilities(recording["query-migrate-capabilities"])
        self.parameters: dict[str, Value] = dict(recording["query-migrate-parameters"])
        self.properties: dict[str, dict[str, Any]] = {}  # any JSON, by path
        self.main_loop = ""
        self.status = "inmigrate" if incoming else "running"
        self.listening = ""
        self.outgoing = FakeMigration()
        self.arrived = False
        self.autostart = True
        self.broken = False  # as a destination: its connection was lost in post-copy
        self.fails_when_cancelled = False  # as QEMU may in a race with its return path
        self.completes_when_cancelled = False  # all was there by then
        self.path_is_cut = False  # no new connection reaches its destination
        self.virtqueue_entries = 0  # of every queue, as releases of 10.0 have it; 0: as configured
        self.alive = True
        self.taken = False
        self.faults: list[Fault] = []
        self.commands: list[tuple[str, Mapping[str, Any]]] = []  # any JSON: the arguments
        self.blocks: list[Mapping[str, Any]] = []  # any JSON: what query-block says
        self.notify: Callable[[str, Mapping[str, Any]], None] = lambda name, data: None
        self.lose: Callable[[], None] = lambda: None
        for row in recording["query-iothreads"]:
            self.properties[f"/objects/{row['id']}"] = {
                **{k: v for k, v in row.items() if k not in ("id", "thread-id")},
                "thread-pool-min": 0,
                "thread-pool-max": 64,
            }
        for row in recording["qom-get"]:
            self.properties.setdefault(row["path"], {})[row["property"]] = row["value"]

    def fault(self, command: str) -> Fault | None:
        """What goes wrong at this command, if anything."""
        due: Fault | None = None
        for fault in self.faults:
            if fault.command in ("", command):
                fault.at -= 1
                if fault.at <= 0 and due is None:
                    due = fault  # another that is due by now happens at the next one
        if due is not None:
            self.faults.remove(due)
        return due

    def answer(self, command: str, arguments: Mapping[str, Any]) -> Any:  # any JSON
        """What QEMU answers.

        :raise CommandRefused: in QEMU's words.
        """
        self.commands.append((command, deepcopy(dict(arguments))))
        handler = _HANDLERS.get(command)
        if handler is not None:
            return handler(self, arguments)
        if command in self.recording:
            return deepcopy(self.recording[command])
        raise CommandRefused(f"The command {command} has not been found")

    def die(self) -> None:
        """End as if it had crashed."""
        self.alive = False
        self.lose()

    def step(self) -> None:
        """Move the outgoing migration on by one state or iteration."""
        before = self.outgoing.status
        if not before.running:
            return
        iteration = self.outgoing.iteration
        bandwidth = int(self.parameters["max-bandwidth"])
        self.outgoing.step(
            device=self.version >= (8,),
            converges=not 0 < bandwidth <= DIRTIED_BYTES_PER_S or self.status == "paused",
        )
        if self.outgoing.iteration != iteration:
            self.notify("MIGRATION_PASS", {"pass": self.outgoing.iteration})
        if self.outgoing.status is not before:
            self._notified()
        if self.outgoing.status is QemuStatus.COMPLETED:
            stood, self.status = self.status, "postmigrate"
            destination = self.network.pop(self.outgoing.uri, None)
            if destination is not None:
                starts = destination.autostart and stood == "running"
                destination.status = "running" if starts else "paused"
                destination.arrived = True

    def fail(self, reason: str) -> None:
        """End the outgoing migration without success."""
        self._end_badly(QemuStatus.FAILED, reason)

    def _end_badly(self, status: QemuStatus, reason: str = "") -> None:
        """The destination ends with it, unless its guest runs already."""
        self.outgoing.end(status, reason)
        destination = self.network.get(self.outgoing.uri)
        if destination is not None and destination.status == "inmigrate":
            del self.network[self.outgoing.uri]
            destination.die()
        self._notified()

    def _notified(self) -> None:
        self.notify("MIGRATION", {"status": self.outgoing.status.value})

    def _get_capabilities(self, _: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [{"capability": name, "state": on} for name, on in self.capabilities.items()]

    def _set_capabilities(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {row["capability"]: row["state"] for row in arguments["capabilities"]}
        for name in wanted:
            if name not in self.capabilities:
                raise CommandRefused(f"Parameter 'capability' does not accept value '{name}'")
        if self.outgoing.status.running:
            raise CommandRefused("There's a migration process in progress")
        self._check_capabilities({**self.capabilities, **wanted})
        self.capabilities |= wanted
        return {}

    def _check_capabilities(self, on: Mapping[str, bool]) -> None:
        if on["zero-copy-send"] and not (
            on["multifd"]
            and not on["xbzrle"]
            and self.parameters["multifd-compression"] == "none"
            and not self.parameters["tls-creds"]
        ):
            raise CommandRefused(
                "Zero copy only available for non-compressed non-TLS multifd migration"
            )
        if on["postcopy-preempt"] and not on["postcopy-ram"]:
            raise CommandRefused("Postcopy preempt requires postcopy-ram")
        if on.get("dirty-limit"):
            raise CommandRefused(
                "dirty-limit requires KVM with accelerator property 'dirty-ring-size' set"
            )
        if self.version >= (8,) and on["multifd"] and on["postcopy-ram"]:
            raise CommandRefused("Postcopy is not yet compatible with multifd")
        if on["background-snapshot"] and on["postcopy-ram"]:
            raise CommandRefused("Background-snapshot is not compatible with postcopy-ram")

    def _get_parameters(self, _: Mapping[str, Any]) -> dict[str, Value]:
        return dict(self.parameters)

    def _set_parameters(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        compression = arguments.get("multifd-compression", "none")
        if compression not in self.recording["multifd-compression"]:
            raise CommandRefused(
                f"Parameter 'multifd-compression' does not accept value '{compression}'"
            )
        for name, value in arguments.items():
            self._check_parameter(name, value)
        merged = {**self.parameters, **arguments}
        if int(merged["max-cpu-throttle"]) < int(merged["cpu-throttle-initial"]):
            raise CommandRefused(
                "Parameter 'max_cpu_throttle' expects an integer in the range of "
                "cpu_throttle_initial to 99"
            )
        if self.outgoing.status.running and any(n.startswith("multifd-") for n in arguments):
            self.alive = False  # the real one crashes too
        self.parameters.update(arguments)
        return {}

    def _check_parameter(self, name: str, value: object) -> None:
        if name not in self.parameters:
            raise CommandRefused(f"Parameter '{name}' is unexpected")
        row = BUILT_IN.by_qmp(QmpKind.PARAMETER).get(name)
        if row is None or row.kind is not Kind.INTEGER:
            return
        assert isinstance(value, int) and row.minimum is not None and row.maximum is not None
        if not row.minimum <= value <= row.maximum:
            shown = name.replace("-", "_")
            raise CommandRefused(
                f"Parameter '{shown}' expects a value between {row.minimum} and {row.maximum}"
            )

    def _iothreads(self, _: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [
            {**row, **_listed(self.properties[f"/objects/{row['id']}"])}
            for row in self.recording["query-iothreads"]
        ]

    def _qom_list(self, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
        children: list[dict[str, Any]] = deepcopy(
            self.recording["qom-list"].get(arguments["path"], [])
        )
        if arguments["path"] == "/objects" and self.main_loop:
            children.append({"name": self.main_loop, "type": "child<main-loop>"})
        return children

    def _qom_get(self, arguments: Mapping[str, Any]) -> Any:  # any JSON
        return self._object(arguments)[arguments["property"]]

    def _virtio_queue(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        path = arguments["path"].removesuffix("/virtio-backend")
        configured = self._object({"path": path, "property": "queue-size"})["queue-size"]
        return {"vring-num": self.virtqueue_entries or configured}

    def _qom_set(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        settings = self._object(arguments)
        # Stored first and then checked, as QEMU does with thread pools.
        settings[arguments["property"]] = arguments["value"]
        low, high = settings.get("thread-pool-min", 0), settings.get("thread-pool-max", 64)
        if arguments["property"].startswith("thread-pool-") and (low > high or high < 1):
            raise CommandRefused("bad thread-pool-min/thread-pool-max values")
        return {}

    def _object(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        path, name = arguments["path"], arguments["property"]
        if path not in self.properties:
            raise CommandRefused(f"Device '{path}' not found")
        if name not in self.properties[path]:
            raise CommandRefused(f"Property '{path}.{name}' not found")
        return self.properties[path]

    def _object_add(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self.main_loop:
            raise CommandRefused("only one main-loop instance allowed")
        self.main_loop = arguments["id"]
        self.properties[f"/objects/{self.main_loop}"] = {
            "aio-max-batch": 0,
            "thread-pool-min": 0,
            "thread-pool-max": 64,
        }
        return {}

    def _status(self, _: Mapping[str, Any]) -> dict[str, Any]:
        return {"status": self.status, "running": self.status == "running"}

    def _migrate_incoming(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self.status != "inmigrate":
            raise CommandRefused("'-incoming' was not specified on the command line")
        if self.listening:
            raise CommandRefused("The incoming migration has already been started")
        uri = str(arguments["uri"])
        self.listening = f"{uri[:-1]}{49152 + len(self.network)}" if uri.endswith(":0") else uri
        self.network[self.listening] = self
        return {}

    def _migrate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if arguments.get("resume"):
            return self._resume(str(arguments["uri"]))
        if self.outgoing.status.running:
            raise CommandRefused("There's a migration process in progress")
        if self.like_libvirt:
            self.capabilities |= {
                name: False for name in self.capabilities if name not in _LEFT_ALONE_BY_LIBVIRT
            }
        self.outgoing = FakeMigration(
            arguments["uri"], self.recording["query-memory-size-summary"]["base-memory"]
        )
        self.outgoing.begin(early_completed=self.version < (8,))
        self._notified()
        if self.outgoing.uri not in self.network:
            self.fail(f"Failed to connect to '{self.outgoing.uri}': Connection refused")
        return {}

    def _resume(self, uri: str) -> dict[str, Any]:
        if self.outgoing.status is not QemuStatus.POSTCOPY_PAUSED:
            raise CommandRefused("Cannot resume if there is no paused migration")
        destination = self.network.get(uri)
        if destination is None or not destination.broken or self.path_is_cut:
            self.outgoing.error = f"Failed to connect to '{uri}': Connection refused"
            self.outgoing.status = QemuStatus.POSTCOPY_RECOVER_SETUP
            return {}
        destination.broken = False
        self.outgoing.uri, self.outgoing.status = uri, QemuStatus.POSTCOPY_ACTIVE
        self._notified()
        return {}

    def _pause_postcopy(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if self.outgoing.status is QemuStatus.POSTCOPY_ACTIVE:
            self.break_postcopy()
        elif not self.listening or self.broken or self.arrived or self.status == "inmigrate":
            raise CommandRefused(
                "migrate-pause is currently only supported during postcopy-active state"
            )
        self.broken = bool(self.listening)
        return {}

    def _migrate_recover(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if not self.broken:
            raise CommandRefused("Migrate recover can only be run when postcopy is paused.")
        self.network[str(arguments["uri"])] = self
        return {}

    def break_postcopy(self) -> None:
        """The connection to the destination is lost in post-copy."""
        self.outgoing.status = QemuStatus.POSTCOPY_PAUSED
        destination = self.network.get(self.outgoing.uri)
        if destination is not None:
            destination.broken = True
        self._notified()

    def _query_migrate(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if self.listening and not self.outgoing.uri:
            if self.arrived:
                counted = {
                    "postcopy-blocktime": _BLOCKED_MS,
                    "postcopy-vcpu-blocktime": [_BLOCKED_MS],
                }
                return (
                    {"status": "completed", **counted} if self.counts else {"status": "completed"}
                )
            if self.broken:
                return {"status": "postcopy-paused"}
            port = self.listening.rpartition(":")[2]
            return {"status": "setup", "socket-address": [{"type": "inet", "port": port}]}
        reply = self.outgoing.reply()
        if not self.paced:
            self.step()
        return reply

    @property
    def counts(self) -> bool:
        """Whether it counts what a post-copy costs."""
        return bool(self.capabilities.get("postcopy-blocktime"))

    def _cancel(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if self.completes_when_cancelled:
            return {}
        if self.outgoing.status.running and self.fails_when_cancelled:
            self.fail("Channel error: Input/output error")
        elif self.outgoing.status.running:
            self._end_badly(QemuStatus.CANCELLED)
        return {}

    def _start_postcopy(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if not self.capabilities["postcopy-ram"]:
            raise CommandRefused("Enable postcopy with migrate_set_capability before the start")
        self.outgoing.status = QemuStatus.POSTCOPY_ACTIVE
        destination = self.network.get(self.outgoing.uri)
        if destination is not None:
            destination.status = "running"
        self._notified()
        return {}

    def _stop(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if self.status == "inmigrate":
            self.autostart = False
        if self.status == "running":
            self.status = "paused"
            # What is left takes its time, but nothing is added to it.
            self.outgoing.iterations = self.outgoing.iteration + self.iterations_when_paused
            self.notify("STOP", {})
        return {}

    def _cont(self, _: Mapping[str, Any]) -> dict[str, Any]:
        if self.status == "inmigrate":
            raise CommandRefused("Migration is not finalized yet")
        if self.status == "paused" and not self.stops_again:
            self.status = "running"
            self.notify("RESUME", {})
        return {}

    def _quit(self, _: Mapping[str, Any]) -> dict[str, Any]:
        self.alive = False
        self.lose()
        return {}

    def _calc_dirty_rate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self.ring.measure(arguments, self.version)

    def _query_dirty_rate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self.ring.reply(arguments, self.version)


def _listed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in properties.items() if not k.startswith("thread-pool-")}


_HANDLERS: Mapping[str, Callable[[FakeQemu, Mapping[str, Any]], Any]] = {
    "query-uuid": lambda qemu, _: {"UUID": str(qemu.uuid)},
    "query-name": lambda qemu, _: {"name": qemu.name} if qemu.name else {},
    "query-status": FakeQemu._status,
    "query-migrate-capabilities": FakeQemu._get_capabilities,
    "migrate-set-capabilities": FakeQemu._set_capabilities,
    "query-migrate-parameters": FakeQemu._get_parameters,
    "migrate-set-parameters": FakeQemu._set_parameters,
    "query-block": lambda qemu, _: qemu.blocks,
    "query-iothreads": FakeQemu._iothreads,
    "qom-list": FakeQemu._qom_list,
    "qom-get": FakeQemu._qom_get,
    "qom-set": FakeQemu._qom_set,
    "x-query-virtio-queue-status": FakeQemu._virtio_queue,
    "object-add": FakeQemu._object_add,
    "migrate-incoming": FakeQemu._migrate_incoming,
    "migrate": FakeQemu._migrate,
    "migrate-pause": FakeQemu._pause_postcopy,
    "migrate-recover": FakeQemu._migrate_recover,
    "query-migrate": FakeQemu._query_migrate,
    "migrate_cancel": FakeQemu._cancel,
    "migrate-start-postcopy": FakeQemu._start_postcopy,
    "stop": FakeQemu._stop,
    "cont": FakeQemu._cont,
    "quit": FakeQemu._quit,
    "calc-dirty-rate": FakeQemu._calc_dirty_rate,
    "query-dirty-rate": FakeQemu._query_dirty_rate,
}
