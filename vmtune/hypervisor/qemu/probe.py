"""Reading a QEMU over any monitor: the same for a QMP socket, for libvirt and for a fake."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from vmtune.errors import CommandRefused
from vmtune.hypervisor.asking import once_asked
from vmtune.hypervisor.linux.locked_memory import pinned_by_others_bytes
from vmtune.hypervisor.linux.qemu_process import ProgramFile, QemuProcess
from vmtune.hypervisor.qemu import names as qemu_names
from vmtune.hypervisor.qemu.allowlist import MADE_UP
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.packs import PACK_KINDS, PackProbe, PackSeen
from vmtune.hypervisor.qemu.qom import children_of
from vmtune.hypervisor.qemu.replies import reading_reply
from vmtune.model.host.facts import MemoryMaps, Reading, VmFacts
from vmtune.model.migration.record import read_query_migrate
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import QmpKind, Tunable, Value
from vmtune.model.versions import Version

# "virtio-blk-pci" and its kin: disks whose queues count for the coroutine pool.
_VIRTIO_BLK = (
    "virtio-blk-pci",
    "virtio-blk-pci-transitional",
    "virtio-blk-pci-non-transitional",
    "virtio-blk-device",
)
_PERIPHERALS = ("/machine/peripheral", "/machine/peripheral-anon")
_WITH_ACCELERATORS = Version(11)
_IOTHREAD_LISTED = ("poll-max-ns", "poll-grow", "poll-shrink", "poll-weight", "aio-max-batch")
_POOL = ("thread-pool-min", "thread-pool-max")
_QUEUES = ("num-queues", "queue-size")

Parts = Mapping[str, Mapping[str, Value]]
"""Values by owner and QEMU's name of the property."""


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What cannot change while a QEMU process lives."""

    qemu: Version
    machine: str
    kvm: bool
    compression_methods: frozenset[str]


@dataclass(slots=True)
class _Seen:
    """What was read; None and absent kinds were not requested."""

    capabilities: Mapping[str, bool] | None = None
    parameters: Mapping[str, Value] | None = None
    parts: dict[QmpKind, Parts] = field(default_factory=dict)
    packs: PackSeen = field(default_factory=PackSeen)


@dataclass(frozen=True, slots=True)
class KnownObjects:
    """What was last read of QEMU's objects, so that it need not be asked again.

    :param main_loop: the id of its main-loop object; empty where none was seen.
    :param pools: thread-pool limits by object path and property: the value to which a refused one
        is restored.
    """

    main_loop: str = ""
    pools: Mapping[tuple[str, str], Value] = field(default_factory=dict)


class QemuProbe:
    """Reads one QEMU process. Remembers what stays the same as long as it lives, so make
    a new one when QEMU was restarted.

    Commands that do not depend on each other are issued at once: over a QMP socket they
    are pipelined, a monitor that takes one command at a time has to queue them.

    :param tunables: what is read, packs included.
    :param process: the local process, where it is known: the dirty ring's size and the
        locked-memory limit are not in QMP.
    """

    def __init__(
        self, monitor: Monitor, tunables: TunableRegistry, process: QemuProcess | None = None
    ) -> None:
        self._monitor = monitor
        self._tunables = tunables
        self._process = process
        self._fixed: _Fixed | None = None
        self._main_loop = ""
        self._known_iothreads: tuple[str, ...] = ()
        self._pools: dict[tuple[str, str], Value] = {}
        self._packs = PackProbe(monitor)

    @property
    def known_objects(self) -> KnownObjects:
        """What was last read of QEMU's objects."""
        return KnownObjects(self._main_loop, self._pools)

    async def facts(self, vm: UUID, name: str) -> VmFacts:
        """Everything that a monitor and /proc report. *boot_readings* stay empty: a monitor
        has no persistent configuration.

        :raise VmtuneError: as :meth:`Monitor.execute` does.
        """
        with reading_reply("itself"):
            return await self._facts(vm, name)

    async def _facts(self, vm: UUID, name: str) -> VmFacts:
        execute = self._monitor.execute
        process = self._process
        fixed, seen, status, migrate, cpus, memory, (maps, stack_bytes, aborts) = await _all(
            self._get_fixed(),
            self._see(self._tunables.values()),
            execute("query-status"),
            execute("query-migrate"),
            execute("query-cpus-fast"),
            execute("query-memory-size-summary"),
            once_asked(lambda: asyncio.to_thread(_of_process, process)),
        )
        snapshot = read_query_migrate(migrate)
        return VmFacts(
            uuid=vm,
            name=name,
            state=qemu_names.vm_state(status["status"]),
            qemu=fixed.qemu,
            machine=fixed.machine,
            kvm=fixed.kvm,
            memory_bytes=memory["base-memory"] + memory.get("plugged-memory", 0),
            vcpus=len(cpus),
            capabilities=seen.capabilities or {},
            parameters=seen.parameters or {},
            compression_methods=fixed.compression_methods,
            iothreads=tuple(sorted(seen.parts[QmpKind.IOTHREAD])),
            main_loop=bool(self._main_loop),
            virtio_disks=tuple(sorted(seen.parts[QmpKind.DEVICE])),
            readings={
                t.name: self._reading(t, seen, fixed.kvm)
                for t in self._tunables.values()
                if _is_of_qemu(t)
            },
            persistent=False,
            migrating=snapshot.status.running,
            locked_memory_limit_bytes=process.locked_memory_limit_bytes() if process else None,
            may_lock_memory=process.may_lock_memory() if process else None,
            pinned_by_others_bytes=pinned_by_others_bytes(process.pid) if process else None,
            blocked_reasons=snapshot.blocked_reasons,
            pid=process.pid if process else None,
            pack_offers=seen.packs.offered,
            maps=maps,
            stack_bytes=stack_bytes,
            aborts_on_short_reset=aborts,
        )

    async def read(self, tunables: Collection[str]) -> dict[str, Reading]:
        """The named tunables, by the fewest commands that report them. Those that are no
        setting of QEMU (sysctls) are left out.

        :raise SetupError: a tunable of a pack that is not loaded.
        :raise VmtuneError: as :meth:`Monitor.execute` does.
        """
        with reading_reply("its settings"):
            return await self._read(tunables)

    async def _read(self, tunables: Collection[str]) -> dict[str, Reading]:
        known = map(self._tunables.row, tunables)
        rows = [row for row in known if _is_of_qemu(row)]
        kvm = False
        if any(_kind(t) is QmpKind.ACCELERATOR for t in rows):
            kvm = (await self._get_fixed()).kvm
        seen = await self._see(rows)
        return {t.name: self._reading(t, seen, kvm) for t in rows}

    async def _get_fixed(self) -> _Fixed:
        if self._fixed is None:
            execute = self._monitor.execute
            version = qemu_names.version(await execute("query-version"))
            kvm, machine, methods = await _all(
                self._has_kvm(version),
                execute("qom-get", {"path": "/machine", "property": "type"}),
                self._compression_methods(),
            )
            machine = str(machine).removesuffix("-machine")
            self._fixed = _Fixed(version, machine, kvm, methods)
        return self._fixed

    async def _has_kvm(self, version: Version) -> bool:
        """Whether it runs with KVM. QEMU 11 has a command for all accelerators, and deprecates the
        one for KVM."""
        if version >= _WITH_ACCELERATORS:
            with contextlib.suppress(CommandRefused):
                reply = await self._monitor.execute("query-accelerators")
                return bool(reply["enabled"] == "kvm")
        return bool((await self._monitor.execute("query-kvm"))["enabled"])

    async def _compression_methods(self) -> frozenset[str]:
        """What this QEMU's program was found to accept, asked once for each program."""
        program = self._process.program() if self._process else None
        methods = _METHODS.get(program) if program else None
        if methods is None:
            methods = await self._ask_compression_methods()
            if program:
                _METHODS[program] = methods
        return methods

    async def _ask_compression_methods(self) -> frozenset[str]:
        """What multifd-compression accepts in this build; empty if QEMU does not report it.

        The schema has it too, but takes QEMU and us 60 ms (200 KB). Instead each method is sent
        with a parameter that no QEMU has: QEMU reads all of them before it
        sets any, so it complains of the method or else of the made-up name, and changes
        nothing (the generated visitor of MigrateSetParameters).
        """
        choices = BUILT_IN["multifd_compression"].choices
        answers = await _all(*(self._complaint(method) for method in choices))
        complaints = dict(zip(choices, answers, strict=True))
        return frozenset(m for m, text in complaints.items() if MADE_UP in text)

    async def _complaint(self, method: str) -> str:
        try:
            await self._monitor.execute(
                "migrate-set-parameters", {"multifd-compression": method, MADE_UP: 0}
            )
        except CommandRefused as refusal:
            return refusal.message
        return ""

    async def _see(self, rows: Collection[Tunable]) -> _Seen:
        """Query what *rows* need."""
        names: dict[QmpKind, set[str]] = {}
        for row in rows:
            kind = _kind(row)
            if kind is not None:
                names.setdefault(kind, set()).add(row.qmp.name if row.qmp else row.name)
        seen = _Seen()
        asked = {
            QmpKind.CAPABILITY: self._capabilities,
            QmpKind.PARAMETER: self._parameters,
            QmpKind.IOTHREAD: self._iothreads,
            QmpKind.MAIN_LOOP: self._main_loop_parts,
            QmpKind.DEVICE: self._disks,
        }
        await _all(
            self._packs_seen(seen, [row for row in rows if _kind(row) in PACK_KINDS]),
            *(ask(seen, names[kind]) for kind, ask in asked.items() if kind in names),
        )
        return seen

    async def _packs_seen(self, seen: _Seen, rows: Collection[Tunable]) -> None:
        seen.packs = await self._packs.see(rows)

    async def _capabilities(self, seen: _Seen, names: Collection[str]) -> None:
        reply = await self._monitor.execute("query-migrate-capabilities")
        seen.capabilities = qemu_names.capabilities(reply)

    async def _parameters(self, seen: _Seen, names: Collection[str]) -> None:
        reply = await self._monitor.execute("query-migrate-parameters")
        seen.parameters = qemu_names.parameters(reply)

    async def _iothreads(self, seen: _Seen, names: Collection[str]) -> None:
        wanted = [name for name in _POOL if name in names]
        # Those that were there last time are asked without waiting for the list.
        reply, pools = await _all(
            self._monitor.execute("query-iothreads"),
            self._properties(_paths(self._known_iothreads), wanted),
        )
        listed = {
            row["id"]: {k: row[k] for k in _IOTHREAD_LISTED if row.get(k) is not None}
            for row in reply
        }
        if listed.keys() != set(self._known_iothreads):
            self._known_iothreads = tuple(listed)
            pools = await self._properties(_paths(listed), wanted)
        seen.parts[QmpKind.IOTHREAD] = {
            id_: {**values, **pools.get(id_, {})} for id_, values in listed.items()
        }

    async def _main_loop_parts(self, seen: _Seen, names: Collection[str]) -> None:
        # The object cannot be deleted, so once seen its id stays good.
        if not self._main_loop:
            self._main_loop = await find_main_loop(self._monitor)
        paths = _paths(filter(None, [self._main_loop]))
        seen.parts[QmpKind.MAIN_LOOP] = await self._properties(paths, sorted(names))

    async def _disks(self, seen: _Seen, names: Collection[str]) -> None:
        lists = await _all(*(children_of(self._monitor, path) for path in _PERIPHERALS))
        paths = {
            name: f"{folder}/{name}"
            for folder, reply in zip(_PERIPHERALS, lists, strict=True)
            for name in qemu_names.children(reply, *_VIRTIO_BLK)
        }
        wanted = [name for name in _QUEUES if name in names]
        seen.parts[QmpKind.DEVICE] = await self._properties(paths, wanted)

    async def _properties(self, paths: Mapping[str, str], names: Collection[str]) -> Parts:
        """Each property of each object; what the object does not have is left out."""
        questions = [(owner, path, name) for owner, path in paths.items() for name in names]
        values = await _all(*(self._property(path, name) for _, path, name in questions))
        parts: dict[str, dict[str, Value]] = {owner: {} for owner in paths}
        for (owner, _, name), value in zip(questions, values, strict=True):
            if value is not None:
                parts[owner][name] = value
                if name in _POOL:
                    self._pools[paths[owner], name] = value
        return parts

    async def _property(self, path: str, name: str) -> Value | None:
        try:
            value: Value = await self._monitor.execute("qom-get", {"path": path, "property": name})
        except CommandRefused:
            return None  # unplugged meanwhile, or a QEMU without the property
        return value

    def _reading(self, row: Tunable, seen: _Seen, kvm: bool) -> Reading:
        """One tunable out of what was seen."""
        if row.name == "tls":
            creds = (seen.parameters or {}).get("tls-creds")
            return _single(None if creds is None else bool(creds))
        if row.qmp is None:
            return self._locked_memory()
        match row.qmp.kind:
            case QmpKind.CAPABILITY:
                return _single((seen.capabilities or {}).get(row.qmp.name))
            case QmpKind.PARAMETER:
                return _single((seen.parameters or {}).get(row.qmp.name))
            case QmpKind.QOM | QmpKind.COMMAND:
                return seen.packs.readings[row.name]
            case QmpKind.ACCELERATOR:
                return self._dirty_ring(kvm)
            case kind:
                return _of_parts(row, kind, seen.parts[kind])

    def _locked_memory(self) -> Reading:
        limit = self._process.locked_memory_limit_bytes() if self._process else None
        return Reading(limit, why_unknown="" if limit is not None else _NO_PROCESS)

    def _dirty_ring(self, kvm: bool) -> Reading:
        if not kvm:
            return Reading(0)
        size = self._process.dirty_ring_size_entries() if self._process else None
        return Reading(size, why_unknown="" if size is not None else _NO_PROCESS)


def _paths(objects: Iterable[str]) -> dict[str, str]:
    return {id_: f"/objects/{id_}" for id_ in objects}


async def find_main_loop(monitor: Monitor) -> str:
    """The id of QEMU's main-loop object; empty if there is none.

    :raise VmtuneError: as :meth:`Monitor.execute` does.
    """
    objects = await children_of(monitor, "/objects")
    return next(iter(qemu_names.children(objects, "main-loop")), "")


_METHODS: dict[ProgramFile, frozenset[str]] = {}
_NO_PROCESS = "it is not in QMP, and QEMU's process cannot be seen"
_NOT_THERE = "this QEMU does not have it"
_NO_PARTS = {
    QmpKind.IOTHREAD: "the VM has no iothread",
    QmpKind.DEVICE: "the VM has no virtio-blk disk",
}


def _single(value: Value | None) -> Reading:
    if value is None:
        return Reading(None, why_unknown=_NOT_THERE)
    return Reading(value) if value != "" else Reading(None, why_unknown="it is not set")


def _of_process(
    process: QemuProcess | None,
) -> tuple[MemoryMaps | None, int | None, bool | None]:
    """Its memory maps, what a coroutine's stack has of memory, and whether it aborts where a dirty
    ring is emptied in part. Blocks."""
    if process is None:
        return None, None, None
    return (*process.maps_and_stack_bytes(), process.aborts_on_short_reset())


def _of_parts(row: Tunable, kind: QmpKind, parts: Parts) -> Reading:
    if kind is QmpKind.MAIN_LOOP and not parts:
        # Without the object QEMU's own defaults hold (util/async.c).
        return Reading(row.default)
    assert row.qmp is not None, f"{row.name} has no QMP name"
    name = row.qmp.name
    values = {owner: values[name] for owner, values in parts.items() if name in values}
    if kind is QmpKind.MAIN_LOOP:
        return _single(next(iter(values.values()), None))
    return Reading.of_parts(values, _NOT_THERE if parts else _NO_PARTS[kind])


def _kind(row: Tunable) -> QmpKind | None:
    """Where QEMU keeps it; ``tls`` is read from the credentials parameter."""
    if row.name == "tls":
        return QmpKind.PARAMETER
    return row.qmp.kind if row.qmp else None


def _is_of_qemu(row: Tunable) -> bool:
    return _kind(row) is not None or row.name == "locked_memory_bytes"


async def _all(*awaitables: Awaitable[Any]) -> list[Any]:  # any JSON, and what is read from it
    """All results, or the first error once all have ended: nothing runs on behind."""
    results = await asyncio.gather(*awaitables, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
