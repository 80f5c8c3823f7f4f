"""The tables. Nothing outside the store sees these classes.

A change here needs a revision in vmtune.migrations; a test compares the two.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import (
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    MetaData,
    UniqueConstraint,
    false,
    func,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from vmtune.storage.columns import Json, Number, Plain, UtcTime

VERSION_TABLE = "vmtune_schema_version"
"""Where Alembic notes the schema's revision. Its usual name, alembic_version, is taken
where the database is shared with a program that uses Alembic too."""

JsonObject = dict[str, Any]  # any JSON: vmtune.storage.mapping gives it its types
JsonList = list[JsonObject]


class Base(DeclarativeBase):
    """All tables. Every constraint has a name, so that a migration can change it."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
        }
    )
    type_annotation_map: ClassVar = {
        datetime: UtcTime(),
        str: Plain(),
        JsonObject: Json,
        JsonList: Json,
        list[str]: Json,
    }


_NEVER_REUSED = {"sqlite_autoincrement": True}  # else SQLite gives the last number again


class HostRow(Base):
    __tablename__ = "hosts"

    name: Mapped[str] = mapped_column(Plain("name"), primary_key=True)
    uri: Mapped[str] = mapped_column(Plain("uri"))
    peer_uri: Mapped[str] = mapped_column(Plain("peer_uri"))
    migration_address: Mapped[str] = mapped_column(Plain("migration_address"))
    created_at: Mapped[datetime]
    owner: Mapped[str] = mapped_column(Plain("owner"), default="", server_default=text("''"))
    machine: Mapped[str] = mapped_column(Plain("machine"), default="", server_default=text("''"))
    migrate_uri: Mapped[str] = mapped_column(
        Plain("migrate_uri"), default="", server_default=text("''")
    )
    listen_address: Mapped[str] = mapped_column(
        Plain("listen_address"), default="", server_default=text("''")
    )
    disks_uri: Mapped[str] = mapped_column(
        Plain("disks_uri"), default="", server_default=text("''")
    )
    maintenance_since: Mapped[datetime | None]


class VmRow(Base):
    __tablename__ = "vms"
    __table_args__ = (Index(None, "name", "uuid", "host"),)

    uuid: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(Plain("name"))
    host: Mapped[str] = mapped_column(Plain("host"), ForeignKey("hosts.name"), index=True)
    labels: Mapped[JsonObject]
    seen_at: Mapped[datetime | None]


class ProfileRow(Base):
    """A profile. A deleted one keeps its row, so that its revisions stay readable and
    a new profile of that name continues its numbers."""

    __tablename__ = "profiles"

    name: Mapped[str] = mapped_column(Plain("name"), primary_key=True)
    description: Mapped[str] = mapped_column(Plain("description"))
    current: Mapped[int]
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


class RevisionRow(Base):
    __tablename__ = "profile_revisions"

    profile: Mapped[str] = mapped_column(
        Plain("profile"), ForeignKey("profiles.name"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    values: Mapped[JsonObject]
    steps: Mapped[JsonList]
    note: Mapped[str] = mapped_column(Plain("note"))
    created_at: Mapped[datetime]
    intent: Mapped[JsonObject | None] = mapped_column(Json)


class AssignmentRow(Base):
    __tablename__ = "assignments"
    __table_args__ = (UniqueConstraint("target", "key"), _NEVER_REUSED)

    id: Mapped[int] = mapped_column(Number, primary_key=True)
    target: Mapped[str]
    key: Mapped[str] = mapped_column(Plain("key"))
    profile: Mapped[str] = mapped_column(Plain("profile"), ForeignKey("profiles.name"), index=True)
    created_at: Mapped[datetime]
    intent: Mapped[JsonObject | None] = mapped_column(Json)


class OperationRow(Base):
    """The operation that has the VM to itself: one row, or none."""

    __tablename__ = "operations"

    vm: Mapped[UUID] = mapped_column(primary_key=True)
    kind: Mapped[str]
    operation: Mapped[UUID]
    taken_at: Mapped[datetime]
    service: Mapped[str] = mapped_column(Plain("service"), default="", server_default=text("''"))


class ApplicationRow(Base):
    """*number* orders them: clocks can be set back."""

    __tablename__ = "applications"
    __table_args__ = (
        UniqueConstraint("id"),
        Index(None, "vm", "number"),
        Index(None, "state"),
        _NEVER_REUSED,
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    id: Mapped[UUID]
    vm: Mapped[UUID]
    host: Mapped[str] = mapped_column(Plain("host"))
    profile: Mapped[str] = mapped_column(Plain("profile"))
    revision: Mapped[int]
    wanted: Mapped[JsonObject]
    state: Mapped[str]
    best_effort: Mapped[bool]
    journal: Mapped[JsonList]
    outcomes: Mapped[JsonList]
    problems: Mapped[JsonList]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class TuningRow(Base):
    """A VM's tuning state as last seen (vmtune.model.plan.tuning_state)."""

    __tablename__ = "tunings"
    __table_args__ = (Index(None, "state", "since"),)

    vm: Mapped[UUID] = mapped_column(primary_key=True)
    state: Mapped[str]
    profile: Mapped[str] = mapped_column(Plain("profile"))
    revision: Mapped[int]
    application: Mapped[UUID | None]
    differing: Mapped[list[str]]
    as_of: Mapped[datetime]
    since: Mapped[datetime]


class MigrationRow(Base):
    """*number* orders them: clocks can be set back.

    :param samples_kept: which of its samples are kept (vmtune.model.retention).
    :param samples_thinned_s: the interval in seconds, if they were thinned.
    :param downtime_ms: of its totals, to sort by, as *total_time_ms* is; -1 where there are none.
    :param downtime_exceeded: whether its guest stood still for longer than was asked for.
    """

    __tablename__ = "migrations"
    __table_args__ = (
        UniqueConstraint("id"),
        Index(None, "vm", "number"),
        Index(None, "state"),
        Index(None, "samples_kept", "ended_at"),
        Index(None, "downtime_exceeded", "number"),
        _NEVER_REUSED,
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    id: Mapped[UUID]
    vm: Mapped[UUID]
    vm_name: Mapped[str] = mapped_column(Plain("vm_name"))
    source: Mapped[str] = mapped_column(Plain("source"))
    destination: Mapped[str] = mapped_column(Plain("destination"))
    trigger: Mapped[str]
    profile: Mapped[str] = mapped_column(Plain("profile"))
    revision: Mapped[int]
    wanted: Mapped[JsonObject]
    steps: Mapped[JsonList]
    overrides: Mapped[list[str]]
    state: Mapped[str]
    abort: Mapped[str]
    journal: Mapped[JsonList]
    outcomes: Mapped[JsonList]
    totals: Mapped[JsonObject | None] = mapped_column(Json)
    reaper: Mapped[JsonObject | None] = mapped_column(Json)
    step_records: Mapped[JsonList]
    failure: Mapped[str] = mapped_column(Plain("failure"))
    problems: Mapped[JsonList]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    active_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    samples_kept: Mapped[str] = mapped_column(default="whole", server_default=text("'whole'"))
    samples_thinned_s: Mapped[int | None]
    prior: Mapped[JsonObject | None] = mapped_column(Json)
    postcopy: Mapped[JsonObject | None] = mapped_column(Json)
    disks: Mapped[JsonList | None] = mapped_column(Json)
    intent: Mapped[JsonObject | None] = mapped_column(Json)
    downtime_ms: Mapped[int] = mapped_column(Number, default=-1, server_default=text("-1"))
    total_time_ms: Mapped[int] = mapped_column(Number, default=-1, server_default=text("-1"))
    downtime_exceeded: Mapped[bool] = mapped_column(default=False, server_default=false())


INTENT_BROKEN = func.coalesce(MigrationRow.intent["broken"].as_boolean(), false())
"""A migration did not keep its intent, as its record says."""


class ChunkRow(Base):
    """Up to a few hundred rows of what a migration has many of, packed
    (vmtune.storage.series.packing)."""

    __abstract__ = True

    migration: Mapped[int] = mapped_column(
        Number, ForeignKey("migrations.number"), primary_key=True, autoincrement=False
    )
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    last_at_ms: Mapped[int] = mapped_column(Number)
    rows: Mapped[int]
    packed: Mapped[bytes]


class SampleChunkRow(ChunkRow):
    """Samples."""

    __tablename__ = "sample_chunks"

    rows: Mapped[int] = mapped_column("samples")


class ReaperChunkRow(ChunkRow):
    """Rounds of the reaper."""

    __tablename__ = "reaper_chunks"

    rows: Mapped[int] = mapped_column("rounds")


class DiskChunkRow(ChunkRow):
    """Samples of copied disks."""

    __tablename__ = "disk_chunks"

    rows: Mapped[int] = mapped_column("samples")


class EnvironmentRow(Base):
    """Where runs ran, each environment once (vmtune.bench.machine.environment)."""

    __tablename__ = "environments"

    fingerprint: Mapped[str] = mapped_column(Plain("fingerprint"), primary_key=True)
    description: Mapped[JsonObject]


class RunRow(Base):
    """A benchmark run. *number* orders them: clocks can be set back.

    A run of a campaign names it, its arm, block and position; others have null there. One of a
    study names that.
    """

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("id"),
        Index(None, "scenario", "number"),
        Index(None, "state"),
        Index(None, "campaign", "number"),
        Index(None, "study", "number"),
        _NEVER_REUSED,
    )

    number: Mapped[int] = mapped_column(Number, primary_key=True)
    id: Mapped[UUID]
    scenario: Mapped[str] = mapped_column(Plain("scenario"))
    setup: Mapped[JsonObject]
    values: Mapped[JsonObject]
    profile: Mapped[str] = mapped_column(Plain("profile"))
    revision: Mapped[int]
    testbed: Mapped[str]
    qemu: Mapped[str] = mapped_column(Plain("qemu"))
    options: Mapped[JsonObject]
    host: Mapped[str] = mapped_column(Plain("host"))
    state: Mapped[str]
    failure: Mapped[str] = mapped_column(Plain("failure"))
    fingerprint: Mapped[str | None] = mapped_column(
        Plain("fingerprint"), ForeignKey("environments.fingerprint"), index=True
    )
    conditions: Mapped[JsonObject]
    campaign: Mapped[UUID | None]
    arm: Mapped[str | None] = mapped_column(Plain("arm"))
    block: Mapped[int | None]
    position: Mapped[int | None]
    study: Mapped[UUID | None]
    imported_from: Mapped[str] = mapped_column(Plain("imported_from"))
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]


class RunHeadRow(Base):
    """What the record of a run has once (vmtune.bench.model.runs.series); none before its end."""

    __tablename__ = "run_heads"
    __table_args__ = (ForeignKeyConstraint(["run"], ["runs.number"]),)

    run: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    head: Mapped[JsonObject]


class RunChunkRow(Base):
    """Up to a thousand rows of one of a run's series, packed (vmtune.storage.series.packing).

    :param first: how many rows of the series come before them.
    """

    __tablename__ = "run_chunks"
    __table_args__ = (ForeignKeyConstraint(["run"], ["runs.number"]),)

    run: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    series: Mapped[str] = mapped_column(primary_key=True)
    first: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    rows: Mapped[int]
    packed: Mapped[bytes]


class RunMetricRow(Base):
    """A figure that a run was reduced to (vmtune.bench.model.metrics.table)."""

    __tablename__ = "run_metrics"
    __table_args__ = (ForeignKeyConstraint(["run"], ["runs.number"]),)

    run: Mapped[int] = mapped_column(Number, primary_key=True, autoincrement=False)
    metric: Mapped[str] = mapped_column(Plain("metric"), primary_key=True)
    value: Mapped[float]


class EventRow(Base):
    __tablename__ = "events"
    __table_args__ = (_NEVER_REUSED,)

    id: Mapped[int] = mapped_column(Number, primary_key=True)
    at: Mapped[datetime]
    topic: Mapped[str]
    subject: Mapped[str] = mapped_column(Plain("subject"))
    data: Mapped[JsonObject]
