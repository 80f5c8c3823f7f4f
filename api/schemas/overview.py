"""The fleet at a glance."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model, TextOrNone
from vmtune.model.host.contact import NEVER, Contact, HostState
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.model.overview import LATELY, ActivityKind, Concern, FoundKind, HostLoad, recent
from vmtune.model.plan.tuning_state import TuningState
from vmtune.services.overview import Glance


class SubjectView(Model):
    """One thing that needs attention."""

    id: str = Field(description="UUID of the migration, evacuation or VM; name of the host.")
    name: str
    text: str = Field(description="Why, in short; may be empty.")
    since: datetime | None


class AttentionView(Model):
    """What needs attention, by kind."""

    concern: Concern
    count: int
    subjects: list[SubjectView] = Field(description="Some of them.")


class HostLoadView(Model):
    """A host as of the last contact."""

    name: str
    state: HostState
    maintenance: bool
    vms: int = Field(description="How many VMs were last seen on it.")
    outgoing: int = Field(description="Migrations from it that have not ended.")
    incoming: int = Field(description="Migrations to it that have not ended.")
    memory_bytes: int | None = Field(description="Null if unknown.")
    memory_available_bytes: int | None = Field(description="Null if unknown.")
    findings: int | None = Field(description="Problems found; null if nobody looked yet.")

    @classmethod
    def of(cls, host: HostLoad, contact: Contact, outgoing: int, incoming: int) -> HostLoadView:
        """A host, its last contact, and what leaves it and comes to it."""
        facts = contact.facts
        return cls(
            name=host.name,
            state=contact.state,
            maintenance=host.maintenance_since is not None,
            vms=host.vms,
            outgoing=outgoing,
            incoming=incoming,
            memory_bytes=facts.memory_bytes if facts else None,
            memory_available_bytes=facts.memory_available_bytes if facts else None,
            findings=contact.findings,
        )


class MoveView(Model):
    """A migration, in short."""

    id: UUID
    vm: UUID
    vm_name: str
    source: str
    destination: TextOrNone
    trigger: Trigger
    state: MigrationState
    created_at: datetime
    active_at: datetime | None
    ended_at: datetime | None
    downtime_ms: int | None
    total_time_ms: int | None
    exceeded: bool = Field(description="The downtime was longer than its limit.")
    intent_broken: bool = Field(description="It did not keep its intent.")


class OverviewView(Model):
    """The fleet at a glance. No host was asked for it."""

    at: datetime
    since: datetime = Field(description="How far back `migrations` reach.")
    attention: list[AttentionView] = Field(description="The most urgent first.")
    hosts: list[HostLoadView] = Field(description="All hosts, sorted by name.")
    migrations: list[MoveView] = Field(
        description="Those that run, and those that ended since, newest first."
    )
    cut: bool = Field(description="There were more since: the oldest are missing.")
    tuning_counts: dict[TuningState, int] = Field(
        description="Numbers of VMs by tuning state as last seen."
    )

    @classmethod
    def of(cls, glance: Glance) -> OverviewView:
        """The fleet as it was looked at."""
        standing = glance.standing
        outgoing: dict[str, int] = {}
        incoming: dict[str, int] = {}
        for move in standing.moves:
            if not move.state.ended:
                outgoing[move.source] = outgoing.get(move.source, 0) + 1
                incoming[move.destination] = incoming.get(move.destination, 0) + 1
        return cls(
            at=glance.at,
            since=glance.at - LATELY,
            attention=[AttentionView.from_record(each) for each in glance.attention],
            hosts=[
                HostLoadView.of(
                    host,
                    glance.contacts.get(host.name, NEVER),
                    outgoing.get(host.name, 0),
                    incoming.get(host.name, 0),
                )
                for host in standing.hosts
            ],
            migrations=[MoveView.from_record(move) for move in recent(standing.moves, glance.at)],
            cut=standing.cut,
            tuning_counts=dict(standing.tunings),
        )


class ActivityView(Model):
    """Something that runs, or has ended."""

    kind: ActivityKind
    id: UUID
    title: str = Field(description="Whom it concerns: a VM, a host, a campaign, a scenario.")
    detail: str
    state: str = Field(description="In the words of its kind.")
    ended: bool
    failure: str
    created_at: datetime
    ended_at: datetime | None
    host: TextOrNone = Field(description="Of an evacuation: the host in its address.")
    actor: TextOrNone = Field(
        description="Who began it; null if unknown, or if you may not read the audit log."
    )


class Activities(Model):
    """What runs, then what ended last."""

    items: list[ActivityView]


class FoundView(Model):
    """One result of a search."""

    kind: FoundKind
    id: str = Field(description="UUID, or the name of a host or profile.")
    title: str
    detail: str


class SearchResults(Model):
    """What a search found, by kind."""

    items: list[FoundView]
