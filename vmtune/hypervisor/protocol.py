"""What every driver can do. The contract suite in tests/contract holds all of them to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from vmtune.hypervisor.qemu.block_export import BlockNode, Export
from vmtune.hypervisor.qemu.guest_agent import GuestAgent
from vmtune.model.host.dirty_rates import DirtyPoint, DirtyRates
from vmtune.model.host.disks import Disk
from vmtune.model.host.facts import HostFacts, Reading, VmFacts, VmState, VmSummary
from vmtune.model.host.hardware import Offer
from vmtune.model.host.page_contents import PageSample
from vmtune.model.host.virtio_queues import VirtioQueue
from vmtune.model.migration.disks import CopiedDisk, Mirrored
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.prior import NotePrior, Prior
from vmtune.model.migration.record import Snapshot, Totals
from vmtune.model.plan.changes import Change
from vmtune.model.tunables.tunable import Value

VM_BUSY = "busy"
"""The code of a :class:`~vmtune.errors.CommandRefused` that says nothing of the command: another
operation has the VM at the moment."""


class EventKind(StrEnum):
    """What a driver reports to its watchers."""

    MIGRATION_STATUS = "migration status"
    MIGRATION_ITERATION = "migration iteration"
    DISK_COPY = "disk copy"
    """The copy of a disk has begun, along with a migration."""
    VM_STATE = "vm state"
    CONNECTION_LOST = "connection lost"
    CONNECTED = "connected"
    """Events before it may be missing; later ones are reported."""


@dataclass(frozen=True, slots=True)
class DriverEvent:
    """Something that happened to a VM, as QEMU or libvirt reported it.

    :param vm: None where it concerns the whole host (a connection, lost or made).
    :param detail: the new status, the iteration's number, the name of the job that copies a disk,
        or a reason.
    """

    kind: EventKind
    vm: UUID | None
    detail: str


@dataclass(frozen=True, slots=True)
class MigrateOrder:
    """A migration to start.

    :param values: the ``migrate`` route's tunables. Capabilities that are not named are
        off while it runs, on both sides; parameters that are not named stay as they are.
    :param destination_values: tunables of the destination alone (announce-*).
    :param note_prior: records what is set on both QEMUs, before anything is; not called where
        libvirt sets and restores it.
    :param meanwhile: what has to be done, too, before the migration is called, and need not wait
        for the driver's own preparations. It has ended when :meth:`Driver.start_migration` returns
        or raises.
    """

    vm: UUID
    values: Mapping[str, Value]
    destination_values: Mapping[str, Value]
    note_prior: NotePrior | None = None
    meanwhile: Callable[[], Awaitable[None]] | None = None


class ArrivingXml(Protocol):
    """Reads and edits the XML of a VM that libvirt is about to take in. Blocks, and may be called
    from any thread."""

    def identify(self, xml: str) -> tuple[UUID, str]:
        """The UUID and the name of the domain that *xml* describes.

        :raise InvalidInput: it is no domain's.
        """

    def edit(self, xml: str, values: Mapping[str, Value]) -> str | None:
        """*xml* so that the VM's QEMU is started with *values*; None where it is so already."""


class MigrationHandle(Protocol):
    """A migration that this driver started and whose end it will learn."""

    @property
    def done(self) -> bool:
        """Whether :meth:`wait` would return at once."""

    @property
    def begun(self) -> bool:
        """False where it is over and certainly never began: what migrates is another's."""

    async def wait(self) -> None:
        """Return when the migration has succeeded.

        :raise CommandRefused: it failed or was aborted; the message is QEMU's or libvirt's.
        :raise OutcomeUnknown: the connection was lost: look again.
        """


class Controls(Protocol):
    """What the controllers of a migration, the reaper and the convergence steps, need of a driver.
    The errors are those of :class:`Driver`."""

    async def read(self, vm: UUID, tunables: Collection[str]) -> dict[str, Reading]:
        """What the named tunables are set to right now: cheaper than :meth:`vm_facts`."""

    async def write(self, vm: UUID, changes: Sequence[Change]) -> None:
        """Set values in the order given; neighbours of one kind go together.

        Where something is refused, the rest may be set or not: the caller restores it from its
        journal.

        :raise CommandRefused: with the field ``values.<tunable>`` where one is to blame.
        """

    async def migration(self, vm: UUID, at_ms: int = 0) -> Snapshot:
        """The VM's outgoing migration, as QEMU says right now.

        :raise NotFound: the VM is no longer here: it has gone, or was never here.
        """

    async def measure_dirty_rates(self, vm: UUID, over_ms: int) -> None:
        """Begin to measure how fast each vCPU dirties memory, also while it migrates: at the
        end of the measurement QEMU empties all dirty rings. What QEMU switches on for it, it
        switches off again by itself.

        :param over_ms: 50 to 60,000.
        :raise CommandRefused: code ``already_measuring`` while another measurement runs (for
            a moment after its beginning QEMU does not notice); any other where there is no
            dirty ring or QEMU is older than 8.2.
        """

    async def dirty_rates(self, vm: UUID) -> DirtyRates:
        """How far the last measurement is, and what it found."""

    async def vm_state(self, vm: UUID) -> VmState:
        """What the VM is doing.

        :raise NotFound: it is not on this host.
        """

    async def pause(self, vm: UUID) -> None:
        """Stop the guest, also while it migrates away. Harmless when repeated.

        Under libvirt it runs again by itself when the migration has ended, on whichever host
        it then is; without libvirt it stays paused there.
        """

    async def start_postcopy(self, vm: UUID) -> None:
        """Let the guest run on the destination before all of its memory is there. The switch
        itself comes a moment later.

        :raise TooLate: no migration is active.
        :raise CommandRefused: the migration was not started with ``postcopy``.
        """

    async def abort_migration(self, vm: UUID) -> None:
        """Ask QEMU to cancel.

        :raise TooLate: in post-copy, or ended already.
        """


class Driver(Controls, Protocol):
    """One host. Safe for concurrent use from one event loop; no call blocks the loop.

    Every method may raise :class:`~vmtune.errors.HostUnreachable` when no connection can be
    made, :class:`~vmtune.errors.MonitorBusy` when another client holds QEMU's monitor,
    :class:`~vmtune.errors.NotFound` when the VM is not on this host,
    :class:`~vmtune.errors.CommandRefused` when QEMU or libvirt refuses, and
    :class:`~vmtune.errors.OutcomeUnknown` when the connection is lost while a command that
    changes something is under way. A driver connects on demand and reconnects by itself.
    """

    @property
    def uri(self) -> str:
        """The host's address, as given."""

    def daemon_lost_since(self, moment: float) -> bool:
        """Whether the connection to the host's libvirt was lost since *moment*; never without
        libvirt.

        :param moment: of :func:`time.monotonic`.
        """

    async def close(self) -> None:
        """Close connections and threads. Nothing on the host changes."""

    async def host_facts(self) -> HostFacts:
        """Probe the host."""

    async def list_vms(self) -> Sequence[VmSummary]:
        """The VMs of the host, running or not."""

    async def vm_facts(self, vm: UUID) -> VmFacts:
        """Probe a VM and its QEMU, with a reading of every tunable that can be read."""

    async def write_and_read(
        self, vm: UUID, changes: Sequence[Change], tunables: Collection[str]
    ) -> dict[str, Reading]:
        """Set values as :meth:`write` does, and read the named tunables after that, as
        :meth:`read` does, with as little waiting in between as the way to QEMU allows."""

    async def write_boot(self, vm: UUID, changes: Sequence[Change]) -> None:
        """Set values in the persistent configuration, for the VM's next start.

        :raise CommandRefused: where there is none (a transient VM, a QEMU without libvirt).
        """

    async def start_migration(self, order: MigrateOrder, destination: Driver) -> MigrationHandle:
        """Begin a live migration to *destination*, both sides prepared as *order* says.

        Returns as soon as it has been handed over; it may not be active yet.

        :raise CommandRefused: it could not be begun; both sides are as before.
        """

    async def recover_postcopy(
        self, vm: UUID, destination: Driver, address: str = "", *, gives_up: bool = False
    ) -> None:
        """Give a migration that is paused in post-copy a new connection to *destination*, no
        matter what started it. Asked on the source. Returns once it goes on.

        :param address: what to connect to, instead of the usual address of the destination.
        :param gives_up: a connection that QEMU has not given up yet is given up.
        :raise TooLate: it is not paused in post-copy.
        :raise CommandRefused: it could not be connected, and stays paused; code
            ``recovery_not_offered`` where no attempt would help.
        """

    async def outgoing(self) -> Sequence[UUID]:
        """The VMs that migrate away right now, no matter what started it. Where a QEMU would have
        to be connected to first, it is left out."""

    async def migrating_ms(self, vm: UUID) -> int | None:
        """For how long a migration of the VM to another host has been under way, no matter who
        started it; None where there is none, or its age is not known yet.

        :raise NotFound: the VM is not here.
        """

    async def managed_by(self, vm: UUID) -> str:
        """The program that manages the VM (:mod:`vmtune.model.host.managers`); empty if none that
        is known does.

        :raise NotFound: the VM is not here.
        """

    async def completed(self, vm: UUID) -> Totals | None:
        """The figures of the VM's last completed migration, asked on its destination."""

    async def postcopy_figures(self, vm: UUID) -> PostcopyFigures | None:
        """What the post-copy that brought the VM here cost its guest, asked on the destination once
        all has arrived; None where QEMU did not count."""

    async def resume(self, vm: UUID) -> None:
        """Resume a paused guest. Harmless when repeated."""

    async def block_nodes(self, vm: UUID) -> Sequence[BlockNode]:
        """The block nodes of a running VM's QEMU that have a name."""

    async def export_node(self, vm: UUID, export: Export) -> None:
        """Export a block node of the VM's QEMU by NBD, on a unix socket of its machine.

        :raise Conflict: QEMU has an NBD server of another program.
        :raise CommandRefused: there is no such node, or it is not vmtune's own and would be
            writable. Nothing is left of it then.
        """

    async def remove_export(self, vm: UUID) -> None:
        """Remove what :meth:`export_node` made. Harmless when repeated."""

    async def guest_agent(self, vm: UUID) -> GuestAgent:
        """The agent in a running VM's guest, which may not answer. Close it.

        :raise SetupError: the VM has no channel for one.
        """

    async def sample_dirtied(self, vm: UUID, over_ms: int, pages_per_gib: int) -> DirtyPoint:
        """What of its memory the guest changes in a time, by comparing sampled pages. Tracks
        nothing, and leaves nothing on. Returns after that time, or somewhat later.

        :param over_ms: 50 to 60,000; whole seconds for a QEMU older than 8.2.
        :param pages_per_gib: 128 to 16,384.
        :return: with the time that QEMU measured.
        :raise CommandRefused: code ``already_measuring`` while another measurement runs,
            ``whole_seconds`` for a time that an older QEMU cannot measure.
        """

    async def resident_bytes(self, vm: UUID) -> int | None:
        """What of QEMU's process is in memory, shared libraries included; None where it cannot be
        seen."""

    async def sample_pages(
        self, vm: UUID, memory_bytes: int, before: PageSample | None = None
    ) -> PageSample | None:
        """What pages of the guest's memory hold, drawn at random; None where it cannot be read: on
        another host, or without root.

        :param memory_bytes: of the guest.
        :param before: an earlier sample: look at the same pages again, and which have changed.
        """

    async def offer(self, vm: VmFacts) -> Offer:
        """What this host offers of what a VM of another host needs."""

    async def disks(self, vm: UUID) -> Sequence[Disk]:
        """The disks of a running VM, with their sizes."""

    async def prepare_images(
        self, vm: UUID, disks: Sequence[CopiedDisk], *, incremental: bool
    ) -> Sequence[CopiedDisk]:
        """On the destination of a migration that copies *disks*: look whether their images exist,
        and create those that do not. Says which these are.

        :raise CommandRefused: an image exists that would be overwritten, or one lacks that an
            incremental copy needs, or it could not be created. What this call has made is gone.
        :raise ImagesLeft: likewise, but for what it has made and could not remove again.
        """

    async def release_images(
        self, vm: UUID, remove: Collection[CopiedDisk] = ()
    ) -> Collection[str]:
        """Undo :meth:`prepare_images`, and remove images of a VM that does not run here. Harmless
        when repeated.

        :param remove: one that was only intended is removed where nothing was written to it and
            nothing else names it.
        :return: the paths of *remove* that are gone now.
        :raise CommandRefused: the VM runs here; nothing was removed.
        :raise PoolsLeft: storage pools that were made for it stay.
        """

    async def remove_source_images(
        self, vm: UUID, disks: Collection[CopiedDisk]
    ) -> Mapping[str, str]:
        """On the source of a migration that has completed and copied *disks*: remove their images
        which nothing else names. Harmless when repeated. What lies beneath an image stays.

        :return: by their targets why images stay; empty for those that are gone.
        :raise CommandRefused: the VM runs here; nothing was removed.
        """

    async def mirrored(self, vm: UUID, targets: Collection[str]) -> Mapping[str, Mirrored]:
        """How far the copies of some of a VM's disks are, by their targets, asked on the source;
        without those that are not copied right now."""

    async def help_copies(
        self,
        vm: UUID,
        targets: Collection[str],
        bytes_per_s: int | None = None,
        *,
        synchronous: bool = False,
    ) -> None:
        """Change how some of a VM's disks are copied while they are, asked on the source.

        :param bytes_per_s: most for each; 0 for no limit, None to leave it.
        :param synchronous: from now on the guest's writes wait for the destination, which QEMU
            does not undo; False leaves it.
        :raise TooLate: none of them is copied right now.
        :raise CommandRefused: QEMU refuses; code ``copy_mode_fixed`` where it is older than 8.2.
        """

    async def objects(self, vm: UUID) -> Collection[str]:
        """The ids of the objects that the VM's QEMU was started with or has got since: TLS
        credentials, iothreads and others."""

    async def takes_postcopy_with_multifd(self, vm: UUID) -> bool | None:
        """Whether the VM's QEMU takes post-copy together with multifd; nothing is set. None where
        it does not say, as during a migration."""

    async def virtio_queues(self, vm: UUID) -> Sequence[VirtioQueue]:
        """The first queue of each virtio device of the VM whose queues QEMU itself serves, network
        cards left out. Empty where it does not say."""

    async def lift_dirty_limit(self, vm: UUID) -> None:
        """Hold no vCPU back any longer by a dirty limit that a migration has left in force.
        Harmless where none is.

        :raise CommandRefused: a migration is still active, or QEMU is older than 7.1.
        """

    async def reset_after_migration(self, vm: UUID, prior: Prior | None = None) -> None:
        """Restore what :meth:`start_migration` set on this side, unless libvirt does it.
        Harmless when repeated.

        :param prior: what was noted of this side; None for what the driver itself remembers.
        :raise CommandRefused: a migration is still active.
        """

    def events(self) -> AsyncGenerator[DriverEvent, None]:
        """What happens on the host from now on; several watchers may listen at once."""
