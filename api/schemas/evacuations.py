"""Evacuations: requests, plans, progress."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field, StrictInt, StrictStr

from vmtune.api.schemas.common import Model, Page, TextOrNone
from vmtune.api.schemas.intents import IntentView, RawIntent
from vmtune.api.schemas.plans import FindingView, PlannedDiskView
from vmtune.model.evacuation.evacuation import (
    EvacuationPlan,
    EvacuationState,
    EvacuationVm,
    EvacuationVmState,
    LocalDisks,
    Order,
)
from vmtune.model.migration.admission import MAX_PRIORITY, MIN_PRIORITY
from vmtune.model.migration.intent import parse_intent
from vmtune.services.evacuations.evacuations import EvacuationStatus
from vmtune.services.evacuations.plan import EvacuationRequest


class EvacuationCreate(Model):
    """An evacuation to start. By default it moves all VMs to any eligible hosts."""

    destinations: list[StrictStr] = Field(
        default=[], max_length=1000, description="Names of hosts; empty for all eligible hosts."
    )
    order: Order = Field(default=Order.PRIORITY, description="Order of the VMs.")
    overrides: list[StrictStr] = Field(
        default=[],
        max_length=50,
        description="Codes of blockers to override for all VMs; the values concerned are left out, "
        "but for those that say which disks are copied.",
    )
    vm_overrides: dict[UUID, list[StrictStr]] = Field(
        default={}, max_length=10_000, description="Likewise for single VMs, by UUID."
    )
    profile: StrictStr | None = Field(
        default=None, description="Null for the profile assigned to each VM."
    )
    priority: StrictInt = Field(
        default=0,
        ge=MIN_PRIORITY,
        le=MAX_PRIORITY,
        description="Priority of its migrations in the queue; higher runs first.",
    )
    max_outgoing: StrictInt | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Maximum of concurrent migrations; at most the service's limit.",
    )
    stop_after_failures: StrictInt | None = Field(
        default=None, ge=1, le=100_000, description="Stop after so many failed migrations."
    )
    intent: RawIntent | None = Field(
        default=None,
        description="What each migration has to keep; null for the intent of each VM's profile. "
        "Each VM is measured before its turn, and stays if its intent cannot be kept.",
    )

    local_disks: LocalDisks = Field(
        default=LocalDisks.PROFILE,
        description="VMs with disks that their destination does not share: `copy` copies these "
        "along, `leave` leaves the VM where it is, `profile` does what the VM's profile says.",
    )

    def asked(self, host: str, among: frozenset[str] | None) -> EvacuationRequest:
        """As the service takes it."""
        return EvacuationRequest(
            host,
            tuple(dict.fromkeys(self.destinations)),
            self.order,
            tuple(self.overrides),
            {vm: tuple(codes) for vm, codes in self.vm_overrides.items()},
            self.profile,
            self.priority,
            self.max_outgoing,
            self.stop_after_failures,
            among,
            None if self.intent is None else parse_intent(self.intent),
            self.local_disks,
        )


class EvacuationVmView(Model):
    """One VM of an evacuation."""

    vm: UUID
    name: str
    memory_bytes: int = Field(description="0 if it is not running.")
    priority: int = Field(description="The value of its label `priority`.")
    state: EvacuationVmState
    destination: TextOrNone = Field(description="Null if there is none.")
    reason: str = Field(description="Why it is not moved; empty otherwise.")
    findings: list[FindingView] = Field(description="Findings of the preflight.")
    blockers: list[str] = Field(description="Codes of its blockers that can be overridden.")
    overrides: list[str]
    migration: UUID | None = Field(description="Null until it starts.")
    disks: list[PlannedDiskView] = Field(description="The local disks that are copied along.")

    @classmethod
    def of(cls, vm: EvacuationVm) -> EvacuationVmView:
        blockers = (f.code for f in vm.findings if f.overridable and f.stops(vm.overrides))
        return cls.from_record(
            vm,
            blockers=list(dict.fromkeys(blockers)),
            disks=[PlannedDiskView.from_record(disk) for disk in vm.disks],
        )


class EvacuationVmPage(Page[EvacuationVmView]):
    """VMs of an evacuation, in order of migration."""


class RoomLeftView(Model):
    """A file system of a destination that images are copied to."""

    host: str
    folders: list[str] = Field(description="Folders of the images.")
    free_bytes: int = Field(description="Free now.")
    promised_bytes: int = Field(
        description="Of that, what copies of other VMs will take: those under way, and those of "
        "other evacuations."
    )
    needed_bytes: int = Field(description="What the images of these VMs take.")
    left_bytes: int = Field(description="Free once all have come.")


class EvacuationPlanView(Model):
    """The plan of an evacuation: destinations and blockers."""

    host: str
    order: Order
    movable: int = Field(description="Number of VMs that would be migrated.")
    left: int = Field(description="Number of running VMs that would remain, each with its reason.")
    considered: list[str] = Field(
        description="Hosts that were checked; others are skipped if these have enough room."
    )
    refused: dict[str, str] = Field(
        description="Hosts that cannot receive any of its VMs, and why."
    )
    vms: list[EvacuationVmView] = Field(description="In order of migration.")
    rooms: list[RoomLeftView] = Field(
        description="The file systems that images are copied to, as far as their room is known."
    )

    @classmethod
    def of(cls, plan: EvacuationPlan) -> EvacuationPlanView:
        return cls.from_record(
            plan,
            movable=len(plan.movable),
            left=len(plan.left),
            vms=[EvacuationVmView.of(vm) for vm in plan.vms],
            rooms=[RoomLeftView.from_record(room) for room in plan.rooms],
        )


class EvacuationView(Model):
    """An evacuation and its progress."""

    id: UUID
    host: str
    destinations: list[str] = Field(description="Empty for all eligible hosts.")
    order: Order
    priority: int
    max_outgoing: int | None
    stop_after_failures: int | None
    profile: TextOrNone = Field(description="Null for the profile assigned to each VM.")
    intent: IntentView | None = Field(description="What each migration has to keep.")
    local_disks: LocalDisks = Field(description="What becomes of VMs that have some.")
    state: EvacuationState
    ended: bool
    reason: str = Field(description="Why it failed; empty if a user cancelled it.")
    total: int = Field(description="VMs.")
    finished: int = Field(description="Number of VMs that need no more work.")
    moved: int
    left: int = Field(description="Number of running VMs that remain, each with its reason.")
    states: dict[EvacuationVmState, int] = Field(description="Number of VMs in each state.")
    total_bytes: int = Field(description="Memory of the VMs to move.")
    moved_bytes: int
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, status: EvacuationStatus) -> EvacuationView:
        record, tally = status.record, status.tally
        return cls.from_record(
            record,
            intent=IntentView.of(record.intent),
            ended=record.state.ended,
            total=tally.total,
            finished=tally.finished,
            moved=tally.states.get(EvacuationVmState.MOVED, 0),
            left=tally.left,
            states=dict(tally.states),
            total_bytes=tally.total_bytes,
            moved_bytes=tally.moved_bytes,
        )


class EvacuationPage(Page[EvacuationView]):
    """Evacuations, newest first."""
