"""Each alert that vmtune ships fires when it should and is silent else, as Prometheus' own promtool
evaluates it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.support.served.prometheus import MONITORING, promtool, why_no_prometheus

WHY_NOT = why_no_prometheus()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")
RULES = MONITORING / "vmtune-alerts.yml"
ALERTS = [
    rule["alert"]
    for group in yaml.safe_load(RULES.read_text())["groups"]
    for rule in group["rules"]
]
SERVICE = 'job="vmtune",instance="one"'


@dataclass(frozen=True)
class Case:
    """Series by the minute, for three hours at most.

    :param fires: series under which the alert fires after *minutes*.
    :param silent: under which it does not.
    """

    fires: dict[str, str]
    silent: dict[str, str]
    minutes: int = 60


def steady(value: float) -> str:
    """The same value each minute."""
    return f"{value}+0x180"


def rising(each: float) -> str:
    """A counter that rises by so much each minute."""
    return f"0+{each}x180"


def buckets(name: str, labels: str, below: dict[str, float]) -> dict[str, str]:
    """A histogram: for each upper bound by how much its counter rises each minute."""
    return {f'{name}_bucket{{{labels},le="{le}"}}': rising(each) for le, each in below.items()}


def ended(completed: float, failed: float) -> dict[str, str]:
    """Migrations that end each minute."""
    name = "vmtune_migrations_ended_total"
    return {
        f'{name}{{{SERVICE},state="completed",trigger="api"}}': rising(completed),
        f'{name}{{{SERVICE},state="failed",trigger="api"}}': rising(failed),
    }


def gauge(name: str, value: float, **labels: str) -> dict[str, str]:
    """One that stays as it is."""
    more = "".join(f',{key}="{text}"' for key, text in labels.items())
    return {f"{name}{{{SERVICE}{more}}}": steady(value)}


def counter(name: str, each: float, **labels: str) -> dict[str, str]:
    """One that rises each minute."""
    more = "".join(f',{key}="{text}"' for key, text in labels.items())
    return {f"{name}{{{SERVICE}{more}}}": rising(each)}


def held(within: float, above: float) -> dict[str, str]:
    """Forecasts of silences that are held each minute."""
    name, more = "vmtune_forecasts_held_total", 'basis="before",figure="silence"'
    return {
        f'{name}{{{SERVICE},{more},position="within"}}': rising(within),
        f'{name}{{{SERVICE},{more},position="above"}}': rising(above),
    }


REQUESTS = "vmtune_http_request_duration_seconds"
OLD_SCAN = "vmtune_cluster_drift_oldest_scan_timestamp_seconds"
CASES = {
    "VmtuneForecastBoundsOff": Case(held(7, 3), held(9, 1), minutes=120),
    "VmtuneDown": Case(gauge("up", 0), gauge("up", 1)),
    "VmtuneDatabaseDown": Case(gauge("vmtune_database_up", 0), gauge("vmtune_database_up", 1)),
    "VmtuneHostDown": Case(
        gauge("vmtune_host_up", 0, host="rack1"), gauge("vmtune_host_up", 1, host="rack1")
    ),
    "VmtuneHostUndriven": Case(
        gauge("vmtune_cluster_hosts", 1, owned="no"), gauge("vmtune_cluster_hosts", 0, owned="no")
    ),
    "VmtuneMigrationsFail": Case(ended(1, 1), ended(10, 1)),
    "VmtuneMigrationUnknown": Case(
        gauge("vmtune_cluster_migrations", 1, state="unknown"),
        gauge("vmtune_cluster_migrations", 1, state="active"),
    ),
    "VmtunePostcopyPaused": Case(
        gauge("vmtune_cluster_migrations", 1, state="postcopy-paused"),
        gauge("vmtune_cluster_migrations", 0, state="postcopy-paused"),
        minutes=1,
    ),
    "VmtuneDowntimeHigh": Case(
        buckets("vmtune_migration_downtime_seconds", SERVICE, {"1": 1, "5": 2, "+Inf": 2}),
        buckets("vmtune_migration_downtime_seconds", SERVICE, {"1": 2, "5": 2, "+Inf": 2}),
    ),
    "VmtuneDowntimeLimitExceeded": Case(
        counter("vmtune_migration_downtime_exceeded_total", 1, trigger="vmtune"),
        counter("vmtune_migration_downtime_exceeded_total", 0, trigger="vmtune") | ended(1, 0),
    ),
    "VmtuneIntentNotKept": Case(
        counter("vmtune_migration_goals_total", 1, goal="deadline_s", outcome="not kept"),
        counter("vmtune_migration_goals_total", 1, goal="deadline_s", outcome="given up"),
    ),
    "VmtuneQueueStuck": Case(
        gauge("vmtune_cluster_queue_length", 3, queue="migrations") | ended(0, 0),
        gauge("vmtune_cluster_queue_length", 3, queue="migrations") | ended(1, 0),
    ),
    "VmtuneZeroCopyMissed": Case(
        counter("vmtune_migration_zero_copy_missed_total", 1),
        counter("vmtune_migration_zero_copy_missed_total", 0),
    ),
    "VmtuneRingFull": Case(
        counter("vmtune_ring_full_exits_total", 2000) | ended(1, 0),
        counter("vmtune_ring_full_exits_total", 500) | ended(1, 0),
    ),
    "VmtuneApplicationsFail": Case(
        counter("vmtune_applications_ended_total", 1, state="failed"),
        counter("vmtune_applications_ended_total", 1, state="applied"),
    ),
    "VmtuneDrift": Case(
        gauge("vmtune_cluster_vms", 2, tuning="drifted"),
        gauge("vmtune_cluster_vms", 2, tuning="tuned"),
        minutes=90,
    ),
    # promtool's clock begins at 0: 15 minutes before a day is over, the last scan was at 1 s.
    "VmtuneDriftScanOld": Case(gauge(OLD_SCAN, 1), gauge(OLD_SCAN, 0), minutes=1480),
    "VmtuneBenchmarkWorse": Case(
        gauge("vmtune_cluster_untriaged_changes", 1), gauge("vmtune_cluster_untriaged_changes", 0)
    ),
    "VmtuneHookSlow": Case(
        buckets("vmtune_hook_duration_seconds", SERVICE, {"0.5": 1, "1": 10, "+Inf": 10}),
        buckets("vmtune_hook_duration_seconds", SERVICE, {"0.5": 10, "1": 10, "+Inf": 10}),
    ),
    "VmtuneApiErrors": Case(
        counter(f"{REQUESTS}_count", 1, status="503"), counter(f"{REQUESTS}_count", 1, status="404")
    ),
    "VmtuneApiSlow": Case(
        buckets(REQUESTS, f'{SERVICE},method="GET"', {"1": 1, "5": 10, "+Inf": 10}),
        buckets(REQUESTS, f'{SERVICE},method="GET"', {"1": 10, "5": 10, "+Inf": 10}),
    ),
    "VmtunePeriodicTasksFail": Case(
        counter("vmtune_periodic_task_failures_total", 1),
        counter("vmtune_periodic_task_failures_total", 0.5),
    ),
}


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stderr
    assert f"{len(ALERTS)} rules found" in checked.stdout


def test_every_alert_has_a_case() -> None:
    assert set(CASES) == set(ALERTS)


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_when_it_should_and_is_silent_else(name: str, tmp_path: Path) -> None:
    case = CASES[name]

    def one(series: dict[str, str], firing: int) -> dict[str, object]:
        text = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
        long = [
            {"series": each, "values": values.replace("x180", f"x{max(180, case.minutes)}")}
            for each, values in series.items()
        ]
        expected = [{"labels": "{}", "value": firing}] if firing else []
        test = {"expr": f"count({text})", "eval_time": f"{case.minutes}m", "exp_samples": expected}
        return {"interval": "1m", "input_series": long, "promql_expr_test": [test]}

    file = tmp_path / "alerts.yml"
    tests = [one(case.fires, 1), one(case.silent, 0)]
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": tests}))
    tried = promtool("test", "rules", file)
    assert tried.returncode == 0, tried.stdout + tried.stderr
