"""Plans, applications, verifications and migrations, over fake QEMUs."""

import asyncio
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.served.api import Api, running_api
from tests.support.simulated.fakes import VM
from vmtune.model.migration.record import QemuStatus
from vmtune.testing.fake.qemu import Fault, FaultKind

MIGRATE = {"vm": str(VM), "destination": "b"}


async def test_a_plan_shows_wanted_current_and_route(api: Api) -> None:
    await api.profile(downtime_limit_ms=700, multifd=True)
    plan = await api.post(f"/vms/{VM}/plan", {"profile": "p"}, expect=200)
    items = {item["tunable"]: item for item in plan["items"]}
    downtime = items["downtime_limit_ms"]
    assert downtime["wanted"] == {"value": 700, "text": "700 ms"}
    assert (downtime["current"]["value"], downtime["differs"]) == (300, True)
    assert items["multifd"]["route"] == "migrate"
    assert (plan["clean"], plan["blockers"], plan["destination"]) == (False, [], None)
    assert (plan["profile"], plan["revision"]) == ("p", 1)


async def test_a_plan_without_body_takes_the_assigned_profile(api: Api) -> None:
    untuned = await api.post(f"/vms/{VM}/plan", expect=200)
    assert (untuned["profile"], untuned["revision"], untuned["clean"]) == (None, None, True)
    await api.profile(downtime_limit_ms=700)
    await api.post("/assignments", {"target": "default", "profile": "p"})
    assert (await api.post(f"/vms/{VM}/plan", expect=200))["profile"] == "p"


async def test_a_blocker_is_shown_with_evidence_and_stops_an_application(api: Api) -> None:
    await api.profile(dirty_limit=True)
    plan = await api.post(f"/vms/{VM}/plan", {"profile": "p"}, expect=200)
    assert plan["blockers"] == ["dirty_limit_needs_ring"]
    (finding,) = plan["findings"]
    assert (finding["severity"], finding["tunable"]) == ("blocker", "dirty_limit")
    assert finding["remedy"]
    assert finding["evidence"]
    path, body = f"/vms/{VM}/applications", {"profile": "p"}
    refused = await api.refused("POST", path, body, status=409)
    assert refused == [("values.dirty_limit", "dirty_limit_needs_ring")]
    assert (await api.get("/applications"))["items"] == []


async def test_a_tunable_that_qemu_is_too_old_for(tmp_path: Path) -> None:
    async with running_api(tmp_path, version="7.2.22") as api:
        await api.profile(avail_switchover_bandwidth_bytes_per_s="1Gi")
        refused = await api.refused("POST", f"/vms/{VM}/applications", {"profile": "p"}, status=409)
        assert refused == [("values.avail_switchover_bandwidth_bytes_per_s", "not_offered_by_qemu")]


async def test_apply_verify_revert(api: Api) -> None:
    await api.profile(downtime_limit_ms=700)
    response = await api.send("POST", f"/vms/{VM}/applications", {"profile": "p"})
    assert response.status_code == 201
    made = response.json()
    assert response.headers["location"] == f"/api/v1/applications/{made['id']}"
    assert (made["state"], made["values"], made["texts"]) == (
        "applied",
        {"downtime_limit_ms": 700},
        {"downtime_limit_ms": "700 ms"},
    )
    (outcome,) = made["outcomes"]
    assert (outcome["status"], outcome["seen"]["value"]) == ("effective", 700)
    assert "journal" not in made
    verified = await api.post(f"/vms/{VM}/verify", expect=200)
    assert (verified["clean"], verified["application"]) == (True, made["id"])
    api.source.parameters["downtime-limit"] = 5
    drifted = await api.post(f"/vms/{VM}/verify", expect=200)
    assert (drifted["clean"], drifted["outcomes"][0]["status"]) == (False, "overwritten")
    reverted = await api.post(f"/applications/{made['id']}/revert", expect=200)
    assert reverted["state"] == "reverted"
    assert api.source.parameters["downtime-limit"] == 300
    again = await api.refused("POST", f"/applications/{made['id']}/revert", status=409)
    assert again == [("application", "not_applied")]
    assert (await api.get(f"/applications/{made['id']}"))["state"] == "reverted"


async def test_applications_are_filtered(api: Api) -> None:
    await api.profile(downtime_limit_ms=700)
    for _ in range(3):
        await api.post(f"/vms/{VM}/applications", {"profile": "p"})
    everything = (await api.get("/applications"))["items"]
    assert len(everything) == 3
    assert everything == sorted(everything, key=lambda a: a["created_at"], reverse=True)
    assert (await api.get(f"/applications?vm={VM}&host=a&state=applied"))["items"] == everything
    assert (await api.get("/applications?host=b"))["items"] == []
    assert (await api.get("/applications?state=failed"))["items"] == []
    first = await api.get("/applications?limit=2")
    rest = await api.get(f"/applications?limit=2&after={first['next']}")
    assert first["items"] + rest["items"] == everything
    await api.refused("GET", f"/applications/{uuid4()}", status=404)
    await api.refused("POST", f"/applications/{uuid4()}/revert", status=404)
    await api.refused("GET", "/applications?state=done", status=422)


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({"profile": "x"}, 404, ("profile", "not_found")),
        ({"profile": "p", "revision": 9}, 404, ("revision", "not_found")),
        ({"profile": "p", "revision": 0}, 422, ("revision", "invalid_value")),
        ({"profile": "p", "revision": "1"}, 422, ("revision", "invalid_value")),
        ({"revision": 1}, 422, ("revision", "invalid_input")),
        ({}, 422, ("profile", "no_profile")),
        ({"profile": "p", "best_efort": True}, 422, ("best_efort", "unknown_field")),
        ({"profile": "p", "best_effort": 1}, 422, ("best_effort", "invalid_value")),
    ],
)
async def test_a_bad_application_is_refused(
    api: Api, body: object, status: int, problem: tuple[str, str]
) -> None:
    await api.profile(downtime_limit_ms=700)
    assert await api.refused("POST", f"/vms/{VM}/applications", body, status=status) == [problem]
    assert (await api.get("/applications"))["items"] == []
    assert api.source.parameters["downtime-limit"] == 300


async def test_a_refusal_half_way_is_recorded_and_put_back(api: Api) -> None:
    await api.profile(downtime_limit_ms=700, iothread_poll_max_ns=1000)
    api.source.faults.append(Fault(FaultKind.REFUSE, "qom-set"))
    made = await api.post(f"/vms/{VM}/applications", {"profile": "p"})
    assert made["state"] == "failed"
    assert "refused by the test" in made["problems"][0]["message"]
    assert api.source.parameters["downtime-limit"] == 300


async def test_verify_needs_something_to_verify(api: Api) -> None:
    assert await api.refused("POST", f"/vms/{VM}/verify", status=404) == [("vm", "not_found")]


async def test_a_migration_from_post_to_samples(api: Api) -> None:
    await api.profile(multifd=True, multifd_channels=4)
    response = await api.send("POST", "/migrations", {**MIGRATE, "profile": "p"})
    assert response.status_code == 202
    started = response.json()
    assert response.headers["location"] == f"/api/v1/migrations/{started['id']}"
    assert (started["ended"], started["source"], started["destination"]) == (False, "a", "b")
    done = await api.ended(started["id"])
    assert (done["state"], done["ended"], done["failure"]) == ("completed", True, "")
    assert done["totals"]["total_time_ms"] > 0
    assert {o["tunable"]: o["status"] for o in done["outcomes"]} == {
        "multifd": "effective",
        "multifd_channels": "effective",
    }
    samples = (await api.get(f"/migrations/{started['id']}/samples"))["items"]
    assert samples
    assert samples[-1]["transferred_bytes"] >= samples[0]["transferred_bytes"]
    pages, after = [], ""
    while after is not None:
        page = await api.get(f"/migrations/{started['id']}/samples?limit=2{after}")
        pages += page["items"]
        after = f"&after={page['next']}" if page["next"] else None
    assert pages == samples
    middle = samples[len(samples) // 2]["at_ms"]
    later = await api.get(f"/migrations/{started['id']}/samples?later_than_ms={middle}")
    assert later["items"] == [each for each in samples if each["at_ms"] > middle]
    assert later["next"] is None


async def test_migrations_are_filtered_newest_first(api: Api) -> None:
    started = await api.post("/migrations", MIGRATE, expect=202)
    await api.ended(started["id"])
    for query in ("", f"?vm={VM}", "?host=a", "?host=b", "?state=completed"):
        assert [m["id"] for m in (await api.get(f"/migrations{query}"))["items"]] == [started["id"]]
    for query in ("?profile=p", "?state=failed", "?host=c", f"?vm={uuid4()}"):
        assert (await api.get(f"/migrations{query}"))["items"] == []
    assert (await api.get("/health"))["jobs_running"] == 0


@pytest.mark.parametrize(
    ("change", "status", "problem"),
    [
        ({"destination": "a"}, 422, ("destination", "destination_is_source")),
        ({"destination": "x"}, 404, ("host", "not_found")),
        ({"vm": str(uuid4())}, 404, ("vm", "not_found")),
        ({"vm": 7}, 422, ("vm", "invalid_value")),
        ({"profile": "x"}, 404, ("profile", "not_found")),
        ({"overrides": ["nope"]}, 422, ("overrides.0", "unknown_code")),
        ({"overrides": ["copy_onto_itself"]}, 422, ("overrides.0", "final_code")),
        ({"overrides": "nope"}, 422, ("overrides", "invalid_value")),
        ({"dest": "b"}, 422, ("dest", "unknown_field")),
    ],
)
async def test_a_bad_migration_is_refused(
    api: Api, change: dict[str, object], status: int, problem: tuple[str, str]
) -> None:
    refused = await api.refused("POST", "/migrations", {**MIGRATE, **change}, status=status)
    assert refused == [problem]
    assert (await api.get("/migrations"))["items"] == []


async def test_an_unreachable_destination_refuses_the_migration(api: Api) -> None:
    api.drivers["b"].reachable = False
    refused = await api.refused("POST", "/migrations", MIGRATE, status=424)
    assert [code for _, code in refused] == ["host_unreachable"]
    assert (await api.get("/migrations"))["items"] == []


async def test_blockers_are_overridden_by_name(api: Api) -> None:
    await api.profile(dirty_limit=True)
    body = {**MIGRATE, "profile": "p"}
    refused = await api.refused("POST", "/migrations", body, status=409)
    assert refused == [("values.dirty_limit", "dirty_limit_needs_ring")]
    body["overrides"] = ["dirty_limit_needs_ring"]  # type: ignore[assignment]  # JSON
    started = await api.post("/migrations", body, expect=202)
    assert started["overrides"] == ["dirty_limit_needs_ring"]
    assert (await api.ended(started["id"]))["state"] == "completed"


async def _active(api: Api, migration: str) -> None:
    async with asyncio.timeout(60):
        while (await api.get(f"/migrations/{migration}"))["state"] != "active":
            if api.source.outgoing.status is QemuStatus.SETUP:  # and no further, until it is seen
                api.source.step()
            await asyncio.sleep(0.01)


async def test_one_operation_at_a_time_and_abort(tmp_path: Path) -> None:
    async with running_api(tmp_path, paced=True) as api:
        await api.profile(downtime_limit_ms=700)
        started = await api.post("/migrations", MIGRATE, expect=202)
        await _active(api, started["id"])
        assert (await api.get("/health"))["jobs_running"] == 1
        again = await api.refused("POST", "/migrations", MIGRATE, status=409)
        applied = await api.refused("POST", f"/vms/{VM}/applications", {"profile": "p"}, status=409)
        assert {code for _, code in (*again, *applied)} <= {
            "migration_active",
            "operation_in_progress",
        }
        host = await api.refused("DELETE", "/hosts/a", status=409)
        assert host == [("name", "host_in_use")]
        asked = await api.ask("DELETE", f"/migrations/{started['id']}", expect=202)
        assert asked["abort"] == "requested"
        api.source.step()
        done = await api.ended(started["id"])
        assert (done["state"], done["abort"]) == ("cancelled", "aborted")
        late = await api.refused("DELETE", f"/migrations/{started['id']}", status=409)
        assert late == [("migration", "too_late")]
        await api.refused("DELETE", f"/migrations/{uuid4()}", status=404)
