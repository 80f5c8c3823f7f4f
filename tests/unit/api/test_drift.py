"""Drift: scans that are asked for, and the VMs that drift, told without asking anybody."""

from __future__ import annotations

import asyncio

import httpx

from tests.support.examples.samples import make_samples
from tests.support.served.api import Api, Json, admin_token
from tests.support.simulated.fakes import VM
from vmtune.model.migration.record import MigrationState
from vmtune.storage import Store


async def scanned(api: Api, body: object = None) -> list[Json]:
    """The scans, once those that were asked for have ended."""
    asked = (await api.post("/drift-scans", body, expect=202))["hosts"]
    async with asyncio.timeout(60):
        while True:
            scans = (await api.get("/drift-scans"))["items"]
            if not any(scan["pending"] for scan in scans if scan["host"] in asked):
                return [scan for scan in scans if scan["host"] in asked]
            await asyncio.sleep(0.01)


async def drifting(api: Api) -> Json:
    await api.profile("p", downtime_limit_ms=700)
    done = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
    api.source.parameters["downtime-limit"] = 5
    return done


async def test_a_scan_finds_what_drifts_and_it_is_told_from_then_on(api: Api) -> None:
    done = await drifting(api)
    assert (await api.get("/drifts"))["items"] == [], "nobody has looked yet"
    before = await api.get("/hosts/a")
    assert before["drift"]["result"] is None
    a, b = await scanned(api)
    assert (a["host"], b["host"]) == ("a", "b")
    assert (a["result"]["checked"], a["result"]["drifted"]) == (1, 1)
    assert b["result"]["checked"] == 0
    for driver in api.drivers.values():
        driver.reachable = False  # from now on nobody is asked
    (drift,) = (await api.get("/drifts?host=a"))["items"]
    tuning = drift["tuning"]
    assert (drift["vm"], drift["host"], tuning["application"]) == (str(VM), "a", done["id"])
    assert (tuning["differing"], tuning["since"]) == (["downtime_limit_ms"], tuning["as_of"])
    assert (await api.get("/drifts?host=b"))["items"] == []
    assert (await api.get("/hosts/a"))["drift"]["result"] == a["result"]


async def test_one_host_alone_is_looked_at(api: Api) -> None:
    await drifting(api)
    assert [scan["host"] for scan in await scanned(api, {"host": "b"})] == ["b"]
    (of_a,) = (await api.get("/drift-scans?host=a"))["items"]
    assert (of_a["pending"], of_a["result"], of_a["ended_at"]) == (False, None, None)


async def test_a_host_that_does_not_answer_says_why(api: Api) -> None:
    api.drivers["a"].reachable = False
    (scan,) = await scanned(api, {"host": "a"})
    assert [problem["code"] for problem in scan["problems"]] == ["host_unreachable"]


async def test_what_cannot_be_asked_for_is_refused(api: Api) -> None:
    for body in ({"host": "gone"},):
        refused = await api.refused("POST", "/drift-scans", body, status=404)
        assert [field for field, _ in refused] == ["host"]
    await api.refused("POST", "/drift-scans", {"hosts": ["a"]}, status=422)
    await api.refused("GET", "/drifts?host=gone", status=404)
    await api.refused("GET", "/drift-scans?host=gone", status=404)


async def test_scans_are_within_reach(api: Api) -> None:
    await drifting(api)
    await scanned(api)

    async def asks(method: str, path: str, body: object = None, **reach: object) -> httpx.Response:
        token = await admin_token(api.container, **reach)
        return await api.send(method, path, body, Authorization=f"Bearer {token}")

    of_b = await asks("POST", "/drift-scans", hosts=["b"])
    assert of_b.json() == {"hosts": ["b"]}
    assert (await asks("POST", "/drift-scans", {"host": "a"}, hosts=["b"])).status_code == 404
    for body in (None, {"host": "a"}):
        refused = await asks("POST", "/drift-scans", body, labels={"tier": "db"})
        assert refused.status_code == 403
    assert (await asks("GET", "/drift-scans?host=a", hosts=["b"])).status_code == 404
    assert (await asks("GET", "/drifts?host=a", hosts=["b"])).status_code == 404
    assert (await asks("GET", "/hosts/a", labels={"tier": "db"})).json()["drift"] is None
    with Store.open(api.container.settings.database_url) as store:
        store.vms.set_labels(VM, {"tier": "db"})
    mine = await asks("GET", "/drifts", labels={"tier": "db"})
    assert [drift["vm"] for drift in mine.json()["items"]] == [str(VM)]
    assert (await asks("GET", "/drifts", labels={"tier": "web"})).json()["items"] == []


async def test_what_is_left_of_old_samples_is_told(api: Api) -> None:
    with Store.open(api.container.settings.database_url) as store:
        record = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="b")
        store.migrations.add_samples(record.id, make_samples(60))
        store.migrations.update(record.id, state=MigrationState.CANCELLED)
        path = f"/migrations/{record.id}"
        page = await api.get(f"{path}/samples")
        assert (len(page["items"]), page["kept"], page["thinned_s"]) == (60, "whole", None)
        store.retention.thin(1, 10)
        page = await api.get(f"{path}/samples")
        assert (len(page["items"]) < 60, page["kept"], page["thinned_s"]) == (True, "thinned", 10)
        store.retention.drop(1)
    page = await api.get(f"{path}/samples")
    assert (page["items"], page["kept"]) == ([], "dropped")
    assert (await api.get(path))["samples_kept"] == "dropped"
