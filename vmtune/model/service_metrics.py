"""Every metric that ``/metrics`` exposes, once: the code counts by this table, the documentation
shows it, and tests hold the dashboard and the alert rules against it.

Base units throughout: seconds, bytes. No label names a VM; hosts are the only label that grows
with the fleet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vmtune.model.cluster import ServiceState
from vmtune.model.evacuation.evacuation import EvacuationState
from vmtune.model.migration.controller_record import StepEffect
from vmtune.model.migration.forecast_basis import Basis, Figure, Position
from vmtune.model.migration.intent import Goal
from vmtune.model.migration.record import MigrationState, Trigger
from vmtune.model.plan.outcome import ApplicationState, Status
from vmtune.model.plan.tuning_state import TuningState


class Kind(StrEnum):
    """Prometheus' kinds."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Across(StrEnum):
    """How the services of one database add up."""

    SUM = "sum"
    """Each service counts its own part since its start: ``sum()`` gives the total."""
    MAX = "max"
    """All services give the same value, from the database: ``max()``. These begin with
    ``vmtune_cluster_``."""


@dataclass(frozen=True, slots=True)
class Exported:
    """One metric.

    :param name: as Prometheus shows it; of a histogram without its endings.
    :param labels: what each label says, or all values that it takes.
    :param unit: with which the name ends; empty where it counts things.
    :param buckets: a histogram's upper bounds, in its unit.
    """

    name: str
    kind: Kind
    help: str
    labels: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    unit: str = ""
    buckets: tuple[float, ...] = ()
    across: Across = Across.SUM


CLUSTER = "vmtune_cluster_"
"""How the names begin of what is read from the database at each scrape."""

_TRIGGERS = tuple(Trigger)
_ENDS = tuple(state for state in MigrationState if state.ended)
OPEN_MIGRATIONS = (*(s for s in MigrationState if not s.ended), MigrationState.UNKNOWN)
OPEN_APPLICATIONS = (*(s for s in ApplicationState if s.open), ApplicationState.UNKNOWN)
OPEN_EVACUATIONS = tuple(state for state in EvacuationState if not state.ended)
_APPLIED = tuple(state for state in ApplicationState if not state.open)
_PHASES = ("succeeded", "failed", "cancelled")
JOBS = ("migration", "observed migration", "evacuation", "run", "campaign", "study")
HOOK_ENDS = ("changed", "unchanged", "refused")
DRIFT = ("drifted", "matching", "without_profile", "skipped", "failed")
GOAL_ENDS = ("kept", "not kept", "given up", "not known")
ENDS_KNOWN = ("right", "wrong", "may not")
QUEUES = ("migrations", "runs", "jobs")

_MINUTES = (0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
# QEMU's own limit is 300 ms unless a profile sets another (downtime-limit, qapi/migration.json).
_DOWNTIMES = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10)
_WAITS = (1, 5, 15, 60, 300, 900, 3600, 14_400)
_ANSWERS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_SCANS = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 900)
_HOOKS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)


def _counter(
    name: str, help: str, labels: Mapping[str, str | tuple[str, ...]] | None = None, unit: str = ""
) -> Exported:
    return Exported(name, Kind.COUNTER, help, labels or {}, unit)


def _gauge(
    name: str, help: str, labels: Mapping[str, str | tuple[str, ...]] | None = None, unit: str = ""
) -> Exported:
    across = Across.MAX if name.startswith(CLUSTER) else Across.SUM
    return Exported(name, Kind.GAUGE, help, labels or {}, unit, (), across)


def _histogram(
    name: str,
    help: str,
    buckets: tuple[float, ...],
    labels: Mapping[str, str | tuple[str, ...]] | None = None,
) -> Exported:
    return Exported(name, Kind.HISTOGRAM, help, labels or {}, "seconds", buckets)


_TRIGGER: Mapping[str, str | tuple[str, ...]] = {"trigger": _TRIGGERS}

_ROWS = (
    # Migrations
    _counter(
        "vmtune_migrations_ended_total",
        "Migrations whose record was completed. One whose end was unknown and is found out later "
        "counts again, under what is found.",
        {"trigger": _TRIGGERS, "state": _ENDS},
    ),
    _histogram(
        "vmtune_migration_duration_seconds",
        "From the order to the end, of completed migrations, by QEMU's clock (total-time).",
        _MINUTES,
        _TRIGGER,
    ),
    _histogram(
        "vmtune_migration_downtime_seconds",
        "How long the guest stood still, of completed migrations, by QEMU's clock (downtime).",
        _DOWNTIMES,
        _TRIGGER,
    ),
    _counter(
        "vmtune_migration_downtime_exceeded_total",
        "Completed migrations that stopped their guest for longer than their downtime limit: the "
        "profile's, or a higher one that a step or a user set meanwhile.",
        _TRIGGER,
    ),
    _counter(
        "vmtune_migration_goals_total",
        "Goals of completed migrations by intent: whether each was kept, as far as is known, or "
        "was given up meanwhile as the intent allows. Not in shadow mode.",
        {"goal": tuple(Goal), "outcome": GOAL_ENDS},
    ),
    _histogram(
        "vmtune_migration_wait_seconds",
        "From its order until a migration of vmtune's own was started: the queue, and preparing.",
        _WAITS,
    ),
    _counter(
        "vmtune_migration_transferred_bytes_total",
        "Bytes that completed migrations sent, by QEMU's count (ram.transferred).",
        _TRIGGER,
        "bytes",
    ),
    _counter(
        "vmtune_migration_zero_copy_missed_total",
        "How often the kernel copied although zero-copy was asked for "
        "(dirty-sync-missed-zero-copy), of completed migrations.",
    ),
    _counter(
        "vmtune_migration_disk_bytes_total",
        "Bytes of local disks that completed migrations copied.",
        unit="bytes",
    ),
    _histogram(
        "vmtune_migration_disk_copy_seconds",
        "From a migration's start until the copies of all its disks had caught up with the guest, "
        "of completed migrations that copied some.",
        _MINUTES,
    ),
    _counter(
        "vmtune_convergence_steps_total",
        "Convergence steps that came due, users' changes among them, by what became of them.",
        {"effect": tuple(e for e in StepEffect if e is not StepEffect.PENDING)},
    ),
    # Forecasts
    _counter(
        "vmtune_forecasts_held_total",
        "Figures of forecasts that were compared with what happened, of migrations that ended by "
        "themselves, by where it lies: within the bounds that are to hold 90 %, or outside.",
        {"basis": tuple(Basis), "figure": tuple(Figure), "position": tuple(Position)},
    ),
    _counter(
        "vmtune_forecasts_of_end_total",
        "Forecasts of whether a migration ends by itself, where that can be said afterwards.",
        {"basis": tuple(Basis), "outcome": ENDS_KNOWN},
    ),
    # The dirty ring
    _counter("vmtune_reaper_rounds_total", "Rounds of the dirty-ring reaper, of ended migrations."),
    _counter(
        "vmtune_reaper_filled_rounds_total",
        "Those in which some vCPU's ring must have been full.",
    ),
    _counter(
        "vmtune_reaper_skipped_rounds_total",
        "Rounds that QEMU refused, because somebody else was measuring.",
    ),
    _counter(
        "vmtune_ring_full_exits_total",
        "Exits of vCPUs to QEMU because a dirty ring was full (kvm_dirty_ring_full), of ended "
        "migrations in which they were counted.",
    ),
    # Applications and drift
    _counter(
        "vmtune_applications_ended_total",
        "Applications and reverts that ended, by the application's state then.",
        {"state": _APPLIED},
    ),
    _counter(
        "vmtune_applied_values_total",
        "Values of ended applications and reverts, by what reading back has found.",
        {"status": tuple(status for status in Status if status is not Status.NOT_APPLIED)},
    ),
    _histogram(
        "vmtune_drift_scan_duration_seconds",
        "How long a drift scan of one host took.",
        _SCANS,
    ),
    # Jobs, hosts, the service itself
    _gauge(
        "vmtune_jobs_running",
        "Jobs with a phase that runs or waits here.",
        {"kind": JOBS},
    ),
    _counter(
        "vmtune_job_phases_total",
        "Phases of jobs that ended, by how.",
        {"kind": JOBS, "outcome": _PHASES},
    ),
    _gauge(
        "vmtune_host_up",
        "Whether a host that this service watches answered at the last contact: "
        "1 or 0. None where observe_migrations is off.",
        {"host": "the host's name"},
    ),
    _gauge("vmtune_hosts_owned", "Hosts that this service owns."),
    _histogram(
        "vmtune_hook_duration_seconds",
        "How long libvirt's hook waited for an answer: libvirt waits as long.",
        _HOOKS,
        {"outcome": HOOK_ENDS},
    ),
    _histogram(
        "vmtune_http_request_duration_seconds",
        "From a request to the beginning of its answer; so an event stream counts as soon as it "
        "is open.",
        _ANSWERS,
        {
            "method": "GET, POST, ...; or other",
            "route": "the route's template, such as /api/v1/vms/{vm}; web for the web UI, none "
            "where a request was refused before it reached one, or there is none",
            "status": "of the answer",
        },
    ),
    _counter(
        "vmtune_webhook_attempts_total",
        "Attempts to deliver a notification to a webhook, by what came of them.",
        {"outcome": ("delivered", "failed")},
    ),
    _counter(
        "vmtune_periodic_task_failures_total",
        "What the service does by itself every 15 s (settle, drop_expired), and could not do.",
    ),
    _gauge("vmtune_database_up", "Whether the database answered this scrape: 1 or 0."),
    _gauge(
        "vmtune_build_info",
        "Always 1.",
        {"version": "of vmtune", "schema": "of the store", "service": "its service_name"},
    ),
    # The fleet: as the database has it
    _gauge(
        "vmtune_cluster_migrations",
        "Migrations that have not ended, or whose end is unknown.",
        {"state": OPEN_MIGRATIONS},
    ),
    _gauge(
        "vmtune_cluster_applications",
        "Applications that have not ended, or whose end is unknown.",
        {"state": OPEN_APPLICATIONS},
    ),
    _gauge("vmtune_cluster_evacuations", "Evacuations that go on.", {"state": OPEN_EVACUATIONS}),
    _gauge(
        "vmtune_cluster_queue_length",
        "What waits: migrations for a slot, benchmark runs for their turn, jobs for the service "
        "that is to carry them.",
        {"queue": QUEUES},
    ),
    _gauge(
        "vmtune_cluster_vms",
        "VMs that were ever seen, by how they stood when last looked at.",
        {"tuning": tuple(TuningState)},
    ),
    _gauge(
        "vmtune_cluster_drift_vms",
        "What the last drift scan of each host came to: VMs that ran otherwise than what was "
        "applied; that did not; of which nothing is wanted; that something was being done to; "
        "that could not be asked.",
        {"found": DRIFT},
    ),
    _gauge(
        "vmtune_cluster_drift_oldest_scan_timestamp_seconds",
        "When the host whose last scan lies furthest back was scanned, since 1970; 0 where none "
        "ever was.",
        unit="seconds",
    ),
    _gauge(
        "vmtune_cluster_untriaged_changes",
        "Changes for the worse in benchmark histories that nobody has triaged.",
    ),
    _gauge(
        "vmtune_cluster_hosts",
        "Hosts, by whether a service drives them.",
        {"owned": ("yes", "no")},
    ),
    _gauge(
        "vmtune_cluster_services",
        "Services that share the database; none where one drives every host.",
        {"state": tuple(ServiceState)},
    ),
)

EXPORTED: Mapping[str, Exported] = {row.name: row for row in _ROWS}
assert len(EXPORTED) == len(_ROWS), "two metrics of one name"
