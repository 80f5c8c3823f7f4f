"""Hosts and VMs: live facts, what silent hosts leave out, labels, assignments, readings."""

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import make_url

from tests.support.served.api import Api, running_api
from tests.support.simulated.fakes import VM, fake_qemu
from vmtune.model.migration.record import MigrationState
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.storage import Store
from vmtune.storage.tables.core import VERSION_TABLE


def other_vm_on_b(api: Api) -> None:
    """Host b has a VM of its own, and nothing arrives there."""
    other = fake_qemu(uuid=uuid4(), name="vm-on-b")
    api.drivers["b"].fakes = {Path("/fake/b/other.sock"): other}


async def test_health_says_how_the_service_is(api: Api) -> None:
    health = await api.get("/health")
    assert health["status"] == "ok"
    assert (health["hosts"], health["jobs_running"]) == (2, 0)
    assert health["schema_revision"]


async def test_health_says_why_nothing_can_be_written(api: Api) -> None:
    """Reads go on meanwhile."""
    assert (await api.get("/health"))["problems"] == []
    path = str(make_url(api.container.settings.database_url).database)
    with closing(sqlite3.connect(path)) as other:
        other.execute(
            f"CREATE TRIGGER full BEFORE UPDATE ON {VERSION_TABLE} "
            "BEGIN SELECT RAISE(ABORT, 'no space'); END"
        )
        other.commit()
        health = await api.get("/health")
        other.execute("DROP TRIGGER full")
        other.commit()
    assert health["status"] == "degraded"
    assert [problem["field"] for problem in health["problems"]] == ["database"]
    assert health["problems"][0]["remedy"]
    assert (await api.get("/health"))["status"] == "ok"


async def test_a_host_is_added_seen_and_removed(tmp_path: Path) -> None:
    async with running_api(tmp_path, hosts=()) as api:
        response = await api.send("POST", "/hosts", {"name": "a", "uri": "qmp+unix:///fake/a"})
        assert (response.status_code, response.headers["location"]) == (201, "/api/v1/hosts/a")
        shown = await api.get("/hosts/a")
        assert shown["facts"]["hostname"] == "a"
        assert shown["facts"]["connection"] == "qmp"
        assert shown["problems"] == []
        assert [h["name"] for h in (await api.get("/hosts"))["items"]] == ["a"]
        await api.ask("DELETE", "/hosts/a", expect=204)
        assert await api.refused("GET", "/hosts/a", status=404) == [("host", "not_found")]
        await api.refused("DELETE", "/hosts/a", status=404)


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({"name": "A", "uri": "qemu:///system"}, 422, ("name", "invalid_input")),
        ({"name": "c", "uri": "http://x"}, 422, ("uri", "invalid_input")),
        ({"name": "c", "uri": 3}, 422, ("uri", "invalid_value")),
        ({"name": "c"}, 422, ("uri", "missing")),
        (
            {"name": "c", "uri": "qemu:///system", "migration_adress": "x"},
            422,
            ("migration_adress", "unknown_field"),
        ),
        ({"name": "a", "uri": "qmp+unix:///fake/a"}, 409, ("name", "duplicate_name")),
    ],
)
async def test_a_bad_host_is_refused(
    api: Api, body: object, status: int, problem: tuple[str, str]
) -> None:
    assert await api.refused("POST", "/hosts", body, status=status) == [problem]
    assert len((await api.get("/hosts"))["items"]) == 2


async def test_the_addresses_of_a_host_are_changed(api: Api) -> None:
    address = {"migrate_uri": "tcp://{host}.migration.example", "listen_address": "10.0.0.2"}
    changed = await api.ask("PATCH", "/hosts/b", address, expect=200)
    assert {name: changed[name] for name in address} == address
    assert changed["disks_uri"] == ""
    changed = await api.ask("PATCH", "/hosts/b", {"listen_address": ""}, expect=200)
    assert (changed["migrate_uri"], changed["listen_address"]) == (address["migrate_uri"], "")
    shown = await api.get("/hosts/b")
    assert shown["migrate_uri"] == address["migrate_uri"]
    assert (await api.get("/hosts/a"))["migrate_uri"] == ""


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"migrate_uri": "10.0.0.2"}, ("migrate_uri", "invalid_value")),
        ({"migrate_uri": "tcp://10.0.0.300"}, ("migrate_uri", "invalid_value")),
        ({"migrate_uri": "tcp://{guest}"}, ("migrate_uri", "invalid_value")),
        ({"listen_address": "[fd00::2]"}, ("listen_address", "invalid_value")),
        ({"disks_uri": "tcp://10.0.0.2"}, ("disks_uri", "needs_libvirt")),
        ({}, ("migrate_uri", "invalid_input")),
    ],
)
async def test_an_address_that_cannot_be_is_refused(
    api: Api, body: object, problem: tuple[str, str]
) -> None:
    assert await api.refused("PATCH", "/hosts/b", body, status=422) == [problem]
    new = {"name": "c", "uri": "qmp+unix:///fake/c"}
    if body:
        assert await api.refused("POST", "/hosts", {**new, **body}, status=422) == [problem]  # type: ignore[dict-item]  # on purpose


async def test_a_plan_has_the_destinations_addresses_unless_the_profile_has_its_own(
    api: Api,
) -> None:
    body = {"migrate_uri": "tcp://{host}.example", "listen_address": "10.0.0.2"}
    await api.ask("PATCH", "/hosts/b", body, expect=200)

    async def wanted(**values: object) -> dict[str, str]:
        order = {"destination": "b", "values": values}
        plan = await api.ask("POST", f"/vms/{VM}/plan", order, expect=200)
        return {item["tunable"]: item["wanted"]["value"] for item in plan["items"]}

    assert await wanted() == {"migrate_uri": "tcp://b.example", "listen_address": "10.0.0.2"}
    own = await wanted(listen_address="{hostname}.example")
    assert own == {"migrate_uri": "tcp://b.example", "listen_address": "b.example"}
    without = await api.ask("POST", f"/vms/{VM}/plan", {}, expect=200)
    assert without["items"] == []


async def test_an_unreachable_host_is_not_remembered(tmp_path: Path) -> None:
    async with running_api(tmp_path, hosts=()) as api:
        api.drivers["a"].reachable = False
        body = {"name": "a", "uri": "qmp+unix:///fake/a"}
        assert await api.refused("POST", "/hosts", body, status=424) == [
            ("uri", "host_unreachable")
        ]
        assert (await api.get("/hosts"))["items"] == []


async def test_a_silent_host_is_shown_with_its_problem(api: Api) -> None:
    api.drivers["b"].reachable = False
    shown = await api.get("/hosts/b")
    assert shown["facts"] is None
    assert [p["code"] for p in shown["problems"]] == ["host_unreachable"]
    listed = await api.get("/vms")
    assert [(vm["host"], vm["state"]) for vm in listed["items"]] == [("a", "running")]
    assert [(p["field"], p["code"]) for p in listed["problems"]] == [
        ("hosts.b", "host_unreachable")
    ]
    assert (await api.get("/vms?host=b"))["problems"] == listed["problems"]
    assert (await api.get("/hosts/b/vms"))["items"] == []


async def test_vms_of_a_silent_host_are_listed_as_last_seen(api: Api) -> None:
    (seen,) = (await api.get("/vms?host=a"))["items"]
    assert seen["unreachable"] is None
    api.drivers["a"].reachable = False
    await asyncio.sleep(0.3)  # a list of hosts' answers is given again for 0.2 s
    (kept,) = (await api.get("/vms?host=a"))["items"]
    assert (kept["uuid"], kept["name"], kept["state"]) == (seen["uuid"], seen["name"], "unknown")
    assert kept["unreachable"]["reason"] == "the fake host cannot be reached"
    assert kept["unreachable"]["since"] >= kept["unreachable"]["answered_at"]
    host = next(each for each in (await api.get("/hosts"))["items"] if each["name"] == "a")
    assert (host["state"], host["vm_count"]) == ("unreachable", 1)
    assert (await api.get("/vms?state=unknown"))["items"] == [kept]
    api.drivers["a"].reachable = True
    await asyncio.sleep(0.3)
    (back,) = (await api.get("/vms?host=a"))["items"]
    assert back == seen


async def test_vms_and_hosts_are_searched_and_sorted(api: Api) -> None:
    other_vm_on_b(api)
    everything = (await api.get("/vms"))["items"]
    name, uuid = everything[0]["name"], everything[0]["uuid"]
    found = (await api.get(f"/vms?search={name[1:].upper()}"))["items"]
    assert everything[0] in found
    assert everything[0] in (await api.get(f"/vms?search={uuid[:8]}"))["items"]
    assert (await api.get("/vms?search=no-such"))["items"] == []
    backwards = (await api.get("/vms?sort=-host"))["items"]
    assert [vm["host"] for vm in backwards] == ["b", "a"]
    first = await api.get("/vms?sort=-host&limit=1")
    rest = await api.get(f"/vms?sort=-host&limit=1&after={first['next']}")
    assert first["items"] + rest["items"] == backwards
    await api.refused("GET", f"/vms?sort=host&after={first['next']}", status=422)
    assert [host["name"] for host in (await api.get("/hosts?search=B"))["items"]] == ["b"]


async def test_a_host_in_maintenance_says_so(api: Api) -> None:
    begun = await api.ask("PUT", "/hosts/b/maintenance", {"on": True})
    assert begun["maintenance_since"] is not None
    again = await api.ask("PUT", "/hosts/b/maintenance", {"on": True})
    assert again["maintenance_since"] == begun["maintenance_since"]
    vm = (await api.get("/vms?host=a"))["items"][0]["uuid"]
    planned = await api.post(f"/vms/{vm}/plan", {"destination": "b"}, 200)
    assert "host_in_maintenance" in [each["code"] for each in planned["findings"]]
    ended = await api.ask("PUT", "/hosts/b/maintenance", {"on": False})
    assert ended["maintenance_since"] is None


async def test_vms_are_filtered_and_paged(api: Api) -> None:
    other_vm_on_b(api)
    everything = (await api.get("/vms"))["items"]
    assert [(vm["host"], vm["name"]) for vm in everything] == [("a", "vm"), ("b", "vm-on-b")]
    assert (await api.get("/vms?host=a"))["items"] == everything[:1]
    assert (await api.get("/hosts/a/vms"))["items"] == everything[:1]
    assert (await api.get("/vms?state=running"))["items"] == everything
    assert (await api.get("/vms?state=incoming"))["items"] == []
    assert (await api.get("/vms?name=other"))["items"] == []
    first = await api.get("/vms?limit=1")
    second = await api.get(f"/vms?limit=1&after={first['next']}")
    assert first["items"] + second["items"] == everything
    assert second["next"] is None
    assert await api.refused("GET", "/vms?label=tier", status=422) == [("label", "invalid_input")]
    assert await api.refused("GET", "/vms?state=up", status=422) == [("state", "not_a_choice")]
    assert await api.refused("GET", "/vms?host=x", status=404) == [("host", "not_found")]


async def test_labels_are_replaced_and_filter(api: Api) -> None:
    await api.get("/vms")  # a VM is known once it was listed
    body = {"labels": {"tier": "db", "zone": "a"}}
    put = await api.ask("PUT", f"/vms/{VM}/labels", body)
    assert put["labels"] == body["labels"]
    assert len((await api.get("/vms?label=tier=db&label=zone=a"))["items"]) == 1
    assert (await api.get("/vms?label=tier=web"))["items"] == []
    assert (await api.get(f"/vms/{VM}"))["labels"] == body["labels"]
    bad = {"labels": {"tier": "d b"}}
    refused = await api.refused("PUT", f"/vms/{VM}/labels", bad, status=422)
    assert refused == [("labels.tier", "invalid_input")]
    unknown = await api.refused("PUT", f"/vms/{uuid4()}/labels", body, status=404)
    assert unknown == [("vm", "not_found")]
    assert (await api.get(f"/vms/{VM}"))["labels"] == body["labels"]


async def test_a_vm_that_was_never_listed_is_labelled(api: Api) -> None:
    put = await api.ask("PUT", f"/vms/{VM}/labels", {"labels": {"tier": "db"}})
    assert put["labels"] == {"tier": "db"}
    assert (await api.get("/vms?label=tier=db"))["items"]


async def test_a_plan_of_values_that_no_profile_has_yet(api: Api) -> None:
    await api.profile("p", multifd=True)
    await api.post("/assignments", {"target": "vm", "key": str(VM), "profile": "p"})
    order = {"values": {"downtime_limit_ms": 450}, "without_profile": True}
    plan = await api.ask("POST", f"/vms/{VM}/plan", order)
    assert (plan["profile"], plan["revision"]) == (None, None)
    assert [item["tunable"] for item in plan["items"]] == ["downtime_limit_ms"]
    both = await api.refused("POST", f"/vms/{VM}/plan", {**order, "profile": "p"}, status=422)
    assert both == [("without_profile", "contradiction")]
    bad = {"values": {"downtime_limit_ms": "3MiB"}, "without_profile": True}
    refused = await api.refused("POST", f"/vms/{VM}/plan", bad, status=422)
    assert refused == [("values.downtime_limit_ms", "invalid_value")]


async def test_a_vm_is_shown_with_its_readings(api: Api) -> None:
    vm = await api.get(f"/vms/{VM}")
    assert (vm["host"], vm["state"], vm["qemu_version"]) == ("a", "running", "10.0.2")
    downtime = vm["readings"]["downtime_limit_ms"]
    assert (downtime["value"], downtime["text"]) == (300, "300 ms")
    assert all(r["why_unknown"] for r in vm["readings"].values() if r["value"] is None)


async def test_effective_has_every_tunable(api: Api) -> None:
    shown = await api.get(f"/vms/{VM}/effective")
    assert list(shown["readings"]) == list(BUILT_IN)
    assert shown["readings"]["vm_max_map_count"]["value"] == 1 << 20
    for reading in shown["readings"].values():
        assert (reading["value"] is None) == bool(reading["why_unknown"])


async def test_explain_says_which_assignment_wins(api: Api) -> None:
    nothing = await api.get(f"/vms/{VM}/explain")
    assert nothing["winner"] is None
    await api.profile("p")
    await api.profile("q")
    await api.post("/assignments", {"target": "default", "profile": "p"})
    await api.post("/assignments", {"target": "host", "key": "a", "profile": "q"})
    explained = await api.get(f"/vms/{VM}/explain")
    assert (explained["host"], explained["winner"]["profile"]) == ("a", "q")
    assert [c["target"] for c in explained["candidates"]] == ["host", "default"]
    assert "q" in explained["reason"]


@pytest.mark.parametrize("path", ["", "/explain", "/effective"])
async def test_a_vm_that_is_gone_or_unseen(api: Api, path: str) -> None:
    assert await api.refused("GET", f"/vms/{uuid4()}{path}", status=404) == [("vm", "not_found")]
    assert await api.refused("GET", f"/vms/7{path}", status=422) == [("vm", "invalid_value")]


@pytest.mark.parametrize("path", ["", "/explain", "/effective"])
async def test_a_vm_whose_hosts_are_silent_is_not_called_gone(api: Api, path: str) -> None:
    for driver in api.drivers.values():
        driver.reachable = False
    refused = await api.refused("GET", f"/vms/{VM}{path}", status=424)
    assert [code for _, code in refused] == ["host_unreachable"]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/explain"), ("GET", ""), ("POST", "/verify"), ("POST", "/plan")]
)
async def test_of_a_silent_hosts_vm_is_told_which_host_since_when_and_what_to_do(
    api: Api, method: str, path: str
) -> None:
    await api.profile("p")
    await api.post("/assignments", {"target": "default", "profile": "p"})
    other_vm_on_b(api)
    api.drivers["a"].reachable = False
    problems = []
    for _ in range(2):
        answer = await api.send(method, f"/vms/{VM}{path}")
        assert answer.status_code == 424
        (problem,) = answer.json()["errors"]
        problems.append(problem)
    assert problems[0] == problems[1], "it is silent since the first time"
    assert (problem["field"], problem["code"]) == ("host", "host_unreachable")
    said = r"a does not answer since [-0-9]{10} [:0-9]{8} UTC: the fake host cannot be reached"
    assert re.fullmatch(said, problem["message"])
    assert "vmtune host check a" in problem["remedy"]
    hosts = (await api.get("/hosts"))["items"]
    assert next(each for each in hosts if each["name"] == "a")["state"] == "unreachable"


async def test_a_vm_that_arrives_elsewhere_is_listed_once_where_it_runs(api: Api) -> None:
    """Its other place is shown to who asks for that host, or for what arrives."""
    both = {each["uuid"]: each for each in (await api.get("/hosts/b/vms"))["items"]}
    assert both[str(VM)]["state"] == "incoming"
    assert [(vm["host"], vm["state"]) for vm in (await api.get("/vms"))["items"]] == [
        ("a", "running")
    ]
    (there,) = (await api.get("/vms?host=b"))["items"]
    (arrives,) = (await api.get("/vms?state=incoming"))["items"]
    assert there["host"] == arrives["host"] == "b"


async def test_of_a_vm_that_migrates_is_told_where_its_migration_stands(api: Api) -> None:
    """In post-copy that is paused its host may call it running, and it stops all the same."""
    paused = MigrationState.POSTCOPY_PAUSED
    with Store.open(api.container.settings.database_url) as store:
        begun = store.migrations.begin(
            vm=VM, vm_name="web1", source="a", destination="b", state=paused
        )
    (row,) = (await api.get("/vms"))["items"]
    for shown in (row, await api.get(f"/vms/{VM}")):
        assert (shown["migration"], shown["migration_state"]) == (str(begun.id), paused)


async def test_a_taken_monitor_is_told(api: Api) -> None:
    api.source.taken = True
    refused = await api.refused("GET", f"/vms/{VM}", status=409)
    assert [code for _, code in refused] == ["monitor_busy"]


async def test_assignments(api: Api) -> None:
    await api.profile("p")
    response = await api.send(
        "POST", "/assignments", {"target": "selector", "key": "zone=a,tier=db", "profile": "p"}
    )
    made = response.json()
    assert response.headers["location"] == f"/api/v1/assignments/{made['id']}"
    assert made["key"] == "tier=db,zone=a"
    assert await api.get(f"/assignments/{made['id']}") == made
    assert (await api.get("/assignments?profile=p"))["items"] == [made]
    assert (await api.get("/assignments?profile=q"))["items"] == []
    await api.ask("DELETE", f"/assignments/{made['id']}", expect=204)
    await api.refused("GET", f"/assignments/{made['id']}", status=404)
    await api.refused("DELETE", f"/assignments/{made['id']}", status=404)


@pytest.mark.parametrize(
    ("body", "status", "problem"),
    [
        ({"target": "vm", "key": "7", "profile": "p"}, 422, ("key", "invalid_input")),
        ({"target": "vms", "key": "7", "profile": "p"}, 422, ("target", "not_a_choice")),
        ({"target": "selector", "key": "x", "profile": "p"}, 422, ("key", "invalid_input")),
        ({"target": "default", "key": "x", "profile": "p"}, 422, ("key", "invalid_input")),
        ({"target": "host", "key": "x", "profile": "p"}, 404, ("host", "not_found")),
        ({"target": "default", "profile": "x"}, 404, ("profile", "not_found")),
        ({"target": "host", "key": "b", "profile": "p"}, 409, ("key", "duplicate_name")),
        (
            {"target": "selector", "key": "tier=web", "profile": "q"},
            409,
            ("key", "tied_assignments"),
        ),
    ],
)
async def test_a_bad_assignment_is_refused(
    api: Api, body: object, status: int, problem: tuple[str, str]
) -> None:
    await api.profile("p")
    await api.profile("q")
    await api.post("/assignments", {"target": "host", "key": "b", "profile": "p"})
    await api.post("/assignments", {"target": "selector", "key": "zone=a", "profile": "p"})
    assert await api.refused("POST", "/assignments", body, status=status) == [problem]
    assert len((await api.get("/assignments"))["items"]) == 2


async def test_the_table_of_tunables(api: Api) -> None:
    rows = (await api.get("/tunables"))["items"]
    assert [row["name"] for row in rows] == list(BUILT_IN)
    one = await api.get("/tunables/max_bandwidth_bytes_per_s")
    assert one["unit"] == "bytes_per_s"
    assert one["qmp"] == {"kind": "parameter", "name": "max-bandwidth"}
    assert one["libvirt"]["name"]
    multifd = await api.get("/tunables/multifd")
    assert multifd["default"] == {"value": False, "text": "off"}
    live = (await api.get("/tunables?route=live"))["items"]
    assert live and all(row["route"] == "live" for row in live)
    first = await api.get("/tunables?limit=3")
    assert first["items"] == rows[:3]
    assert (await api.get(f"/tunables?limit=3&after={first['next']}"))["items"] == rows[3:6]
    refused = await api.send("GET", "/tunables/multifdd")
    assert refused.status_code == 404
    assert "multifd" in refused.json()["errors"][0]["remedy"]
