"""Scenarios, metrics and QEMUs over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.benchmarks.bench_runs import FakeLook, fake_tools
from tests.support.served.api import Api, running_api
from vmtune.bench.catalogue import CATALOGUE
from vmtune.bench.migration.families import FAMILIES, SCENARIOS
from vmtune.bench.migration.order import LibvirtTestbed
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import HEADLINE, METRICS
from vmtune.bench.model.scenario.any_kind import from_json as any_from_json
from vmtune.bench.model.scenario.any_kind import kind_of
from vmtune.bench.model.scenario.migration import from_json
from vmtune.errors import SetupError
from vmtune.model.versions import Version


@pytest.fixture
def look() -> FakeLook:
    return FakeLook()


@pytest.fixture
async def bench(tmp_path: Path, look: FakeLook) -> AsyncIterator[Api]:
    async with running_api(tmp_path, hosts=(), bench_tools=fake_tools(look=look)) as made:
        yield made


async def names(api: Api, query: str = "") -> list[str]:
    found: list[str] = []
    after = ""
    while True:
        page = await api.get(f"/scenarios?limit=20{query}{after}")
        found += [item["name"] for item in page["items"]]
        if page["next"] is None:
            return found
        assert len(page["items"]) == 20
        after = f"&after={page['next']}"


async def test_every_scenario_is_listed_in_the_order_of_the_table(bench: Api) -> None:
    assert await names(bench) == list(CATALOGUE)
    for kind in ScenarioKind:
        found = [name for name, one in CATALOGUE.items() if kind_of(one) is kind]
        assert await names(bench, f"&kind={kind}") == found
    first = (await bench.get("/scenarios"))["items"][0]
    scenario = next(iter(SCENARIOS.values()))
    assert from_json(first["setup"]) == scenario
    assert first["values"] == scenario.values
    assert (first["family"], first["family_title"]) == (
        scenario.family, FAMILIES[scenario.family].title)  # fmt: skip
    assert first["longest_s"] == scenario.longest_s


async def test_scenarios_of_blocks_and_boots(bench: Api) -> None:
    for family in ("block", "boot"):
        items = (await bench.get(f"/scenarios?family={family}"))["items"]
        assert {item["kind"] for item in items} == {family}
        for item in items:
            scenario = any_from_json(item["setup"])
            assert scenario == CATALOGUE[item["name"]]
            assert item["title"] == scenario.title != ""
            assert await bench.get(f"/scenarios/{item['name']}") == item
    assert await bench.refused("GET", "/scenarios/boot/linux.quick", status=404) == [
        ("scenario", "not_found")]  # fmt: skip
    on_lab = await bench.get("/scenarios?family=block&testbed=lab")
    assert all("one QEMU of this machine" in item["reason"] for item in on_lab["items"])


async def test_families_are_chosen(bench: Api) -> None:
    chosen = await names(bench, "&family=pause-after&family=plain/1gbs")
    assert chosen == ["plain/1gbs", *(f"pause-after/{n}" for n in (0, 1, 4, 19))]
    assert await names(bench, "&family=auto-converge-*") == [
        name for name in SCENARIOS if name.startswith("auto-converge-")]  # fmt: skip
    refused = await bench.refused("GET", "/scenarios?family=pause-iter", status=422)
    assert refused == [("scenarios.0", "unknown_scenario")]


async def test_the_quick_selection_is_small_and_has_names_of_its_own(bench: Api) -> None:
    quick = (await bench.get("/scenarios?quick=true"))["items"]
    wanted = [f"{f.name}/{v}.quick" for f in FAMILIES.values() for v in f.quick]
    assert sorted(item["name"] for item in quick) == sorted(wanted)
    assert all(item["longest_s"] < 60 for item in quick)
    one = await bench.get("/scenarios/plain/1gbs.quick")
    assert one in quick
    assert (await bench.get("/scenarios/plain/1gbs"))["longest_s"] > one["longest_s"]
    done = await bench.post("/runs", {"scenario": "plain/1gbs.quick"}, expect=202)
    assert done["scenario"] == "plain/1gbs.quick"


async def test_a_changed_scenario_has_another_name_the_same_for_the_same(bench: Api) -> None:
    async def name(**changes: object) -> str:
        body = {"scenario": "plain/1gbs", "changes": changes}
        return str((await bench.post("/runs", body, expect=202))["scenario"])

    changed = await name(warmup_s=3)
    assert changed.startswith("plain/1gbs.")
    assert await name(warmup_s=3) == changed
    assert await name(warmup_s=4) != changed
    assert await name(warmup_s=15) == await name() == "plain/1gbs"
    assert await name(warmup_s=3, name="my/own") == "my/own"


async def test_what_cannot_be_run_here_says_why(bench: Api, look: FakeLook) -> None:
    limit = "/scenarios/compr-dirty-limit/20MB"
    assert (await bench.get(limit + "?kvm=true"))["applicable"] is True
    without = await bench.get(limit + "?kvm=false")
    assert without["applicable"] is False
    assert "needs KVM" in without["reason"]
    assert look.looked == 2
    assert (await bench.get("/scenarios/plain/1gbs?kvm=false"))["reason"] == ""


async def test_an_old_qemu_lacks_some(tmp_path: Path) -> None:
    tools = fake_tools(look=FakeLook(Version(7, 2, 22)))
    async with running_api(tmp_path, hosts=(), bench_tools=tools) as old:
        found = (await old.get("/scenarios?family=switchover-bandwidth&kvm=true"))["items"]
        reasons = {item["name"]: item["reason"] for item in found}
        assert "avail_switchover_bandwidth" in reasons["switchover-bandwidth/10gbs"]
        assert reasons["switchover-bandwidth/measured"] == ""


async def test_a_qemu_that_does_not_start_leaves_nothing_to_run(bench: Api, look: FakeLook) -> None:
    look.error = SetupError("QEMU does not start: no firmware")
    found = (await bench.get("/scenarios?family=plain&testbed=lab"))["items"]
    assert [item["applicable"] for item in found] == [False, False]
    assert isinstance(look.testbed, LibvirtTestbed)
    assert "no firmware" in found[0]["reason"]
    assert await bench.refused("GET", "/scenarios?qemu=none", status=422) == [
        ("qemu", "unknown_qemu")]  # fmt: skip


async def test_what_is_not_there(bench: Api) -> None:
    assert await bench.refused("GET", "/scenarios/plain/none", status=404) == [
        ("scenario", "not_found")]  # fmt: skip
    assert await bench.refused("GET", "/run-metrics/none", status=404) == [("name", "not_found")]


async def test_metrics_are_explained(bench: Api) -> None:
    found = (await bench.get("/run-metrics"))["items"]
    assert [item["name"] for item in found] == list(METRICS)
    assert [item["name"] for item in found if item["headline"]] == [
        name for name in METRICS if name in HEADLINE]  # fmt: skip
    told = {item["name"] for item in found if item["success"]}
    assert told == {"converged", "load_completed", "booted", "updates_timed"}
    one = await bench.get("/run-metrics/downtime_ms")
    assert (one["unit"], one["better"]) == ("ms", "lower")
    assert "Begins" in one["description"]
    page = await bench.get("/run-metrics?limit=5")
    rest = await bench.get(f"/run-metrics?after={page['next']}")
    assert page["items"] + rest["items"] == found


async def test_qemus_have_names(bench: Api, tmp_path: Path) -> None:
    (system,) = (await bench.get("/qemus"))["items"]
    assert system == {"name": "system", "binary": str(tmp_path / "qemu"), "data_folder": None}
