"""Live migrations: the record, its states, and what QEMU says of one while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypedDict
from uuid import UUID

from vmtune.errors import Problem
from vmtune.model.migration.controller_record import ReaperReport, StepEffect, StepRecord
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.prior import PriorSettings
from vmtune.model.migration.stated_intent import StatedIntent
from vmtune.model.migration.step_text import describe
from vmtune.model.migration.steps import Step, StepAction
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import Outcome
from vmtune.model.tunables.tunable import Value

ABORT_WAITS = "abort_waits"
"""Code of the error, and of the record's problem, where QEMU takes no command to abort."""
MIGRATION_CANCELLED = "migration_cancelled"
"""Code of the refusal by which a migration ends that somebody has aborted."""


class MigrationSort(StrEnum):
    """The order of a list of migrations, ``-`` for backwards; those that are equal in it go by
    age."""

    NEWEST = "-created"
    OLDEST = "created"
    VM = "vm"
    VM_BACKWARDS = "-vm"
    DOWNTIME = "downtime"
    DOWNTIME_BACKWARDS = "-downtime"
    TOTAL_TIME = "total_time"
    TOTAL_TIME_BACKWARDS = "-total_time"

    @property
    def backwards(self) -> bool:
        """Whether it is the order of :attr:`by`, backwards."""
        return self.value.startswith("-")

    @property
    def by(self) -> MigrationSort:
        """The same order forwards."""
        return MigrationSort(self.value.removeprefix("-"))


class MigrationState(StrEnum):
    """Where a migration stands.

    ``unknown`` is a final state only for a record whose hosts could not be asked; it is
    settled as soon as they answer.
    """

    QUEUED = "queued"
    PREPARING = "preparing"
    STARTING = "starting"
    ACTIVE = "active"
    POSTCOPY_PAUSED = "postcopy-paused"
    """The guest runs on the destination, part of its memory is on the source, and the two do not
    reach each other. Not an end."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"

    @property
    def ended(self) -> bool:
        """Nothing more will happen, as far as is known."""
        return self in _ENDED


_ENDED = frozenset(
    {
        MigrationState.COMPLETED,
        MigrationState.FAILED,
        MigrationState.CANCELLED,
        MigrationState.UNKNOWN,
    }
)


class AbortState(StrEnum):
    """What became of a request to abort."""

    NONE = "none"
    REQUESTED = "requested"
    ABORTED = "aborted"
    TOO_LATE = "too late"


class SamplesKept(StrEnum):
    """What is left of a migration's samples (vmtune.model.retention)."""

    WHOLE = "whole"
    THINNED = "thinned"
    """The last of each stretch, its peaks, and what marks an iteration or a phase."""
    DROPPED = "dropped"
    """None, nor the reaper's rounds. The record has its totals."""


class Trigger(StrEnum):
    """What started a migration."""

    VMTUNE = "vmtune"
    OBSERVED = "observed"


class QemuStatus(StrEnum):
    """MigrationStatus of QEMU (qapi/migration.json), 7.2 to 11.1.

    ``other`` is one that a later QEMU has: it is taken for running, so that it is watched.
    """

    NONE = "none"
    SETUP = "setup"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    ACTIVE = "active"
    POSTCOPY_DEVICE = "postcopy-device"
    """The destination loads the devices; if that fails the source can resume. Since QEMU 10.2."""
    POSTCOPY_ACTIVE = "postcopy-active"
    POSTCOPY_PAUSED = "postcopy-paused"
    POSTCOPY_RECOVER_SETUP = "postcopy-recover-setup"
    POSTCOPY_RECOVER = "postcopy-recover"
    COMPLETED = "completed"
    FAILING = "failing"
    """It has failed, and QEMU is cleaning up; since 11."""
    FAILED = "failed"
    COLO = "colo"
    PRE_SWITCHOVER = "pre-switchover"
    DEVICE = "device"
    WAIT_UNPLUG = "wait-unplug"
    OTHER = "other"

    @property
    def running(self) -> bool:
        """A migration is in progress."""
        return self not in _AT_REST

    @property
    def in_postcopy(self) -> bool:
        """The guest runs on the destination already: nothing can be aborted."""
        return self.value.startswith("postcopy")


_STATUSES = {status.value: status for status in QemuStatus}
_AT_REST = frozenset(
    {QemuStatus.NONE, QemuStatus.CANCELLED, QemuStatus.COMPLETED, QemuStatus.FAILED}
)


_EMPTIED_US = 1_000_000
"""QEMU's own reaper sleeps so long (accel/kvm/kvm-all.c)."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One observation of a running migration. Bytes and pages count from the migration's start.

    :param at_ms: milliseconds since the migration was started.
    :param boundary: taken because an iteration began, not because time had passed.
    :param dirty_pages_per_s: what the guest dirtied in the last iteration.
    :param throughput_bytes_per_s: what QEMU sent lately.
    """

    at_ms: int
    status: QemuStatus
    iteration: int
    boundary: bool
    transferred_bytes: int
    remaining_bytes: int
    total_bytes: int
    zero_pages: int
    normal_pages: int
    page_size_bytes: int
    dirty_pages_per_s: int
    throughput_bytes_per_s: int
    multifd_bytes: int
    postcopy_bytes: int
    expected_downtime_ms: int | None
    throttle_percent: int
    missed_zero_copy: int
    dirty_limit_throttle_us: int
    dirty_limit_ring_full_us: int

    @property
    def withheld_percent(self) -> float:
        """Of the time of the vCPU that is held back most, what is withheld: by auto-converge, or by
        the dirty limit, which makes a vCPU wait each time that it has filled its ring. QEMU
        empties all rings once a second, and says for how long a vCPU would wait also where none
        fills its ring in between."""
        fills_us, waits_us = self.dirty_limit_ring_full_us, self.dirty_limit_throttle_us
        by_limit = 100 * waits_us / (waits_us + fills_us) if 0 < fills_us < _EMPTIED_US else 0.0
        return max(self.throttle_percent, by_limit)


@dataclass(frozen=True, slots=True)
class Totals:
    """What QEMU reports at the end of a migration.

    :param normal_bytes: memory of the pages that were not of zeros, before any compression; None
        where it is not known.
    """

    total_time_ms: int
    downtime_ms: int
    setup_time_ms: int | None
    transferred_bytes: int
    iterations: int
    missed_zero_copy: int = 0
    normal_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """query-migrate, read into fields.

    :param sample: None where QEMU gives no RAM figures: in setup, failed or cancelled.
    :param totals: only when completed, and then only once QEMU has filled them in.
    :param elapsed_ms: since it was started, by QEMU's clock; None where QEMU does not say.
    """

    status: QemuStatus
    sample: Sample | None = None
    totals: Totals | None = None
    error: str = ""
    blocked_reasons: tuple[str, ...] = ()
    elapsed_ms: int | None = None

    @property
    def final(self) -> bool:
        """It has ended and its figures are complete.

        QEMU 7.2 says ``completed`` before it has computed the times (migration.c sets the
        status before migration_calculate_complete): such a reply has to be read again.
        """
        if self.status is QemuStatus.COMPLETED:
            return self.totals is not None
        return self.status in (QemuStatus.FAILED, QemuStatus.CANCELLED)


def read_query_migrate(
    reply: Mapping[str, Any],  # any JSON: the QMP reply as it came
    at_ms: int = 0,
) -> Snapshot:
    """A reply of QMP's query-migrate as a snapshot. An empty reply is: never migrated."""
    said = reply.get("status", "none")
    status = _STATUSES.get(said, QemuStatus.OTHER)
    ram: Mapping[str, Any] = reply.get("ram") or {}
    sample = totals = None
    if ram:
        sample = Sample(
            at_ms=at_ms,
            status=status,
            iteration=ram.get("dirty-sync-count", 0),
            boundary=False,  # the observer knows the previous sample, and marks it
            transferred_bytes=ram.get("transferred", 0),
            remaining_bytes=ram.get("remaining", 0),
            total_bytes=ram.get("total", 0),
            zero_pages=ram.get("duplicate", 0),
            normal_pages=ram.get("normal", 0),
            page_size_bytes=ram.get("page-size", 4096),
            dirty_pages_per_s=ram.get("dirty-pages-rate", 0),
            throughput_bytes_per_s=round(ram.get("mbps", 0) * 1e6 / 8),
            multifd_bytes=ram.get("multifd-bytes", 0),
            postcopy_bytes=ram.get("postcopy-bytes", 0),
            expected_downtime_ms=_downtime_ms(reply.get("expected-downtime")),
            throttle_percent=reply.get("cpu-throttle-percentage", 0),
            missed_zero_copy=ram.get("dirty-sync-missed-zero-copy", 0),
            dirty_limit_throttle_us=reply.get("dirty-limit-throttle-time-per-round", 0),
            dirty_limit_ring_full_us=reply.get("dirty-limit-ring-full-time", 0),
        )
    if status is QemuStatus.COMPLETED and reply.get("total-time"):
        totals = Totals(
            total_time_ms=reply["total-time"],
            downtime_ms=reply.get("downtime", 0),
            setup_time_ms=reply.get("setup-time"),
            transferred_bytes=ram.get("transferred", 0),
            iterations=ram.get("dirty-sync-count", 0),
            missed_zero_copy=ram.get("dirty-sync-missed-zero-copy", 0),
            normal_bytes=ram.get("normal-bytes"),
        )
    return Snapshot(
        status,
        sample,
        totals,
        reply.get("error-desc", ""),
        tuple(reply.get("blocked-reasons", ())),
        reply.get("total-time"),
    )


_NOT_ESTIMATED_MS = 1 << 53


def _downtime_ms(estimate: int | None) -> int | None:
    """QEMU 11 says INT64_MAX while it has no estimate, such as when nothing was sent lately."""
    return None if estimate is None or estimate >= _NOT_ESTIMATED_MS else estimate


def progress(transferred_fraction: float, before: float) -> float:
    """A share of 1 for a progress bar: never goes back, and is 1 only at the end."""
    return max(before, min(transferred_fraction, 0.99))


@dataclass(frozen=True, slots=True)
class Migration:
    """The durable record of one live migration.

    :param destination: empty where it is not known to which host an observed one went.
    :param wanted: the revision's values, or none where it migrates untuned.
    :param overrides: finding codes that were overridden by name.
    :param journal: what has to be set on the source to undo what was set for this migration.
    :param outcomes: each tunable as it was read back while the migration ran.
    :param active_at: when QEMU first said that it is active; None if it never did.
    :param failure: why it failed, was cancelled or is unknown, in QEMU's or libvirt's words.
    :param steps: the revision's convergence steps; *step_records* those that came due, and what
        users changed meanwhile.
    :param reaper: what the reaper did, without its rounds; None where none was wanted.
    :param samples_kept: what is left of its samples, and of the reaper's rounds.
    :param samples_thinned_s: the stretch of which one and the peaks are left, where they were
        thinned; it stays when they are dropped.
    :param prior: what was set on both QEMUs, where vmtune and not libvirt sets it; None otherwise.
    :param disks: those that are copied with it.
    :param intent: what it is steered towards; None where no goals were stated.
    :param postcopy: None where it did not switch to post-copy, or QEMU did not count.
    """

    id: UUID
    vm: UUID
    vm_name: str
    source: str
    destination: str
    trigger: Trigger
    profile: str
    revision: int
    wanted: Mapping[str, Value]
    overrides: tuple[str, ...]
    state: MigrationState
    created_at: datetime
    abort: AbortState = AbortState.NONE
    journal: tuple[Change, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    totals: Totals | None = None
    failure: str = ""
    problems: tuple[Problem, ...] = field(default=())
    started_at: datetime | None = None
    active_at: datetime | None = None
    ended_at: datetime | None = None
    steps: tuple[Step, ...] = ()
    step_records: tuple[StepRecord, ...] = ()
    reaper: ReaperReport | None = None
    samples_kept: SamplesKept = SamplesKept.WHOLE
    samples_thinned_s: int | None = None
    prior: PriorSettings | None = None
    postcopy: PostcopyFigures | None = None
    disks: tuple[CopiedDisk, ...] = ()
    intent: StatedIntent | None = None

    def did(self, action: StepAction) -> StepRecord | None:
        """The step that did *action*, or may have; None where no step has."""
        for record in self.step_records:
            if record.effect is StepEffect.REFUSED:
                continue
            if record.number is None:
                if record.action == describe(action):
                    return record  # by steering
            elif self.steps[record.number].action is action:
                return record
        return None


class MigrationFields(TypedDict, total=False):
    """The fields of a migration's record that a change may name. None leaves one as it is."""

    destination: str
    state: MigrationState
    abort: AbortState
    journal: tuple[Change, ...]
    outcomes: tuple[Outcome, ...]
    totals: Totals | None
    failure: str
    problems: tuple[Problem, ...]
    started_at: datetime
    active_at: datetime
    ended_at: datetime
    reaper: ReaperReport | None
    prior: PriorSettings
    postcopy: PostcopyFigures
    disks: tuple[CopiedDisk, ...]
    intent: StatedIntent
