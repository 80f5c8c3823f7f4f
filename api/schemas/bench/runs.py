"""Benchmark runs: requests, records, series."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field, StrictBool, StrictInt, StrictStr

from vmtune.api.schemas.applications import OutcomeView
from vmtune.api.schemas.common import Model, Page, RawValues, Texts, Values, texts_of
from vmtune.api.schemas.controlled import ReaperView, StepRecordView
from vmtune.api.schemas.migrations import PostcopyView, SampleView, TotalsView
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS
from vmtune.bench.model.runs.boot_record import BootRecord
from vmtune.bench.model.runs.load_record import LoadRecord
from vmtune.bench.model.runs.run import HostSide, Run, RunState, Testbed
from vmtune.bench.model.runs.send_record import SendRecord
from vmtune.bench.model.runs.series import Head, Series
from vmtune.bench.model.runs.srcu_record import SrcuRecord
from vmtune.bench.model.scenario.block import BlockRecord, LoadPhase
from vmtune.bench.model.scenario.block_target import VM_HOST, VM_NAME, vm_of_setup
from vmtune.bench.model.settable import settable
from vmtune.bench.services.runs.runs import QueuedRun, RunDetails
from vmtune.documents.dataclass_json import to_json

Json = dict[str, Any]  # any JSON


class RunCreate(Model):
    """A run to start."""

    scenario: StrictStr | Json = Field(
        description="Name of a predefined scenario, or a custom scenario in full: its `kind` "
        "is what to measure; default: a migration.",
        examples=["plain/1gbs.quick"],
    )
    changes: Json = Field(
        default={}, description="Parts of the scenario to override, as GET /scenarios "
        "shows them."
    )  # fmt: skip
    profile: StrictStr | None = Field(
        default=None, description="Its values and steps override the scenario's."
    )
    revision: StrictInt | None = Field(
        default=None, ge=1, description="Null for the current revision."
    )
    values: RawValues = Field(default={}, description="Override all others; null unsets a tunable.")
    testbed: Testbed = Testbed.DIRECT
    qemu: StrictStr = Field(
        default="", max_length=63, description="Name of a QEMU, see GET /qemus; empty for the "
        "installed one."
    )  # fmt: skip
    kvm: StrictBool | None = Field(
        default=None,
        description="Null: use KVM if available. For migrations, and block scenarios "
        "with a driver; a boot scenario has its own.",
    )
    overrides: list[StrictStr] = Field(
        default=[], max_length=50, description="Codes of blockers to override."
    )


class SlotView(Model):
    """The campaign of a run and the run's position in it."""

    campaign: UUID
    arm: str
    block: int = Field(description="From 1; 0 is the warm-up, which is not counted.")
    position: int


class RunVmView(Model):
    """The running VM that a run measured."""

    uuid: UUID
    name: str
    host: str = Field(description="Name of its host in vmtune.")
    node: str = Field(description="Its block node; empty for a temporary null-co node.")
    device: str = Field(description="The disk that was read in its guest; empty for none.")

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
    """A run, without its recorded data."""

    id: UUID
    scenario: str
    kind: ScenarioKind
    state: RunState
    ended: bool
    counts: bool = Field(description="It counts as a result of its arm, good or bad.")
    ahead: int | None = Field(
        description="Number of queued runs ahead of it; null unless it is queued."
    )
    failure: str
    profile: str | None
    revision: int | None
    values: Values = Field(description="The tunables of scenario and profile together.")
    texts: Texts
    metrics: dict[str, float] = Field(
        description="Its metrics, see GET /run-metrics; a metric that could not be measured "
        "is missing."
    )
    testbed: Testbed
    qemu: str
    vm: RunVmView | None = Field(description="Null if QEMUs were started for the run.")
    host: str
    fingerprint: str | None = Field(description="Fingerprint of the environment; null if unknown.")
    slot: SlotView | None = Field(description="Null for a run outside a campaign.")
    imported_from: str = Field(description="Empty if it was not imported.")
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
        "texts": texts_of(run.values, settable()),
        "metrics": in_order(run.metrics),
        "testbed": run.testbed,
        "qemu": run.qemu,
        "vm": RunVmView.of(run),
        "host": run.host,
        "fingerprint": run.fingerprint or None,
        "slot": run.slot,
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
    """Data of a run, without its series. Times are milliseconds on the run's own timeline. It
    starts when both QEMUs are up and the guest writes; for block runs when QEMU's node is
    exported, for boots just before QEMU starts."""

    migration_ms: int | None
    migration_ended_ms: int | None
    ended_ms: int
    beat_interval_ms: float | None
    totals: TotalsView | None
    outcomes: list[OutcomeView]
    reaper: ReaperView | None
    steps: list[StepRecordView]
    ring_full_exits: int | None
    postcopy: PostcopyView | None = Field(
        description="What post-copy cost the guest; null if it was not used or QEMU did not count."
    )
    block: BlockRecord | None = Field(
        description="Of a block run, without its series; has the full JSON of fio."
    )
    boot: BootRecord | None = Field(description="Of a boot run.")
    srcu: SrcuRecord | None = Field(description="Of a run of updates of a memory map.")
    loads: LoadRecord | None = Field(
        description="What kept the machine busy meanwhile; null if nothing was meant to."
    )
    sends: SendRecord | None = Field(
        description="What the source's QEMU counted of its sends; null if it counts none."
    )

    @classmethod
    def of(cls, head: Head) -> RunHeadView:
        return cls.from_record(
            head,
            outcomes=[OutcomeView.of(outcome, settable()) for outcome in head.outcomes],
            postcopy=PostcopyView.of(head.postcopy),
        )


class RunDetail(RunView):
    """A run, with everything except its series."""

    setup: Json = Field(description="The scenario of the run in full.")
    options: Json = Field(description="Further options of the request.")
    environment: Json = Field(description="The environment of its fingerprint.")
    conditions: dict[str, float] = Field(
        description="Load of the machine at its start; not part of the fingerprint."
    )
    record: RunHeadView | None = Field(
        description="Null before its end, or if nothing was recorded."
    )
    lengths: dict[Series, int] = Field(description="Number of rows of each series.")

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
    """Samples of a run's migration; `at_ms` is on the run's timeline."""


class GuestPassView(Model):
    """One pass of a guest worker over its part of the memory."""

    worker: int
    number: int
    at_ms: float = Field(description="Time of arrival of its report, by the host's clock.")
    guest_us: int = Field(description="Its end, by the guest's clock.")
    duration_us: int = Field(description="By the guest's clock, which stops with the guest.")
    written_bytes: int


class GuestPassPage(Page[GuestPassView]):
    """Passes of a run's guest, oldest first."""


class SilenceView(Model):
    """A gap in the guest's heartbeat, as received on the host."""

    at_ms: float
    duration_ms: float


class SilencePage(Page[SilenceView]):
    """Silences of a run's guest, oldest first."""


class CpuSampleView(Model):
    """CPU time of a QEMU so far, by kind of thread."""

    at_ms: float
    side: HostSide
    vcpu_ms: float
    migration_ms: float
    multifd_ms: float
    other_ms: float
    send_system_ms: float | None = Field(
        description="System time of the threads of the migration and of parallel channels; null if "
        "it was not recorded."
    )


class CpuSamplePage(Page[CpuSampleView]):
    """CPU time of a run's two QEMUs, oldest first."""


class ProcessSampleView(Model):
    """Host resources of the QEMU of a block run."""

    at_ms: float
    phase: LoadPhase
    maps: int = Field(description="Its memory maps.")
    stacks: int = Field(description="Number of maps for coroutine stacks.")
    vsz_bytes: int
    rss_bytes: int


class ProcessSamplePage(Page[ProcessSampleView]):
    """Samples of a run's QEMU, oldest first."""


class CpuMarkView(Model):
    """CPU time of the QEMU of a block run so far."""

    at_ms: float
    cpu_ms: float


class CpuMarkPage(Page[CpuMarkView]):
    """CPU time of a run's QEMU, oldest first."""


class EnvironmentView(Model):
    """The environment of runs."""

    fingerprint: str
    environment: Json
