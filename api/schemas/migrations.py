"""Live migrations and their samples."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from uuid import UUID

from pydantic import Field, StrictBool, StrictInt, StrictStr, TypeAdapter

from vmtune.api.schemas.applications import OutcomeView
from vmtune.api.schemas.common import (
    Model,
    NumberOrNone,
    Page,
    ProblemItem,
    RawValues,
    Rows,
    TextOrNone,
    Texts,
    Values,
    texts_of,
)
from vmtune.api.schemas.controlled import (
    ControlView,
    RawSteps,
    ReaperView,
    StepRecordView,
    StepTexts,
    StepView,
    step_texts,
)
from vmtune.api.schemas.intents import RawIntent, StatedIntentView
from vmtune.model.migration.admission import MAX_PRIORITY, MIN_PRIORITY, QueuePosition
from vmtune.model.migration.copy_progress import MigrationPhase, phase_of
from vmtune.model.migration.disks import CopiedDisk, SourceImage
from vmtune.model.migration.downtime import downtime_kept
from vmtune.model.migration.observed import missing_flags
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.record import (
    AbortState,
    Migration,
    MigrationState,
    QemuStatus,
    Sample,
    SamplesKept,
    Trigger,
)
from vmtune.model.migration.source_image import why_it_stays
from vmtune.storage import Page as StoredPage


class MigrationCreate(Model):
    """A live migration to start."""

    vm: UUID
    destination: StrictStr = Field(description="Name of the destination host.")
    profile: StrictStr | None = Field(
        default=None,
        description="Null for the assigned profile; without an assignment the VM migrates untuned.",
    )
    revision: StrictInt | None = Field(
        default=None, ge=1, description="Null for the current revision."
    )
    values: RawValues = Field(
        default={},
        description="Values for this migration, override the profile's; null unsets a tunable.",
    )
    steps: RawSteps | None = Field(
        default=None,
        description="Steps for this migration instead of the profile's; null keeps those.",
    )
    overrides: list[StrictStr] = Field(
        default=[],
        max_length=50,
        description="Codes of blockers to override; the values concerned are left out, but for "
        "those that say which disks are copied.",
    )
    intent: RawIntent | None = Field(
        default=None,
        description="What is to be kept, instead of values: the migration is steered towards it.",
    )
    shadow: StrictBool = Field(
        default=False,
        description="Only record what would be done for the intent: choose no values, refuse and "
        "steer nothing.",
    )
    priority: StrictInt = Field(
        default=0,
        ge=MIN_PRIORITY,
        le=MAX_PRIORITY,
        description="Priority in the queue; higher runs first.",
    )


class TotalsView(Model):
    """What QEMU reports at the end of a migration."""

    total_time_ms: int
    downtime_ms: int
    setup_time_ms: int | None
    transferred_bytes: int
    iterations: int
    missed_zero_copy: int
    normal_bytes: int | None


class PostcopyView(Model):
    """How long the guest's vCPUs waited for pages that were still on the source."""

    blocked_ms: int = Field(description="All vCPUs waited at once: the guest stood still.")
    vcpu_blocked_ms: list[int] = Field(description="Each vCPU, in their order.")
    latency_ns: int | None = Field(
        description="Mean time until a missing page was there; null before QEMU 10.1."
    )
    latency_p99_at_most_us: int | None = Field(
        description="99 % of the missing pages were there within this time; null before QEMU 10.1."
    )
    latency_counts: list[int] = Field(
        description="Missing pages by that time: the N-th count is of 2^N to 2^(N+1) microseconds; "
        "empty before QEMU 10.1."
    )

    @classmethod
    def of(cls, figures: PostcopyFigures | None) -> PostcopyView | None:
        if figures is None:
            return None
        return cls.from_record(figures, latency_p99_at_most_us=figures.latency_at_most_us(0.99))


class CopiedDiskView(Model):
    """A disk that is copied along."""

    target: str = Field(description="Its name in the configuration, such as `vda`.")
    path: str
    created: bool = Field(
        description="The destination had no image there: it was made for this migration, and is "
        "removed if the VM does not arrive."
    )
    total_bytes: int = Field(description="What is to be copied; grows with what the guest writes.")
    copied_bytes: int
    ready_ms: int | None = Field(
        description="Time from the migration's start until the copy had caught up; null before."
    )
    bytes_per_s: int = Field(description="Copied lately, when it was last looked at.")
    written_bytes_per_s: int = Field(description="Written by the guest in the same time.")
    left_ms: int | None = Field(
        description="Until the copy has caught up; null where that is not known, and afterwards."
    )
    converges: bool | None = Field(
        description="Whether it will catch up at these rates; null while that is not known."
    )
    source_image: SourceImage = Field(
        description="What has become of the source's image: it is kept, is about to be removed or "
        "was; unknown where that could not be found out."
    )
    source_image_reason: str = Field(
        description="Why it is still there once the migration has ended, or why that is not known."
    )

    @classmethod
    def of(cls, disk: CopiedDisk, record: Migration) -> CopiedDiskView:
        why = why_it_stays(record, disk)
        if record.state.ended or disk.ready_ms is not None:
            return cls.from_record(disk, left_ms=None, converges=None, source_image_reason=why)
        return cls.from_record(disk, source_image_reason=why)


class DiskSampleView(Model):
    """How far the copy of a disk was at a moment."""

    at_ms: int = Field(description="Time since the migration's start.")
    target: str = Field(description="The disk's name in the configuration, such as `vda`.")
    copied_bytes: int
    total_bytes: int = Field(description="What is to be copied; grows with what the guest writes.")
    bytes_per_s: int = Field(description="Copied, in the 30 seconds before.")
    written_bytes_per_s: int = Field(description="Written by the guest in the same time.")


class DiskSamplePage(Page[DiskSampleView]):
    """Samples of the disks that one migration copies, oldest first."""


class MigrationView(Model):
    """The record of one live migration."""

    id: UUID
    vm: UUID
    vm_name: str
    source: str
    destination: TextOrNone = Field(
        description="Null if the destination of an observed migration is unknown."
    )
    trigger: Trigger = Field(description="Who started it: vmtune, or another client (observed).")
    profile: TextOrNone = Field(description="Null if it migrates untuned.")
    revision: NumberOrNone
    values: Values = Field(description="The wanted values.")
    texts: Texts
    overrides: list[str]
    state: MigrationState
    ended: bool = Field(description="The migration has ended, as far as is known.")
    abort: AbortState
    failure: str = Field(description="Why it failed, was cancelled or is unknown.")
    problems: list[ProblemItem] = Field(
        description="Values not restored or not set on the destination, and values left out."
    )
    missing_flags: list[str] = Field(
        description="Of an observed migration: options of `virsh migrate` that would have set "
        "the values that could no longer be applied."
    )
    totals: TotalsView | None
    downtime_limit_ms: int | None = Field(
        description="The longest downtime that was allowed: the profile's limit, or a higher one "
        "that a step or a user set meanwhile. Null if no limit was asked for, if it did not "
        "complete, and if a step or a user paused the guest."
    )
    downtime_exceeded: bool = Field(description="The downtime was longer than that.")
    intent_broken: bool = Field(
        description="It did not keep a goal of its intent that was not given up meanwhile; "
        "`intent` says which. False in shadow mode, without an intent, and until it has completed."
    )
    postcopy: PostcopyView | None = Field(
        description="What post-copy cost the guest; null if it was not used or QEMU did not count. "
        "QEMU counts where vmtune sets up the destination by its monitor; libvirt offers no way."
    )
    disks: list[CopiedDiskView] = Field(description="The disks that are copied with it.")
    phase: MigrationPhase | None = Field(
        description="What is sent right now; null where nothing is, or not yet. Disks come before "
        "the memory."
    )
    outcomes: list[OutcomeView] = Field(description="Outcomes, read back during the migration.")
    intent: StatedIntentView | None = Field(
        description="The intent that it is steered towards; null without one."
    )
    steps: list[StepView] = Field(description="The profile's convergence steps.")
    step_texts: StepTexts
    step_records: list[StepRecordView] = Field(description="Executed steps and changes by users.")
    controls: list[ControlView] = Field(
        description="What can be done with it while it runs; empty once it has ended."
    )
    reaper: ReaperView | None = Field(
        description="Null if it did not run; rounds have their own route."
    )
    samples_kept: SamplesKept = Field(
        description="Retention of the samples: all, a thinned part, or none (then no rounds "
        "either). See the settings `samples_whole_days` and `samples_days`."
    )
    samples_thinned_s: int | None = Field(
        description="If thinned: the interval in seconds of which the last sample, the peaks, "
        "and the boundaries of iterations and phases are kept."
    )
    created_at: datetime
    started_at: datetime | None
    active_at: datetime | None = Field(description="When QEMU first reported it active.")
    ended_at: datetime | None

    queued: bool = Field(description="It waits in the queue.")
    ahead: int | None = Field(
        description="Number of migrations ahead in the queue; null after its start."
    )
    waiting_reason: str = Field(description="Reason of the wait; empty after its start.")

    @classmethod
    def of(
        cls, record: Migration, rows: Rows, position: QueuePosition | None = None
    ) -> MigrationView:
        downtime = downtime_kept(record)
        return cls.from_record(
            record,
            downtime_limit_ms=None if downtime is None else downtime.limit_ms,
            downtime_exceeded=downtime is not None and downtime.exceeded,
            intent_broken=record.intent is not None and record.intent.broken,
            values=dict(record.wanted),
            texts=texts_of(record.wanted, rows),
            ended=record.state.ended,
            missing_flags=missing_flags(record.problems),
            outcomes=[OutcomeView.of(outcome, rows) for outcome in record.outcomes],
            postcopy=PostcopyView.of(record.postcopy),
            disks=[CopiedDiskView.of(disk, record) for disk in record.disks],
            phase=phase_of(record),
            intent=StatedIntentView.of(record),
            steps=StepView.all_of(record.steps),
            step_texts=step_texts(record.steps),
            controls=ControlView.all_of(record),
            queued=position is not None,
            ahead=None if position is None else position.ahead,
            waiting_reason="" if position is None else position.why,
        )


class MigrationPage(Page[MigrationView]):
    """Migrations, newest first."""


class SampleView(Model):
    """One sample of a running migration; bytes and pages count from its start."""

    at_ms: int = Field(description="Time since the migration's start.")
    status: QemuStatus
    iteration: int
    boundary: bool = Field(description="Taken at the start of an iteration.")
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


assert list(SampleView.model_fields) == [field.name for field in fields(Sample)], "see samples_json"


class SamplePage(Page[SampleView]):
    """Samples of one migration, oldest first."""

    kept: SamplesKept = Field(
        description="Retention of the samples; see `samples_kept` of the migration."
    )
    thinned_s: int | None


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a :class:`SamplePage` shows."""

    items: tuple[Sample, ...]
    next: str | None
    kept: SamplesKept
    thinned_s: int | None


_OF_A_RUN, _OF_A_MIGRATION = TypeAdapter(StoredPage[Sample]), TypeAdapter(_Stored)


def samples_json(page: StoredPage[Sample], of: Migration | None = None) -> bytes:
    """A page of samples as :class:`SamplePage` has it. Making models of them first takes ten times
    as long: for ten thousand most of a second, in which no other request is answered.

    :param of: whose they are; None for a run's, which have no such field.
    """
    if of is None:
        return _OF_A_RUN.dump_json(page)
    stored = _Stored(page.items, page.next, of.samples_kept, of.samples_thinned_s)
    return _OF_A_MIGRATION.dump_json(stored)
