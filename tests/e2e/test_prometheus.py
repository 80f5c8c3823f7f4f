"""A real Prometheus scrapes two services that share a lab: the rules and every panel of the
dashboard, asked as they are shipped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts.live import wait_for, why_no_lab
from tests.support.hosts.sharing import LiveFleet, live_fleet
from tests.support.served.browser import free_port
from tests.support.served.prometheus import (
    MONITORING,
    Prometheus,
    running_prometheus,
    why_no_prometheus,
)
from tests.support.stores.postgres import why_no_postgres

WHY_NOT = why_no_lab() or why_no_postgres() or why_no_prometheus()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "never")
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "grafana-dashboard.json").read_text())
TARGETS = [
    (panel["title"], target["expr"])
    for panel in DASHBOARD["panels"]
    if panel["type"] != "row"
    for target in panel["targets"]
]
NEVER_HERE = {
    "Phases of jobs that did not succeed, per hour",
    "libvirt's hook",
}
"""Panels of what does not happen in this test: they may be empty, and are still asked."""


def as_grafana_asks(expression: str) -> str:
    """With the dashboard's variables filled in."""
    return expression.replace("$job", "vmtune").replace("$__rate_interval", "1m")


@pytest.fixture(scope="module")
def it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveFleet]:
    folder = tmp_path_factory.mktemp("fleet")
    with live_fleet(folder, number=63, ports=(free_port(), free_port())) as made:
        yield made


@pytest.fixture(scope="module")
def prometheus(
    it: LiveFleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Prometheus, Path]]:
    folder = tmp_path_factory.mktemp("prometheus")
    token = folder / "vmtune.token"
    made = it.client.post("/tokens", {"name": "prometheus", "scopes": ["metrics"]})
    token.write_text(made["token"])
    targets = [f"127.0.0.1:{service.port}" for service in it.services]
    with running_prometheus(folder, free_port(), targets, token) as running:
        yield running, folder


def test_both_services_are_scraped_with_a_token_for_metrics_alone(
    it: LiveFleet, prometheus: tuple[Prometheus, Path]
) -> None:
    asked, _ = prometheus
    wait_for(lambda: len(asked.query('up{job="vmtune"} == 1')) == 2, "two services to be scraped")
    found = asked.ask("targets", state="active")["activeTargets"]
    assert [each["lastError"] for each in found] == ["", ""]


def test_every_panel_of_the_dashboard_has_something_to_show(
    it: LiveFleet, prometheus: tuple[Prometheus, Path]
) -> None:
    asked, _ = prometheus
    it.profile("modest", downtime_limit_ms=450)
    for host in "ab":
        it.client.post("/drift-scans", {"host": host})
    with it.vm() as vm:
        it.client.post(f"/vms/{vm.uuid}/applications", {"profile": "modest"})
        done = it.ended(it.migrate(vm, "b"))
        assert done["state"] == "completed", done
        wait_for(
            lambda: bool(
                asked.query("increase(vmtune_migrations_ended_total[1h]) > 0")
                and asked.query("vmtune_cluster_drift_oldest_scan_timestamp_seconds > 0")
            ),
            "the migration and the scan to be counted",
        )
        empty = {
            (title, expression)
            for title, expression in TARGETS
            if not asked.query(as_grafana_asks(expression)) and title not in NEVER_HERE
        }
    assert not empty


def test_a_broken_promise_fires_its_alert(
    it: LiveFleet, prometheus: tuple[Prometheus, Path]
) -> None:
    asked, _ = prometheus

    def firing() -> dict[str, dict[str, Any]]:
        told = asked.ask("alerts")["alerts"]
        return {each["labels"]["alertname"]: each for each in told if each["state"] == "firing"}

    wait_for(
        lambda: bool(asked.query("sum(vmtune_migration_downtime_exceeded_total) == 0")),
        "the counter to be seen at zero",
    )
    assert "VmtuneDowntimeLimitExceeded" not in firing()
    it.profile("strict", downtime_limit_ms=1)
    with it.vm() as vm:
        done = it.ended(it.migrate(vm, "b", profile="strict"))
    assert done["state"] == "completed", done
    assert done["downtime_exceeded"], done["totals"]
    wait_for(lambda: "VmtuneDowntimeLimitExceeded" in firing(), "the alert to fire")
    told = firing()["VmtuneDowntimeLimitExceeded"]
    assert told["labels"]["severity"] == "warning"
    said = told["annotations"]["summary"]
    assert re.match(r"[\d.]+ migration\(s\) of the last hour stopped their guest for longer", said)


def test_the_rules_are_loaded_and_a_service_that_dies_is_told(
    it: LiveFleet, prometheus: tuple[Prometheus, Path]
) -> None:
    asked, _ = prometheus

    def rules() -> list[dict[str, Any]]:
        return [rule for group in asked.ask("rules")["groups"] for rule in group["rules"]]

    wait_for(lambda: all(rule["health"] == "ok" for rule in rules()), "all rules to be evaluated")
    assert len(rules()) > 15
    assert not [rule["lastError"] for rule in rules() if rule.get("lastError")]
    dies = it.services[1]
    dies.kill()

    def pending() -> dict[str, str]:
        return {a["labels"]["alertname"]: a["labels"].get("instance", "") for r in rules()
                for a in r["alerts"]}  # fmt: skip

    wait_for(lambda: "VmtuneDown" in pending(), "the alert to be pending")
    assert pending()["VmtuneDown"] == f"127.0.0.1:{dies.port}"
