"""What Prometheus reads: of the fake fleet, by the parsers of Prometheus' own client library."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from fastapi.routing import APIRoute
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from tests.support.benchmarks.measured import noisy, put
from tests.support.served.api import PREFIX, Api, admin_token, running_api
from tests.support.simulated.fakes import VM
from tests.unit.api.test_hooks import DOMAIN, XML
from tests.unit.api.test_route_scopes import ROUTES
from vmtune.engine import dirty_probe
from vmtune.errors import SetupError
from vmtune.model.migration.record import MigrationState
from vmtune.model.service_metrics import CLUSTER, EXPORTED, GOAL_ENDS, Kind
from vmtune.services.metrics import telemetry
from vmtune.storage import Store
from vmtune.storage.repositories.counts import Tallies

MONITORING = Path(__file__).parents[3] / "packaging/monitoring"
TCP = "http://127.0.0.1:8470"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


async def scrape(api: Api, path: str = "/metrics") -> dict[str, Metric]:
    """The metrics as text, by name."""
    answer = await api.client.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    return {family.name: family for family in read_text(answer.text)}


def value(families: dict[str, Metric], series: str, **labels: str) -> float:
    """The value of one series; 0 where it is not there."""
    for family in families.values():
        for sample in family.samples:
            if sample.name == series and sample.labels == labels:
                return sample.value
    return 0.0


class Risen:
    """By how much series have risen since it was made."""

    def __init__(self, before: dict[str, Metric], after: dict[str, Metric]) -> None:
        self._before, self._after = before, after

    def __call__(self, series: str, **labels: str) -> float:
        return value(self._after, series, **labels) - value(self._before, series, **labels)


def stem(name: str) -> str:
    """A metric's name as the parser has it, which leaves the counters' ending out."""
    return name.removesuffix("_total")


async def test_a_change_for_the_worse_counts_until_somebody_decides(api: Api) -> None:
    """What the alert VmtuneBenchmarkWorse asks for."""
    rules = yaml.safe_load((MONITORING / "vmtune-alerts.yml").read_text())["groups"]
    (rule,) = (rule for group in rules for rule in group["rules"]
               if rule["alert"] == "VmtuneBenchmarkWorse")  # fmt: skip
    assert rule["expr"] == "max(vmtune_cluster_untriaged_changes) > 0"
    with Store.open(api.container.settings.database_url) as store:
        put(store, "old", noisy(1000, 20, 1))
        put(store, "new", noisy(1500, 20, 2), after=60)
        put(store, "old", noisy(1000, 20, 1), scenario="q/sooner")
        put(store, "new", noisy(700, 20, 2), scenario="q/sooner", after=60)
    assert value(await scrape(api), "vmtune_cluster_untriaged_changes") == 0
    found = (await api.ask("POST", "/changes/look", {}))["items"]
    (worse,) = (each for each in found if each["worse"])
    assert len(found) == 2
    assert value(await scrape(api), "vmtune_cluster_untriaged_changes") == 1
    await api.ask("PUT", f"/changes/{worse['id']}/triage", {"triage": "known", "note": ""})
    assert value(await scrape(api), "vmtune_cluster_untriaged_changes") == 0


async def test_what_is_exposed_is_what_the_table_has(api: Api) -> None:
    found = await scrape(api)
    ours = {name: family for name, family in found.items() if name.startswith("vmtune_")}
    assert ours.keys() == {stem(name) for name in EXPORTED}
    for row in EXPORTED.values():
        family = ours[stem(row.name)]
        assert (family.type, family.documentation) == (row.kind.value, row.help)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(row.labels), row.name
            for label, known in row.labels.items():
                if isinstance(known, tuple):
                    assert sample.labels[label] in known
    assert "process_resident_memory_bytes" in found
    assert value(found, "vmtune_database_up") == 1


async def test_openmetrics_for_who_asks_for_it(api: Api) -> None:
    answer = await api.client.get("/metrics", headers={"Accept": OPENMETRICS})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    names = {family.name for family in read_openmetrics(answer.text)}
    assert {stem(name) for name in EXPORTED} <= names


async def test_a_migration_is_counted_with_its_figures(api: Api) -> None:
    await api.profile(downtime_limit_ms=700)
    before = await scrape(api)
    body = {"vm": str(VM), "destination": "b", "profile": "p"}
    started = await api.post("/migrations", body, expect=202)
    record = await api.ended(started["id"])
    assert record["state"] == "completed"
    risen = Risen(before, await scrape(api))
    assert risen("vmtune_migrations_ended_total", trigger="vmtune", state="completed") == 1
    assert risen("vmtune_migrations_ended_total", trigger="vmtune", state="failed") == 0
    totals = record["totals"]
    took_s, down_s = totals["total_time_ms"] / 1000, totals["downtime_ms"] / 1000
    for name, seconds in (("duration", took_s), ("downtime", down_s)):
        assert risen(f"vmtune_migration_{name}_seconds_count", trigger="vmtune") == 1
        assert risen(f"vmtune_migration_{name}_seconds_sum", trigger="vmtune") == pytest.approx(
            seconds
        )
    assert risen("vmtune_migration_wait_seconds_count") == 1
    sent = risen("vmtune_migration_transferred_bytes_total", trigger="vmtune")
    assert sent == totals["transferred_bytes"] > 0
    assert risen("vmtune_job_phases_total", kind="migration", outcome="succeeded") == 3


@pytest.mark.parametrize(("limit_ms", "exceeded"), [(1, 1), (5000, 0)])
async def test_a_downtime_beyond_its_limit_is_counted(
    api: Api, limit_ms: int, exceeded: int
) -> None:
    await api.profile(downtime_limit_ms=limit_ms)
    before = await scrape(api)
    body = {"vm": str(VM), "destination": "b", "profile": "p"}
    record = await api.ended((await api.post("/migrations", body, expect=202))["id"])
    assert (record["state"], record["downtime_exceeded"]) == ("completed", bool(exceeded))
    risen = Risen(before, await scrape(api))
    assert risen("vmtune_migration_downtime_exceeded_total", trigger="vmtune") == exceeded


@pytest.mark.parametrize(
    ("silence_ms", "shadow", "outcome"),
    [(1, False, "not kept"), (50_000, False, "kept"), (1, True, "")],
)
async def test_goals_are_counted_and_broken_intents_need_attention(
    api: Api, silence_ms: int, shadow: bool, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (50, 60))
    intent = {"max_silence_ms": silence_ms, "otherwise": "keep-trying"}
    before = await scrape(api)
    body = {"vm": str(VM), "destination": "b", "intent": intent, "shadow": shadow}
    record = await api.ended((await api.post("/migrations", body, expect=202))["id"])
    assert record["state"] == "completed"
    broken = outcome == "not kept"
    assert record["intent_broken"] is broken
    risen = Risen(before, await scrape(api))
    for each in GOAL_ENDS:
        found = risen("vmtune_migration_goals_total", goal="max_silence_ms", outcome=each)
        assert found == (each == outcome)
    listed = (await api.get("/migrations?intent_broken=true"))["items"]
    assert [each["id"] for each in listed] == ([record["id"]] if broken else [])
    seen = await api.get("/overview")
    concerns = [each["concern"] for each in seen["attention"]]
    assert ("intent not kept" in concerns) is broken
    assert seen["migrations"][0]["intent_broken"] is broken


async def test_applications_and_what_was_read_back_are_counted(api: Api) -> None:
    await api.profile(downtime_limit_ms=700)
    before = await scrape(api)
    made = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
    middle = await scrape(api)
    await api.post(f"/applications/{made['id']}/revert", expect=200)
    after = await scrape(api)
    applied, reverted = Risen(before, middle), Risen(middle, after)
    both = ((applied, "applied", "effective"), (reverted, "reverted", "reverted"))
    for risen, state, status in both:
        assert risen("vmtune_applications_ended_total", state=state) == 1
        assert risen("vmtune_applied_values_total", status=status) == 1
    assert value(middle, "vmtune_cluster_vms", tuning="tuned") == 1


async def test_what_is_open_is_read_from_the_database(api: Api) -> None:
    with Store.open(api.container.settings.database_url) as store:
        waiting = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
        lost = store.migrations.begin(vm=uuid4(), vm_name="x", source="a", destination="b")
        store.migrations.update(lost.id, state=MigrationState.UNKNOWN)
        found = await scrape(api)
        assert value(found, "vmtune_cluster_migrations", state="queued") == 1
        assert value(found, "vmtune_cluster_queue_length", queue="migrations") == 1
        assert value(found, "vmtune_cluster_migrations", state="unknown") == 1
        store.migrations.update(waiting.id, state=MigrationState.CANCELLED)
    found = await scrape(api)
    assert value(found, "vmtune_cluster_queue_length", queue="migrations") == 0
    assert value(found, "vmtune_hosts_owned") == 2
    assert value(found, "vmtune_cluster_hosts", owned="yes") == 2


async def test_watched_hosts_are_up_until_they_are_removed(api: Api) -> None:
    async with asyncio.timeout(60):
        while value(await scrape(api), "vmtune_host_up", host="a") != 1:  # noqa: ASYNC110 - as Prometheus asks
            await asyncio.sleep(0.01)
    await api.ask("DELETE", "/hosts/b", expect=204)
    found = await scrape(api)
    hosts = {sample.labels["host"] for sample in found["vmtune_host_up"].samples}
    assert "b" not in hosts


async def test_requests_are_timed_by_their_template(api: Api) -> None:
    before = await scrape(api)
    await api.get(f"/vms/{VM}")
    await api.refused("GET", f"/vms/{uuid4()}", status=404)
    await api.client.get(f"/{uuid4()}/nowhere")
    await api.client.request("BREW", "/api/v1/vms")
    await api.client.post(f"{PREFIX}/hooks/qemu", content=DOMAIN, headers=XML)
    await api.client.post(f"{PREFIX}/hooks/qemu", content="<x/>", headers=XML)
    text = (await api.client.get("/metrics")).text
    after = {family.name: family for family in read_text(text)}
    risen = Risen(before, after)
    counted = "vmtune_http_request_duration_seconds_count"
    of_vm = {"method": "GET", "route": f"{PREFIX}/vms/{{vm}}"}
    assert risen(counted, **of_vm, status="200") == 1
    assert risen(counted, **of_vm, status="404") == 1
    assert risen(counted, method="other", route="none", status="405") == 1
    assert risen("vmtune_hook_duration_seconds_count", outcome="unchanged") == 1
    assert risen("vmtune_hook_duration_seconds_count", outcome="refused") == 1
    assert str(VM) not in text
    # Those of other tests' applications in this process have not risen.
    samples = [s for f in after.values() for s in f.samples if s.name == counted]
    routes = {s.labels["route"] for s in samples if risen(counted, **s.labels)}
    known = {path for path, route in ROUTES if isinstance(route, APIRoute)}
    assert routes <= known | {"none", "web", f"{PREFIX}/docs", f"{PREFIX}/openapi.json"}


async def test_without_the_database_the_rest_is_there(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: Tallies) -> None:
        raise SetupError("the database is away")

    monkeypatch.setattr(Tallies, "now", away)
    found = await scrape(api)
    assert value(found, "vmtune_database_up") == 0
    assert not [name for name in found if name.startswith(CLUSTER)]
    assert "vmtune_migrations_ended" in found


async def test_over_tcp_it_takes_a_token_that_may_do_nothing_else(tmp_path: Path) -> None:
    async with running_api(tmp_path, base_url=TCP) as api:

        async def status(path: str, token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            api.client.headers.pop("Authorization", None)
            return (await api.client.get(path, headers=headers)).status_code

        prometheus = await admin_token(api.container, scopes=["metrics"])
        reader = await admin_token(api.container, scopes=["read"])
        of_a = await admin_token(api.container, scopes=["metrics"], hosts=["a"])
        for path in ("/metrics", f"{PREFIX}/metrics"):
            assert await status(path, "") == 401
            assert await status(path, "vmt_wrong") == 401
            assert await status(path, prometheus) == 200
            assert await status(path, reader) == 200
            assert await status(path, of_a) == 403
        for path in ("/hosts", "/vms", "/migrations", "/audit", "/health"):
            assert await status(PREFIX + path, prometheus) == 403, path


def test_every_counter_begins_at_zero() -> None:
    """So that the first event is a rise; but for those whose labels nobody knows beforehand."""
    names = {sample.name for family in telemetry.REGISTRY.collect() for sample in family.samples}
    for row in EXPORTED.values():
        if row.kind is Kind.COUNTER and all(isinstance(k, tuple) for k in row.labels.values()):
            assert row.name in names
