"""A host of simulated QEMUs, behind the same code that manages real ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from vmtune.errors import CommandRefused, HostUnreachable, MonitorBusy, OutcomeUnknown
from vmtune.hypervisor.qemu.allowlist import check
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.hypervisor.qmp.monitor import NO_QEMU
from vmtune.hypervisor.qmp.qemu import Link, OnEvent
from vmtune.model.host.facts import Connection, HostFacts, Reading, VmFacts
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.testing.fake.qemu import FakeQemu, FaultKind

RING = "dirty_ring_size_entries"


class FakeDriver(QmpDriver):
    """A :class:`~vmtune.hypervisor.protocol.Driver` over :class:`FakeQemu`.

    :param host: the name of the host; two fakes with one name are one host.
    ``consents`` is what the operator allows tunable packs.

    :param facts: what :meth:`host_facts` says; None for a host where everything is allowed.
    """

    def __init__(
        self,
        qemus: Iterable[FakeQemu],
        host: str = "fake",
        facts: HostFacts | None = None,
        tunables: TunableRegistry = BUILT_IN,
    ) -> None:
        super().__init__(f"qmp+unix:///fake/{host}", tunables=tunables)
        self.fakes = {Path(f"/fake/{host}/{i}.sock"): qemu for i, qemu in enumerate(qemus)}
        self.reachable = True
        self.consents: frozenset[str] = frozenset()
        self._facts = facts or HostFacts(
            connection=Connection.QMP,
            hostname=host,
            ring_reset_ends_early=False,
            uuid=f"machine-of-{host}",
            qemu=None,
            libvirt=None,
            migration_address="127.0.0.1",
            kvm=True,
            cpus=64,
            memory_bytes=1 << 38,
            kernel="6.12",
            sysctls={"vm_max_map_count": 1 << 20, "net_core_optmem_max_bytes": 131072},
            can_lock_beyond_limits=True,
        )

    def empties_rings_in_part(self) -> None:
        """From now on its kernel is one under which a full dirty ring can end a guest."""
        self._facts = replace(self._facts, ring_reset_ends_early=True)

    async def host_facts(self) -> HostFacts:
        """What the test has said."""
        self._sockets()
        return self._facts

    async def vm_facts(self, vm: UUID) -> VmFacts:
        """As of a QEMU whose process can be seen, where it has a dirty ring."""
        self._sockets()  # a host that cannot be reached says nothing, whoever was connected before
        facts = await super().vm_facts(vm)
        ring = self._ring(vm)
        if not ring:
            return facts
        return replace(facts, kvm=True, readings={**facts.readings, RING: Reading(ring)})

    async def read(self, vm: UUID, tunables: Collection[str]) -> dict[str, Reading]:
        """Likewise."""
        readings = await super().read(vm, tunables)
        ring = self._ring(vm)
        return {**readings, RING: Reading(ring)} if ring and RING in readings else readings

    def _ring(self, vm: UUID) -> int:
        return next((q.ring.entries for q in self.fakes.values() if q.uuid == vm), 0)

    def _sockets(self) -> list[Path]:
        if not self.reachable:
            raise HostUnreachable("the fake host cannot be reached", field="uri")
        return [path for path, qemu in self.fakes.items() if qemu.alive]

    def _link(self, path: Path, on_event: OnEvent, on_lost: Callable[[], None]) -> Link:
        return FakeLink(self.fakes[path], on_event, on_lost, self.consents)


class FakeLink:
    """A connection to a fake QEMU, on which its faults happen."""

    pid: int | None = None

    def __init__(
        self,
        qemu: FakeQemu,
        on_event: OnEvent,
        on_lost: Callable[[], None],
        more: Collection[str] = (),
    ) -> None:
        self._more = more
        self._qemu = qemu
        self._on_event = on_event
        self._on_lost = on_lost
        self._connected = False
        self.connections = 0

    @property
    def connected(self) -> bool:
        """Whether the fake is alive and this link was not lost."""
        return self._connected and self._qemu.alive

    async def connect(self) -> None:
        """Connect; see :meth:`Link.connect`."""
        if self.connected:
            return
        if not self._qemu.alive:
            raise HostUnreachable("the fake QEMU has ended", code=NO_QEMU)
        if self._qemu.taken:
            raise MonitorBusy("the fake's monitor is taken", remedy="disconnect the other client")
        self._connected = True
        self.connections += 1
        self._qemu.notify, self._qemu.lose = self._on_event, self._lost

    async def execute(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,  # any JSON
    ) -> Any:  # any JSON
        """Run one command, unless something goes wrong."""
        check(command, arguments, self._more)
        if not self.connected:
            raise HostUnreachable("the connection to the fake was lost")
        fault = self._qemu.fault(command)
        kind = fault.kind if fault else None
        if kind is FaultKind.REFUSE:
            assert fault is not None
            raise CommandRefused(fault.text)
        if kind is FaultKind.HANG:
            await asyncio.Event().wait()
        answer = None
        if kind is not FaultKind.LOSE_BEFORE:
            answer = self._qemu.answer(command, arguments or {})
        if kind is not None or not self._qemu.alive:
            self._lost()
            raise OutcomeUnknown(
                f"the connection to QEMU was lost before it answered {command}",
                remedy="look again whether it took effect",
            )
        await asyncio.sleep(0)
        return answer

    async def end_qemu(self) -> None:
        """Its QEMU ends."""
        self._qemu.answer("quit", {})

    def _lost(self) -> None:
        if self._connected:
            self._connected = False
            self._on_lost()

    async def close(self) -> None:
        """Let go."""
        self._connected = False
