"""Evacuations and the queue over HTTP: planned, started, followed, refused."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from tests.support.served.api import Api
from tests.support.simulated.fakes import VM
from vmtune.engine import dirty_probe
from vmtune.model.migration.record import MigrationState


async def test_a_plan_then_an_evacuation_to_its_end(api: Api) -> None:
    plan = await api.ask("POST", "/hosts/a/evacuations/plan", {"destinations": ["b"]})
    (vm,) = plan["vms"]
    assert (plan["host"], plan["movable"], plan["left"]) == ("a", 1, 0)
    assert (vm["vm"], vm["destination"], vm["blockers"]) == (str(VM), "b", [])
    assert (await api.get("/evacuations"))["items"] == []

    made = await api.ask("POST", "/hosts/a/evacuations", {"order": "largest-first"}, expect=202)
    path = f"/hosts/a/evacuations/{made['id']}"
    async with asyncio.timeout(60):
        await api.jobs.wait(made["id"])
    done = await api.get(path)
    assert (done["state"], done["moved"], done["left"]) == ("completed", 1, 0)
    assert done["ended"]
    (moved,) = (await api.get(f"{path}/vms"))["items"]
    assert moved["state"] == "moved"
    migration = await api.get(f"/migrations/{moved['migration']}")
    assert (migration["state"], migration["source"]) == ("completed", "a")
    assert (migration["queued"], migration["ahead"], migration["waiting_reason"]) == (
        False,
        None,
        "",
    )
    assert [each["id"] for each in (await api.get("/evacuations?state=completed"))["items"]] == [
        made["id"]
    ]
    assert (await api.get("/evacuations?state=running"))["items"] == []
    for method, way in (("DELETE", ""), ("POST", "/pause"), ("POST", "/resume")):
        refused = await api.ask(method, path + way, expect=409)
        assert refused["errors"][0]["code"] == "too_late"
    audit = (await api.get("/audit?limit=50"))["items"]
    told = [change for entry in audit for change in entry["changes"]]
    states = [c["after"]["state"] for c in told if c["what"] == "evacuation"]
    assert states == ["completed", "running"]


async def test_what_cannot_be_accepted_names_the_field(api: Api) -> None:
    for body, field in (
        ({"destinations": ["a"]}, "destinations.0"),
        ({"overrides": ["nonsense"]}, "overrides.0"),
        ({"order": "random"}, "order"),
        ({"max_outgoing": 0}, "max_outgoing"),
        ({"nonsense": 1}, "nonsense"),
        ({"vm_overrides": {str(UUID(int=7)): ["disk_missing"]}}, f"vm_overrides.{UUID(int=7)}"),
    ):
        refused = await api.ask("POST", "/hosts/a/evacuations", body, expect=422)
        assert refused["errors"][0]["field"] == field
    await api.ask("POST", "/hosts/nowhere/evacuations", {}, expect=404)
    for path in ("/hosts/a/evacuations", "/hosts/a/evacuations/plan"):
        unknown = await api.ask("POST", path, {"profile": "nosuch"}, expect=404)
        assert unknown["errors"][0]["field"] == "profile"
    await api.ask("GET", f"/hosts/a/evacuations/{VM}", expect=404)
    assert (await api.get("/hosts/a/evacuations"))["items"] == []


async def test_an_evacuation_is_of_its_own_host(api: Api) -> None:
    made = await api.ask("POST", "/hosts/a/evacuations", {}, expect=202)
    async with asyncio.timeout(60):
        await api.jobs.wait(made["id"])
    await api.ask("GET", f"/hosts/b/evacuations/{made['id']}", expect=404)
    await api.ask("GET", f"/hosts/b/evacuations/{made['id']}/vms", expect=404)
    assert (await api.get("/hosts/b/evacuations"))["items"] == []


async def test_a_place_in_the_queue_is_told(api: Api) -> None:
    """Two others have all there is of host a."""
    store = api.container.queries._store
    for number in range(2):
        store.migrations.begin(
            vm=UUID(int=number + 1), vm_name="other", source="a", destination="b",
            state=MigrationState.ACTIVE,
        )  # fmt: skip
    first = store.migrations.begin(vm=UUID(int=7), vm_name="first", source="a", destination="b")
    body = {"vm": str(VM), "destination": "b", "priority": -5}
    queued = await api.ask("POST", "/migrations", body, expect=202)
    seen = await api.get(f"/migrations/{queued['id']}")
    assert (seen["state"], seen["queued"], seen["ahead"]) == ("queued", True, 1)
    assert seen["waiting_reason"] == "2 of 2 leave a"
    listed = {each["id"]: each["ahead"] for each in (await api.get("/migrations"))["items"]}
    assert (listed[queued["id"]], listed[str(first.id)]) == (1, 0)
    cancelled = await api.ask("DELETE", f"/migrations/{queued['id']}", expect=202)
    assert cancelled["abort"] == "requested"
    async with asyncio.timeout(60):
        await api.jobs.wait(queued["id"])
    done = await api.get(f"/migrations/{queued['id']}")
    assert (done["state"], done["abort"], done["queued"]) == ("cancelled", "aborted", False)
    bad = await api.ask("POST", "/migrations", {**body, "priority": 101}, expect=422)
    assert bad["errors"][0]["field"] == "priority"


async def test_an_evacuations_intent_is_shown_and_a_bad_one_refused(api: Api) -> None:
    bad = {"intent": {"max_silence_ms": "1 parsec"}}
    refused = await api.ask("POST", "/hosts/a/evacuations", bad, expect=422)
    assert refused["errors"][0]["field"] == "intent.max_silence_ms"
    goals = {"max_silence_ms": 500, "otherwise": "keep-trying"}
    only_vm = {"intent": goals, "destinations": ["b"]}
    made = await api.ask("POST", "/hosts/a/evacuations", only_vm, expect=202)
    assert made["intent"]["stated"] == {**goals, "may": ["compress", "zero_copy"]}
    async with asyncio.timeout(60):
        await api.jobs.wait(made["id"])
    (moved,) = (await api.get(f"/hosts/a/evacuations/{made['id']}/vms"))["items"]
    migration = await api.get(f"/migrations/{moved['migration']}")
    assert migration["intent"]["stated"] == made["intent"]["stated"]


async def test_a_plan_shows_the_choices_for_an_intent_with_their_reasons(api: Api) -> None:
    body = {"destination": "b", "intent": {"max_silence_ms": 500, "max_slowdown_percent": 20}}
    plan = await api.ask("POST", f"/vms/{VM}/plan", body)
    found = plan["intent"]
    chosen = {choice["tunable"]: choice for choice in found["choices"]}
    # (500 - 40 - 4 MiB at 128 MiB/s) * 0.95 / 4
    assert chosen["downtime_limit_ms"]["value"]["value"] == 101
    assert all(choice["reason"] for choice in found["choices"])
    assert {item["tunable"] for item in plan["items"]} >= chosen.keys()
    assert (await api.ask("POST", f"/vms/{VM}/plan", {"destination": "b"}))["intent"] is None
    refused = await api.ask("POST", f"/vms/{VM}/plan", {"intent": body["intent"]}, expect=422)
    assert refused["errors"][0]["field"] == "destination"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dirty_probe, "WINDOWS_MS", (50, 60))
