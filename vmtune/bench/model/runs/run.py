"""Benchmark runs: what one measurement recorded, raw.

The timeline of a migration's run begins (0 ms) when both QEMUs are up and the guest writes. It has
three parts: warm-up, the migration, cool-down. Those of blocks and boots are in
:mod:`vmtune.bench.model.scenario.block` and :mod:`vmtune.bench.model.runs.boot_record`. Everything
in a run is on its timeline, samples included. Metrics are reduced from it by
:mod:`vmtune.bench.reduce`; raw values are never thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from vmtune.bench.model.kinds import ScenarioKind, kind_of_setup
from vmtune.bench.model.runs.boot_record import BootRecord
from vmtune.bench.model.runs.load_record import LoadRecord
from vmtune.bench.model.runs.send_record import SendRecord
from vmtune.bench.model.runs.srcu_record import SrcuRecord
from vmtune.bench.model.scenario.block import BlockRecord
from vmtune.model.migration.controller_record import ReaperReport, StepRecord
from vmtune.model.migration.postcopy_figures import PostcopyFigures
from vmtune.model.migration.record import Sample, Totals
from vmtune.model.plan.outcome import Outcome
from vmtune.model.tunables.tunable import Value


class RunState(StrEnum):
    """How a run ended, or where it stands. Every ended run is a result and is kept."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    """The migration completed, also when the guest was paused to get there; the load ran to its
    end; the guest booted."""
    NOT_CONVERGED = "not converged"
    """Ended by the benchmark at the scenario's limit of time or iterations."""
    PLANNED = "ended as planned"
    """Ended there as well, and meant to: the scenario looks at the guest until then
    (``ends_at_limit``). It says nothing about convergence."""
    FAILED = "failed"
    """The migration, the load or the boot failed, or what it needs could not be brought up."""
    CANCELLED = "cancelled"
    """A person ended it: it says nothing about the arm."""
    INTERRUPTED = "interrupted"
    """The service ended in its middle, or what was to keep the machine busy meanwhile did not: it
    says nothing about the arm either."""

    @property
    def ended(self) -> bool:
        """Nothing more will happen."""
        return self not in (RunState.QUEUED, RunState.RUNNING)

    @property
    def counts(self) -> bool:
        """It is a result of its arm, good or bad."""
        return self.succeeded or self in (RunState.NOT_CONVERGED, RunState.FAILED)

    @property
    def succeeded(self) -> bool:
        """It came to the end that it was meant to have."""
        return self in (RunState.COMPLETED, RunState.PLANNED)

    @property
    def completed(self) -> bool | None:
        """Whether what it measured came to its own end; None where the run does not say: it was
        ended before, as planned or by a person, or has not ended."""
        if self is RunState.PLANNED or not self.counts:
            return None
        return self is RunState.COMPLETED


class Testbed(StrEnum):
    """Where a run's two QEMUs are."""

    DIRECT = "direct"
    """All started by the benchmark itself, on this machine."""
    LAB = "lab"
    """A libvirt host each, in the lab's two network namespaces."""


class HostSide(StrEnum):
    """Which QEMU."""

    SOURCE = "source"
    DESTINATION = "destination"


@dataclass(frozen=True, slots=True)
class GuestPass:
    """A worker of the guest has gone over its part of the working set. Where passes are too short
    to report each, a report stands for all since the worker's report before.

    :param number: the last pass's, from 1.
    :param at_ms: when the guest's report of it arrived, by the host's clock.
    :param guest_us: when it ended, by the guest's own clock since its start.
    :param duration_us: how long a pass took, on average of those reported together, by the
        guest's clock, which stands still while the guest does.
    :param written_bytes: how much memory a pass goes over.
    """

    worker: int
    number: int
    at_ms: float
    guest_us: int
    duration_us: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class Silence:
    """A gap in the guest's heartbeat, as received on the host: from the last beat to the next."""

    at_ms: float
    duration_ms: float


@dataclass(frozen=True, slots=True)
class CpuSample:
    """CPU time that a QEMU has used so far, in milliseconds, user and system together.

    From /proc/PID/task/*/stat, by the threads' names: ``CPU n/KVM`` and ``CPU n/TCG``;
    ``live_migration``, ``mig/src/main``, ``mig/dst/*``, ``return path``; ``multifd*`` and
    ``mig/src/send_*``, ``mig/dst/recv_*``.

    :param send_system_ms: the system time alone of the threads of the migration and of multifd:
        what the kernel works for them, on a source most of all sendmsg. What a thread used between
        the last look and its end is missing. None where it was not recorded.
    """

    at_ms: float
    side: HostSide
    vcpu_ms: float
    migration_ms: float
    multifd_ms: float
    other_ms: float
    send_system_ms: float | None = None

    @property
    def total_ms(self) -> float:
        """All threads together."""
        return self.vcpu_ms + self.migration_ms + self.multifd_ms + self.other_ms


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that was recorded while a run ran. Times are milliseconds on its timeline:
    also those of samples, of the reaper's rounds and of steps, which elsewhere count from the
    migration's start.

    What a run of blocks, a boot or a run of updates recorded is whole in *block*, *boot* or *srcu*;
    of the rest it has only its end.

    :param migration_ms: when the migration was started; None if it came to that never.
    :param migration_ended_ms: when it was over (completed, failed or cancelled).
    :param ended_ms: the end of cool-down.
    :param beat_interval_ms: how often the guest's heart beats; None without a heartbeat.
    :param silences: gaps of the heartbeat longer than twice its interval, of all workers
        together, and the longest one that touches the migration however short.
    :param ring_full_exits: None where they were not counted.
    :param postcopy: what post-copy cost the guest; None where QEMU did not count it.
    :param loads: what kept the machine busy meanwhile; None where nothing was meant to.
    :param sends: None where the source's QEMU does not count them.
    """

    migration_ms: int | None = None
    migration_ended_ms: int | None = None
    ended_ms: int = 0
    samples: tuple[Sample, ...] = ()
    passes: tuple[GuestPass, ...] = ()
    beat_interval_ms: float | None = None
    silences: tuple[Silence, ...] = ()
    cpu: tuple[CpuSample, ...] = ()
    totals: Totals | None = None
    outcomes: tuple[Outcome, ...] = ()
    reaper: ReaperReport | None = None
    steps: tuple[StepRecord, ...] = ()
    ring_full_exits: int | None = None
    postcopy: PostcopyFigures | None = None
    block: BlockRecord | None = None
    boot: BootRecord | None = None
    srcu: SrcuRecord | None = None
    loads: LoadRecord | None = None
    sends: SendRecord | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """Which measurement of a campaign a run is.

    :param block: from 1; 0 is the warm-up, whose runs do not count.
    :param position: its place within the block, from 1.
    """

    campaign: UUID
    arm: str
    block: int
    position: int


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement of one arm.

    :param scenario: the scenario's name; *setup* is all of it as it was run, as JSON: the VM,
        the guest's workload, the limits; for blocks and boots what is measured.
    :param values: the tunables of the arm: scenario and profile together.
    :param qemu: which QEMU, by the name that the settings give it.
    :param options: the other options of the request: whether to use KVM, which findings are
        overridden.
    :param host: the machine's name, where it ran.
    :param fingerprint: of the environment in which it ran; empty where that is not known.
    :param environment: what the fingerprint stands for (:mod:`vmtune.bench.machine.environment`);
        empty in lists.
    :param conditions: what the machine was doing as it began: its load, its free memory.
    :param record: None until it has ended, and in lists.
    :param metrics: by the names of :data:`vmtune.bench.model.metrics.table.METRICS`; a metric that
        could not be had is missing, never 0.
    :param slot: None for a run of its own.
    :param imported_from: where it came from; empty where it was run here.
    """

    id: UUID
    scenario: str
    setup: Mapping[str, Any]  # any JSON: the scenario as it was run
    values: Mapping[str, Value]
    state: RunState
    created_at: datetime
    profile: str = ""
    revision: int = 0
    testbed: Testbed = Testbed.DIRECT
    qemu: str = ""
    options: Mapping[str, Any] = field(
        default_factory=dict
    )  # any JSON: vmtune.bench.services.runs.runs
    host: str = ""
    slot: Slot | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    failure: str = ""
    fingerprint: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)  # any JSON: vmtune.bench
    conditions: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    record: RunRecord | None = None
    imported_from: str = ""

    @property
    def kind(self) -> ScenarioKind:
        """What was measured."""
        return kind_of_setup(self.setup)
