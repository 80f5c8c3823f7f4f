"""The service's own counters, for ``/metrics``: see
:mod:`vmtune.model.service_metrics`.

Counts are the process's own and begin at zero with it, as Prometheus expects of counters. What has
to outlive the service, or concerns all services, is read from the database at each scrape
instead (:mod:`vmtune.services.metrics.exposition`). Every function here is cheap and never fails.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from vmtune.forecast.held import Happened, KeptForecast
from vmtune.model.migration.controller_record import StepEffect
from vmtune.model.migration.downtime import downtime_kept
from vmtune.model.migration.forecast_basis import Figure
from vmtune.model.migration.record import Migration, MigrationState, Trigger
from vmtune.model.migration.stated_intent import relaxed
from vmtune.model.plan.outcome import Application
from vmtune.model.service_metrics import CLUSTER, EXPORTED, Exported, Kind

REGISTRY = CollectorRegistry()
"""The counters, with the process's own metrics (``process_...``)."""

_MAX_COMBINATIONS = 40
"""Series that are there from the start, at zero, so that the first event is a rise."""

disable_created_metrics()  # type: ignore[no-untyped-call] # no reader needs when a series began
ProcessCollector(registry=REGISTRY)


def _combinations(row: Exported) -> Iterator[tuple[str, ...]]:
    """All values of a metric's labels; none where they are not all known beforehand."""
    values = [known for known in row.labels.values() if isinstance(known, tuple)]
    if len(values) == len(row.labels):
        yield from itertools.product(*values)


_M = TypeVar("_M", Counter, Gauge, Histogram)


def _all(kind: Kind, make: Callable[[Exported], _M]) -> Mapping[str, _M]:
    """The metrics of a kind that are counted here."""
    made: dict[str, _M] = {}
    for row in EXPORTED.values():
        if row.kind is kind and not row.name.startswith(CLUSTER):
            made[row.name] = metric = make(row)
            known = list(_combinations(row)) if row.labels else []
            for values in known if len(known) <= _MAX_COMBINATIONS else ():
                metric.labels(*values)
    return made


def _counter(row: Exported) -> Counter:
    return Counter(row.name, row.help, [*row.labels], registry=REGISTRY)


def _gauge(row: Exported) -> Gauge:
    return Gauge(row.name, row.help, [*row.labels], registry=REGISTRY)


def _histogram(row: Exported) -> Histogram:
    return Histogram(row.name, row.help, [*row.labels], registry=REGISTRY, buckets=row.buckets)


_COUNTERS = _all(Kind.COUNTER, _counter)
_GAUGES = _all(Kind.GAUGE, _gauge)
_HISTOGRAMS = _all(Kind.HISTOGRAM, _histogram)


def migration_ended(record: Migration) -> None:
    """A migration's record was completed, or an unknown end was determined."""
    trigger = record.trigger.value
    _COUNTERS["vmtune_migrations_ended_total"].labels(trigger, record.state.value).inc()
    if record.state is MigrationState.UNKNOWN:
        return  # what follows is counted once, at its end
    if record.trigger is Trigger.VMTUNE and record.started_at is not None:
        waited_s = (record.started_at - record.created_at).total_seconds()
        _HISTOGRAMS["vmtune_migration_wait_seconds"].observe(max(waited_s, 0))
    if record.totals is not None:
        totals = record.totals
        of = _HISTOGRAMS["vmtune_migration_duration_seconds"].labels(trigger)
        of.observe(totals.total_time_ms / 1000)
        of = _HISTOGRAMS["vmtune_migration_downtime_seconds"].labels(trigger)
        of.observe(totals.downtime_ms / 1000)
        kept = downtime_kept(record)
        if kept is not None and kept.exceeded:
            _COUNTERS["vmtune_migration_downtime_exceeded_total"].labels(trigger).inc()
        _note_goals(record)
        sent = _COUNTERS["vmtune_migration_transferred_bytes_total"].labels(trigger)
        sent.inc(totals.transferred_bytes)
        _COUNTERS["vmtune_migration_zero_copy_missed_total"].inc(totals.missed_zero_copy)
        _note_disks(record)
    if record.reaper is not None:
        reaper = record.reaper
        _COUNTERS["vmtune_reaper_rounds_total"].inc(reaper.round_count)
        _COUNTERS["vmtune_reaper_filled_rounds_total"].inc(reaper.filled_rounds)
        _COUNTERS["vmtune_reaper_skipped_rounds_total"].inc(reaper.skipped_rounds)
        _COUNTERS["vmtune_ring_full_exits_total"].inc(reaper.ring_full_exits or 0)


def _note_goals(record: Migration) -> None:
    if record.intent is None or record.intent.shadow:
        return
    given_up = relaxed(record.step_records)
    for each in record.intent.kept:
        outcome = {True: "kept", False: "not kept", None: "not known"}[each.kept]
        if each.kept is not True and each.goal in given_up:
            outcome = "given up"
        _COUNTERS["vmtune_migration_goals_total"].labels(each.goal.value, outcome).inc()


def _note_disks(record: Migration) -> None:
    if not record.disks:
        return
    copied = sum(disk.copied_bytes for disk in record.disks)
    _COUNTERS["vmtune_migration_disk_bytes_total"].inc(copied)
    ready = [disk.ready_ms for disk in record.disks if disk.ready_ms is not None]
    if len(ready) == len(record.disks):
        _HISTOGRAMS["vmtune_migration_disk_copy_seconds"].observe(max(ready) / 1000)


def forecast_held(forecast: KeptForecast, happened: Happened) -> None:
    """A forecast was compared with what happened."""
    basis, said = forecast.basis.value, forecast.figures
    if happened.ended is not None:
        right = "right" if said.ends is happened.ended else "wrong"
        outcome = "may not" if said.ends is None else right
        _COUNTERS["vmtune_forecasts_of_end_total"].labels(basis, outcome).inc()
    for figure in Figure:
        bounds, value = said.of(figure), happened.of(figure)
        if bounds is not None and value is not None:
            of = _COUNTERS["vmtune_forecasts_held_total"]
            of.labels(basis, figure.value, bounds.position(value).value).inc()


def step_came_due(effect: StepEffect) -> None:
    """A convergence step, or a user's change during a migration, has its outcome."""
    _COUNTERS["vmtune_convergence_steps_total"].labels(effect.value).inc()


def application_ended(record: Application) -> None:
    """An application or its revert has ended."""
    _COUNTERS["vmtune_applications_ended_total"].labels(record.state.value).inc()
    for outcome in record.outcomes:
        _COUNTERS["vmtune_applied_values_total"].labels(outcome.status.value).inc()


def drift_scanned(duration_s: float) -> None:
    """A host was scanned for drift. The result is in the database."""
    _HISTOGRAMS["vmtune_drift_scan_duration_seconds"].observe(duration_s)


@contextmanager
def job_phase(kind: str) -> Iterator[None]:
    """A phase of a job runs for as long as the block does.

    Cancelled is also what a phase is when the service stops.
    """
    running = _GAUGES["vmtune_jobs_running"].labels(kind)
    running.inc()
    outcome = "cancelled"
    try:
        yield
        outcome = "succeeded"
    except Exception:
        outcome = "failed"
        raise
    finally:
        running.dec()
        _COUNTERS["vmtune_job_phases_total"].labels(kind, outcome).inc()


def host_seen(host: str, up: bool) -> None:
    """A host that is watched answered, or did not, or its connection was lost."""
    _GAUGES["vmtune_host_up"].labels(host).set(up)


def host_left(host: str) -> None:
    """A host is watched no more."""
    with suppress(KeyError):  # it was never seen
        _GAUGES["vmtune_host_up"].remove(host)


@contextmanager
def hook() -> Iterator[Callable[[str], None]]:
    """libvirt's hook waits while the block runs.
    :return: takes the answer, one of :data:`vmtune.model.service_metrics.HOOK_ENDS`;
        refused by default.
    """
    outcome = "refused"

    def record_outcome(what: str) -> None:
        nonlocal outcome
        outcome = what

    began_s = time.perf_counter()
    try:
        yield record_outcome
    finally:
        took_s = time.perf_counter() - began_s
        _HISTOGRAMS["vmtune_hook_duration_seconds"].labels(outcome).observe(took_s)


def request_answered(method: str, route: str, status: int, duration_s: float) -> None:
    """The answer to a request has begun.

    :param method: a known one, or ``other``.
    :param route: a template of a route, never a requested path.
    """
    of = _HISTOGRAMS["vmtune_http_request_duration_seconds"]
    of.labels(method, route, str(status)).observe(duration_s)


def webhook_sent(*, failed: bool) -> None:
    """An attempt to deliver a notification ended."""
    _COUNTERS["vmtune_webhook_attempts_total"].labels("failed" if failed else "delivered").inc()


def task_failed() -> None:
    """What the service does by itself could not be done this time."""
    _COUNTERS["vmtune_periodic_task_failures_total"].inc()


def note_build(version: str, schema: str, service: str) -> None:
    """What runs."""
    _GAUGES["vmtune_build_info"].clear()
    _GAUGES["vmtune_build_info"].labels(version, schema, service).set(1)


def note_database(up: bool, hosts_owned: int | None = None) -> None:
    """What this scrape has read from the database, and of this service in it."""
    _GAUGES["vmtune_database_up"].set(up)
    if hosts_owned is not None:
        _GAUGES["vmtune_hosts_owned"].set(hosts_owned)
