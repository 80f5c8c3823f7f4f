"""Benchmark runs: orders, records, series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field, StrictBool, StrictInt, StrictStr

from vmtune.api.schemas.applications import OutcomeView
from vmtune.api.schemas.common import Model, Page, RawValues, Texts, Values, texts_of
from vmtune.api.schemas.controlled import ReaperView, StepRecordView
from vmtune.api.schemas.migrations import SampleView, TotalsView
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.model.runs.boot_record import BootRecord
from vmtune.bench.model.runs.run import HostSide, Place, Run, RunState, Slot
from vmtune.bench.model.runs.series import Head, Series
from vmtune.bench.model.scenario.block import BlockRecord, LoadPhase
from vmtune.bench.model.scenario.block_target import VM_HOST, VM_NAME, vm_of_setup
from vmtune.bench.services.runs.runs import QueuedRun, RunDetails
from vmtune.documents.dataclass_json import to_json
from vmtune.model.tunables.built_in import BUILT_IN

Json = dict[str, Any]  # any JSON


class RunCreate(Model):
    """A run to make."""

    scenario: StrictStr | Json = Field(
        description="One of the table by its name, or one of your own, all of it: its `kind` "
        "says what is measured, and without it a migration is.",
        examples=["plain/1gbs.quick"],
    )
    changes: Json = Field(
        default={}, description="Parts of a scenario that are laid over it, as GET /scenarios "
        "shows them."
    )  # fmt: skip
    profile: StrictStr | None = Field(
        default=None, description="Its values and steps are laid over the scenario's."
    )
    revision: StrictInt | None = Field(default=None, ge=1, description="None for the current one.")
    values: RawValues = Field(default={}, description="Laid over all; null unsets one.")
    place: Place = Place.DIRECT
    qemu: StrictStr = Field(
        default="", max_length=63, description="By its name, as GET /qemus has it; empty for the "
        "installed one."
    )  # fmt: skip
    kvm: StrictBool | None = Field(
        default=None,
        description="Null uses it where it can be. For migrations: a boot's scenario says it.",
    )
    overrides: list[StrictStr] = Field(
        default=[], max_length=50, description="Codes of findings that are to stop nothing."
    )


class SlotView(Model):
    """Of which campaign a run is, and which of its measurements."""

    campaign: UUID
    arm: str
    block: int = Field(description="From 1; 0 is the warm-up, which does not count.")
    position: int

    @classmethod
    def of(cls, slot: Slot | None) -> SlotView | None:
        return cls(**asdict(slot)) if slot else None


class RunVmView(Model):
    """The running VM that a run was on."""

    uuid: UUID
    name: str
    host: str = Field(description="Where it ran, as vmtune calls it.")
    node: str = Field(description="Its block node; empty for a null node that was made for it.")
    device: str = Field(description="What was read in its guest; empty where nothing was.")

    @classmethod
    def of(cls, run: Run) -> RunVmView | None:
        uuid = vm_of_setup(run.setup)
        if uuid is None:
            return None
        target, options = run.setup["target"], run.options
        texts = {name: str(target.get(name, "")) for name in ("node", "device")}
        name, host = (str(options.get(each, "")) for each in (VM_NAME, VM_HOST))
        return cls(uuid=uuid, name=name, host=host, **texts)


class RunView(Model):
    """A run, without what it recorded."""

    id: UUID
    scenario: str
    kind: ScenarioKind
    state: RunState
    ended: bool
    counts: bool = Field(description="It is a result of its arm, good or bad.")
    ahead: int | None = Field(description="How many runs go before it; null unless it waits.")
    failure: str
    profile: str | None
    revision: int | None
    values: Values = Field(description="The tunables of scenario and profile together.")
    texts: Texts
    metrics: dict[str, float] = Field(
        description="What it was reduced to, as GET /run-metrics explains; what could not be had "
        "is missing."
    )
    place: Place
    qemu: str
    vm: RunVmView | None = Field(description="Null where QEMUs were started for it.")
    host: str
    fingerprint: str | None = Field(description="Of the environment; null where it is not known.")
    slot: SlotView | None = Field(description="Null for a run of its own.")
    imported_from: str = Field(description="Empty where it was run here.")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, queued: QueuedRun) -> RunView:
        return cls(**_fields(queued.run, queued.ahead))


def _fields(run: Run, ahead: int | None) -> dict[str, Any]:  # any: RunView's
    return {
        "id": run.id,
        "scenario": run.scenario,
        "kind": run.kind,
        "state": run.state,
        "ended": run.state.ended,
        "counts": run.state.counts,
        "ahead": ahead,
        "failure": run.failure,
        "profile": run.profile or None,
        "revision": run.revision or None,
        "values": dict(run.values),
        "texts": texts_of(run.values, BUILT_IN),
        "metrics": in_order(run.metrics),
        "place": run.place,
        "qemu": run.qemu,
        "vm": RunVmView.of(run),
        "host": run.host,
        "fingerprint": run.fingerprint or None,
        "slot": SlotView.of(run.slot),
        "imported_from": run.imported_from,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
    }


def in_order(metrics: Mapping[str, float]) -> dict[str, float]:
    """*metrics* in the order of the table; those that it no longer has come last."""
    known = [name for name in METRICS if name in metrics]
    return {name: metrics[name] for name in [*known, *(metrics.keys() - METRICS.keys())]}


class RunPage(Page[RunView]):
    """Runs, newest first."""


class RunHeadView(Model):
    """What a record has once. Times are milliseconds on the run's own timeline, which begins
    when both QEMUs are up and the guest writes; that of blocks when QEMU's node is exported, and
    that of a boot just before QEMU is started."""

    migration_ms: int | None
    migration_ended_ms: int | None
    ended_ms: int
    beat_interval_ms: float | None
    totals: TotalsView | None
    outcomes: list[OutcomeView]
    reaper: ReaperView | None
    steps: list[StepRecordView]
    ring_full_exits: int | None
    block: BlockRecord | None = Field(
        description="Of a run of blocks, without its series: fio's JSON is whole."
    )
    boot: BootRecord | None = Field(description="Of a boot.")

    @classmethod
    def of(cls, head: Head) -> RunHeadView:
        return cls(
            migration_ms=head.migration_ms,
            migration_ended_ms=head.migration_ended_ms,
            ended_ms=head.ended_ms,
            beat_interval_ms=head.beat_interval_ms,
            totals=TotalsView.of(head.totals) if head.totals else None,
            outcomes=[OutcomeView.of(outcome, BUILT_IN) for outcome in head.outcomes],
            reaper=ReaperView.of(head.reaper),
            steps=[StepRecordView.of(step) for step in head.steps],
            ring_full_exits=head.ring_full_exits,
            block=head.block,
            boot=head.boot,
        )


class RunDetail(RunView):
    """A run, with all but its series."""

    setup: Json = Field(description="The scenario as it was run, all of it.")
    options: Json = Field(description="What else its order says.")
    environment: Json = Field(description="What its fingerprint stands for.")
    conditions: dict[str, float] = Field(
        description="What the machine was doing as it began; not in the fingerprint."
    )
    record: RunHeadView | None = Field(description="Null before its end, and without a record.")
    lengths: dict[Series, int] = Field(description="How many rows each series has.")

    @classmethod
    def of_details(cls, details: RunDetails) -> RunDetail:
        run = details.queued.run
        return cls(
            **_fields(run, details.queued.ahead),
            setup=to_json(run.setup),
            options=dict(run.options),
            environment=dict(run.environment),
            conditions=dict(run.conditions),
            record=RunHeadView.of(details.head) if details.head else None,
            lengths=dict(details.lengths),
        )


class RunSamplePage(Page[SampleView]):
    """Looks at a run's migration; `at_ms` is on the run's timeline."""


class GuestPassView(Model):
    """A worker of the guest has gone once over its part of the memory."""

    worker: int
    number: int
    at_ms: float = Field(description="When its report arrived, by the host's clock.")
    guest_us: int = Field(description="When it ended, by the guest's clock.")
    duration_us: int = Field(description="By the guest's clock, which stands still with it.")
    written_bytes: int


class GuestPassPage(Page[GuestPassView]):
    """Passes of a run's guest, in the order of time."""


class SilenceView(Model):
    """A gap in the guest's heartbeat, as it was heard on the host."""

    at_ms: float
    duration_ms: float


class SilencePage(Page[SilenceView]):
    """Silences of a run's guest, in the order of time."""


class CpuSampleView(Model):
    """CPU time that a QEMU has used so far, by kinds of threads."""

    at_ms: float
    side: HostSide
    vcpu_ms: float
    migration_ms: float
    multifd_ms: float
    other_ms: float


class CpuSamplePage(Page[CpuSampleView]):
    """CPU times of a run's two QEMUs, in the order of time."""


class ProcessSampleView(Model):
    """What a QEMU that serves blocks took of its host."""

    at_ms: float
    phase: LoadPhase
    maps: int = Field(description="Its memory maps.")
    stacks: int = Field(description="Those of them that are coroutines' stacks.")
    vsz_bytes: int
    rss_bytes: int


class ProcessSamplePage(Page[ProcessSampleView]):
    """Looks at a run's QEMU, in the order of time."""


class CpuMarkView(Model):
    """CPU time that a QEMU which serves blocks has used so far."""

    at_ms: float
    cpu_ms: float


class CpuMarkPage(Page[CpuMarkView]):
    """CPU times of a run's QEMU, in the order of time."""


class EnvironmentView(Model):
    """Where runs ran."""

    fingerprint: str
    environment: Json
