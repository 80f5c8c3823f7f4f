"""QEMUs without libvirt: a folder of QMP sockets is a host, each socket a VM."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from uuid import UUID

from vmtune.errors import CommandRefused, HostUnreachable, OutcomeUnknown
from vmtune.hypervisor.linux.dirty_ring import ask_ring_reset
from vmtune.hypervisor.linux.local_host import read_local_host
from vmtune.hypervisor.qemu import control as qemu_control
from vmtune.hypervisor.qemu.guest_agent import GuestAgent
from vmtune.hypervisor.qemu.virtio_queues import virtio_queues
from vmtune.hypervisor.qemu.write import write
from vmtune.hypervisor.qmp.agent_socket import SocketChannel, find_socket
from vmtune.hypervisor.qmp.disk_calls import QmpDisks
from vmtune.hypervisor.qmp.folder import state_of
from vmtune.hypervisor.qmp.migrations import QmpMigrations
from vmtune.hypervisor.qmp.qemu import Qemu
from vmtune.model.host.dirty_rates import DirtyPoint, DirtyRates
from vmtune.model.host.facts import Connection, HostFacts, Reading, VmFacts, VmState, VmSummary
from vmtune.model.host.page_contents import PageSample
from vmtune.model.host.ring_reset import resets_end_early
from vmtune.model.host.virtio_queues import VirtioQueue
from vmtune.model.plan.changes import Change


class QmpDriver(QmpMigrations, QmpDisks):
    """A :class:`~vmtune.hypervisor.protocol.Driver` for QEMUs whose ``-qmp unix:`` sockets, named
    ``*.sock`` or ``*.qmp``, are in one folder. They have to run on this machine.

    A QEMU without ``-uuid`` is known by a UUID made from its ``-name``, or else from its
    socket's path. Events come from QEMUs that were listed or queried.

    For its parameters see :class:`~vmtune.hypervisor.qmp.host.QmpHost`.
    """

    async def close(self) -> None:
        """Close all monitors. Migrations continue; callers that wait for one get an unknown end."""
        self._hub.close()
        await asyncio.gather(*(migration.let_go() for migration in tuple(self._migrations)))
        for task in self._switching.values():
            task.cancel()
        await asyncio.gather(*self._switching.values(), return_exceptions=True)
        await self._folder.close()

    async def host_facts(self) -> HostFacts:
        """This machine. Its QEMUs may be of several versions, so it has none of its own."""
        self._sockets()
        host, reset = await asyncio.to_thread(lambda: (read_local_host(), ask_ring_reset()))
        return HostFacts(
            connection=Connection.QMP,
            hostname=host.hostname,
            uuid=host.machine_id,
            qemu=None,
            libvirt=None,
            migration_address=self._migration_address,
            kvm=host.kvm,
            cpus=host.cpus,
            memory_bytes=host.memory_bytes,
            memory_available_bytes=host.memory_available_bytes,
            kernel=host.kernel,
            sysctls=host.sysctls,
            can_lock_beyond_limits=host.can_lock_beyond_limits,
            ring_reset_ends_early=resets_end_early(reset.ends_early, host.kernel),
            cpu_idle_s=host.cpu_idle_s,
        )

    async def list_vms(self) -> Sequence[VmSummary]:
        """The QEMUs that answer. One whose monitor is taken is listed by its command line,
        in the state ``other``, where it can be seen; so is one that takes no command just now.

        :raise VmtuneError: none could be asked, for the first one's reason.
        """
        problems = await self._folder.scan()
        summaries = await asyncio.gather(*(self._summary(q) for q in self._folder.qemus))
        found: dict[UUID, VmSummary] = {}
        for summary in summaries:
            # One QEMU may have two sockets here, of which one is taken.
            if summary is not None and (
                summary.uuid not in found or found[summary.uuid].state is VmState.OTHER
            ):
                found[summary.uuid] = summary
        if not found and problems:
            raise next(iter(problems.values()))
        return sorted(found.values(), key=lambda summary: (summary.name, summary.uuid))

    async def _summary(self, qemu: Qemu) -> VmSummary | None:
        if not qemu.known:
            return None
        state = VmState.OTHER
        if qemu.monitor.connected:
            try:
                state = await state_of(qemu)
            except (OutcomeUnknown, HostUnreachable):
                if self._folder.connected(qemu.uuid) is None:
                    return None  # it has just ended
        return VmSummary(qemu.uuid, qemu.name, state)

    async def vm_facts(self, vm: UUID) -> VmFacts:
        """Probe a VM and its QEMU."""
        return await self._folder.ask(vm, lambda qemu: qemu.probe.facts(qemu.uuid, qemu.name))

    async def read(self, vm: UUID, tunables: Collection[str]) -> dict[str, Reading]:
        """What the named tunables are set to right now."""
        return await self._folder.ask(vm, lambda qemu: qemu.probe.read(tunables))

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        """Set values in the order given; see :func:`vmtune.hypervisor.qemu.write.write`."""
        await self._write(vm, changes, lambda: None)

    async def _write(self, vm: UUID, changes: Sequence[Change], sent: Callable[[], None]) -> None:
        qemu = await self._folder.find(vm)
        try:
            await write(qemu.monitor, changes, self.tunables, qemu.probe.known_objects, sent)
        except HostUnreachable as error:
            raise OutcomeUnknown(
                error.message, remedy="look again what of it took effect"
            ) from error

    async def write_and_read(
        self, vm: UUID, changes: Sequence[Change], tunables: Collection[str]
    ) -> dict[str, Reading]:
        """The questions are on their way before the changes are answered: QEMU executes what a
        monitor sends it one after the other."""
        sent = asyncio.Event()

        async def read() -> dict[str, Reading]:
            await sent.wait()
            return await self.read(vm, tunables)

        reading = asyncio.create_task(read(), name=f"read back {vm}")
        try:
            await self._write(vm, changes, sent.set)
            sent.set()  # where it was not known before
            return await reading
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def write_boot(self, vm: UUID, changes: Sequence[Change]) -> None:
        """There is no persistent configuration here.

        :raise CommandRefused: always, unless nothing is to be set.
        """
        if changes:
            raise CommandRefused(
                "this QEMU was not started by libvirt, so there is no configuration to change",
                field=f"values.{changes[0].tunable}",
                code="boot_needs_owner",
                remedy="start QEMU with the option",
            )

    async def vm_state(self, vm: UUID) -> VmState:
        """What the VM is doing."""
        return await self._folder.ask(vm, state_of)

    async def pause(self, vm: UUID) -> None:
        """Stop the guest. It stays so when it has arrived: QEMU hands its state on."""
        qemu = await self._folder.find(vm)
        await qemu.monitor.execute("stop")

    async def resume(self, vm: UUID) -> None:
        """Resume the guest."""
        qemu = await self._folder.find(vm)
        await qemu.monitor.execute("cont")

    async def measure_dirty_rates(self, vm: UUID, over_ms: int) -> None:
        """Begin a measurement that ends with emptied rings."""
        qemu = await self._folder.find(vm)
        await qemu_control.measure_dirty_rates(qemu.monitor, over_ms)

    async def dirty_rates(self, vm: UUID) -> DirtyRates:
        """How far the last measurement is."""
        return await self._folder.ask(vm, lambda qemu: qemu_control.dirty_rates(qemu.monitor))

    async def sample_dirtied(self, vm: UUID, over_ms: int, pages_per_gib: int) -> DirtyPoint:
        """What the guest changes in a time."""
        return await self._folder.ask(
            vm, lambda qemu: qemu_control.sample_dirtied(qemu.monitor, over_ms, pages_per_gib)
        )

    async def resident_bytes(self, vm: UUID) -> int | None:
        """As /proc says, where it can be seen."""
        qemu = await self._folder.find(vm)
        process = qemu.process()
        sizes = await asyncio.to_thread(process.memory_bytes) if process is not None else None
        return None if sizes is None else sizes[1]

    async def sample_pages(
        self, vm: UUID, memory_bytes: int, before: PageSample | None = None
    ) -> PageSample | None:
        """Likewise."""
        process = (await self._folder.find(vm)).process()
        if process is None:
            return None
        return await asyncio.to_thread(process.sample_pages, memory_bytes, before)

    async def objects(self, vm: UUID) -> Collection[str]:
        """The ids of its QEMU's objects."""
        return await self._folder.ask(vm, lambda qemu: qemu_control.objects(qemu.monitor))

    async def takes_postcopy_with_multifd(self, vm: UUID) -> bool | None:
        """Whether its QEMU takes post-copy together with multifd."""
        return await self._folder.ask(
            vm, lambda qemu: qemu_control.takes_postcopy_with_multifd(qemu.monitor)
        )

    async def virtio_queues(self, vm: UUID) -> Sequence[VirtioQueue]:
        """The first queue of each of its virtio devices."""
        return await self._folder.ask(vm, lambda qemu: virtio_queues(qemu.monitor))

    async def lift_dirty_limit(self, vm: UUID) -> None:
        """Hold its vCPUs back no longer."""
        await self._folder.ask(vm, lambda qemu: qemu_control.lift_dirty_limit(qemu.monitor))

    async def guest_agent(self, vm: UUID) -> GuestAgent:
        """The agent in its guest, by the socket of its channel."""
        socket = await self._folder.ask(vm, lambda qemu: find_socket(qemu.monitor))
        return GuestAgent(SocketChannel(socket, self._guard))
