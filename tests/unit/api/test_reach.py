"""Who is restricted to some hosts or VMs neither sees nor touches others, on any route."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.routing import APIRoute

from tests.support.served.api import PREFIX, Api, admin_token, running_api
from tests.support.simulated.fakes import VM
from tests.unit.api.test_route_scopes import ROUTES
from vmtune.forecast.held import Figures, Happened, KeptForecast
from vmtune.model.access.scopes import EVERYTHING, NOBODY, Identity, Kind, Reach, Rights
from vmtune.model.evacuation.evacuation import EvacuationState, EvacuationVm, EvacuationVmState
from vmtune.model.host.inventory import Event, EventTopic
from vmtune.model.migration.forecast_basis import Basis
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.outcome import ApplicationState
from vmtune.model.profile import Target
from vmtune.services.events import Progress
from vmtune.storage import Store

SHARED = (
    "/profiles",
    "/profile-templates",
    "/tunables",
    "/reference",
    "/scenarios",
    "/run-metrics",
    "/qemus",
)
"""What every reader sees: it names no host and no VM."""
OWN = ("/health", "/live", "/session", "/events")
"""What is about who asks, or tested below."""
EVERYWHERE = ("/runs", "/campaigns", "/studies", "/environments", "/comparisons", "/history",
              "/changes",
              "/schedules", "/audit",
              "/hooks", "/services", "/webhooks", "/measured-scenarios", "/browsers",
              "/metrics")  # fmt: skip
"""What is about everything, and so for nobody who is restricted."""
MISSING = uuid4()
BODIES: dict[tuple[str, str], Any] = {
    ("PUT", "/hosts/{name}/limits"): {"values": {"vm_max_map_count": 262144}},
    ("PATCH", "/hosts/{name}"): {"listen_address": "10.0.0.2"},
    ("PUT", "/hosts/{name}/owner"): {"service": "other"},
    ("PUT", "/hosts/{name}/maintenance"): {"on": True},
    ("PUT", "/vms/{vm}/labels"): {"labels": {}},
    ("POST", "/vms/{vm}/plan"): {},
    ("POST", "/vms/{vm}/applications"): {},
    ("PATCH", "/migrations/{migration}"): {"values": {}},
    ("POST", "/hosts/{name}/evacuations"): {},
    ("POST", "/hosts/{name}/evacuations/plan"): {},
}


@dataclass
class Foreign:
    """Things on host a, the VM with the label tier=db among them."""

    api: Api
    application: UUID
    migration: UUID
    assignment: int
    token: str
    evacuation: UUID

    def filled(self, path: str, missing: bool = False) -> str:
        """*path* with the id of a thing there, or of one that is nowhere."""
        ids: dict[str, object] = {
            "vm": VM, "application": self.application, "migration": self.migration,
            "number": self.assignment, "token": self.token, "name": "a",
            "evacuation": self.evacuation, "webhook": MISSING,
        }  # fmt: skip
        if missing:
            ids = dict.fromkeys(ids, MISSING) | {"number": 99, "token": "none", "name": "none"}
        return re.sub(r"\{(\w+)\}", lambda match: str(ids[match[1]]), path)


@pytest.fixture
async def foreign(tmp_path: Path) -> AsyncIterator[Foreign]:
    async with running_api(tmp_path) as api:
        with Store.open(api.container.settings.database_url) as store:
            store.vms.remember_all("a", {VM: "guest"}, datetime.now(UTC))
            store.vms.set_labels(VM, {"tier": "db"})
            await api.profile("p", downtime_limit_ms=200)
            done = store.applications.begin(VM, "a", "p", 1, {}, False, [])
            store.applications.finish(done.id, ApplicationState.APPLIED)
            moved = store.migrations.begin(vm=VM, vm_name="vm", source="a", destination="c")
            store.migrations.update(moved.id, state=MigrationState.CANCELLED)
            now = datetime.now(UTC)
            store.forecasts.keep(moved.id, KeptForecast(Basis.BEFORE, now, Figures(ends=True)))
            store.forecasts.settle(moved.id, lambda _: Happened(None), now)
            leaving = EvacuationVm(VM, "vm", 1 << 30, 0, EvacuationVmState.NOT_PLACED)
            evacuated = store.evacuations.begin("a", [leaving])
            store.evacuations.enter(evacuated.id, EvacuationState.INCOMPLETE)
            assigned = store.assignments.add(Target.HOST, "a", "p")
        other = await api.post("/tokens", {"name": "other", "scopes": ["read"]})
        yield Foreign(api, done.id, moved.id, assigned.id, other["id"], evacuated.id)


async def restricted(foreign: Foreign, **reach: Any) -> dict[str, str]:
    token = await admin_token(foreign.api.container, **reach)
    return {"Authorization": f"Bearer {token}"}


OF_B = {"hosts": ["b"]}
OF_WEB = {"labels": {"tier": "web"}}
NARROW = [pytest.param(OF_B, id="host b"), pytest.param(OF_WEB, id="tier=web")]
CALLS = [
    (method, path.removeprefix(PREFIX))
    for path, route in ROUTES
    if isinstance(route, APIRoute)
    for method in sorted(route.methods or ())
]
LISTS = [path for method, path in CALLS if method == "GET" and "{" not in path]
ONE = [
    (method, path)
    for method, path in CALLS
    if "{" in path and not path.startswith((*SHARED, *EVERYWHERE))
]


def said(response: httpx.Response) -> Any:
    """What an answer says, without what is different each time."""
    found = {key: value for key, value in response.json().items() if key != "instance"}
    text = json.dumps(found)
    for id in (str(MISSING), "none"):
        text = text.replace(id, "ID")
    return text


@pytest.mark.parametrize("reach", NARROW)
async def test_one_thing_out_of_reach_is_as_if_it_were_not_there(
    foreign: Foreign, reach: dict[str, Any]
) -> None:
    api = foreign.api
    mine = await restricted(foreign, **reach)
    assert len(ONE) > 15
    for method, path in ONE:
        by_labels_only = reach is OF_WEB and path.startswith(("/hosts", "/assignments"))
        if by_labels_only and method == "GET":
            continue  # hosts have no labels, so all are seen
        body = BODIES.get((method, path))
        seen = await api.send(method, foreign.filled(path), body, **mine)
        if by_labels_only:
            assert seen.status_code in (403, 404), (method, path)
            continue
        assert seen.status_code == 404, (method, path, seen.text)
        nowhere = await api.send(method, foreign.filled(path, missing=True), body, **mine)
        for id in (VM, foreign.application, foreign.migration, foreign.token):
            seen._content = seen.content.replace(str(id).encode(), b"ID")
        theirs = said(seen).replace("named a", "named ID")
        theirs = re.sub(rf"number {foreign.assignment}\b", "number 99", theirs)
        if "/vms/{vm}" in path and path.startswith("/vms"):
            assert theirs == said(nowhere), (method, path)
        newest = (await api.get("/audit?limit=1"))["items"][0]
        assert newest["status"] == 404, (method, path)


@pytest.mark.parametrize("reach", NARROW)
async def test_lists_leave_out_what_is_out_of_reach(
    foreign: Foreign, reach: dict[str, Any]
) -> None:
    mine = await restricted(foreign, **reach)
    for path in LISTS:
        if path.startswith((*SHARED, *OWN)):
            continue
        asked = "/search?q=guest" if path == "/search" else path
        answer = await foreign.api.send("GET", asked, **mine)
        if path.startswith(EVERYWHERE):
            assert answer.status_code == 403, path
            continue
        assert answer.status_code == 200, (path, answer.text)
        if path == "/overview":
            for id in (VM, foreign.application, foreign.migration, foreign.evacuation):
                assert str(id) not in answer.text
            continue
        items = answer.json()["items"]
        if path == "/vms":  # a QEMU on b waits for the VM
            assert [vm["host"] for vm in items] == ([] if reach is OF_WEB else ["b"])
            continue
        for id in (VM, foreign.application, foreign.migration, foreign.token, "fake/a"):
            if not (path == "/hosts" and reach is OF_WEB):
                assert str(id) not in answer.text, path
        if path == "/drift-scans" and reach is OF_B:
            assert [scan["host"] for scan in items] == ["b"]
        elif path not in ("/hosts", "/tokens"):
            assert items == [], path
    assert (await foreign.api.send("GET", "/vms?host=a", **mine)).status_code in (
        200 if reach is OF_WEB else 404,
    )


def test_every_route_is_one_of_these() -> None:
    """A new one has to say what it shows to whom."""
    known = (
        "/hosts",
        "/vms",
        "/evacuations",
        "/applications",
        "/migrations",
        "/assignments",
        "/forecasts",
        "/tokens",
        "/drift",
        "/forecasts",
        "/overview",
        "/activity",
        "/search",
    )
    for method, path in CALLS:
        assert path.startswith((*SHARED, *OWN, *EVERYWHERE, *known)), (method, path)


@pytest.mark.parametrize(
    "reach",
    [{"hosts": ["a"]}, {"labels": {"tier": "db"}}, {"hosts": ["a", "b"], "labels": {"tier": "db"}}],
)
async def test_what_is_within_reach_is_there(foreign: Foreign, reach: dict[str, Any]) -> None:
    api, mine = foreign.api, await restricted(foreign, **reach)
    for path in (f"/vms/{VM}", f"/vms/{VM}/explain", f"/applications/{foreign.application}",
                 f"/migrations/{foreign.migration}", "/hosts/a", "/hosts/a/vms"):  # fmt: skip
        assert (await api.send("GET", path, **mine)).status_code == 200, path
    for path in ("/vms?state=running", "/applications", "/migrations"):
        assert len((await api.send("GET", path, **mine)).json()["items"]) == 1, path
    made = await api.send("POST", f"/vms/{VM}/applications", {"profile": "p"}, **mine)
    assert made.status_code == 201, made.text
    back = await api.send("POST", f"/applications/{made.json()['id']}/revert", **mine)
    assert back.status_code == 200, back.text
    seen = (await api.send("GET", "/assignments", **mine)).json()["items"]
    assert len(seen) == (reach.get("hosts") is not None and "labels" not in reach)


async def test_a_migration_takes_both_hosts(foreign: Foreign) -> None:
    api = foreign.api
    body = {"vm": str(VM), "destination": "b", "profile": "p"}
    of_a = await restricted(foreign, hosts=["a"])
    refused = await api.send("POST", "/migrations", body, **of_a)
    assert refused.status_code == 404
    assert "no host named b" in refused.text
    planned = await api.send("POST", f"/vms/{VM}/plan", {"destination": "b"}, **of_a)
    assert planned.status_code == 404
    of_both = await restricted(foreign, hosts=["a", "b"], labels={"tier": "db"})
    started = await api.send("POST", "/migrations", body, **of_both)
    assert started.status_code == 202, started.text
    async with asyncio.timeout(60):
        await api.jobs.wait(started.json()["id"])
    # It is the history of both hosts; the VM itself is on b now.
    for host, status in (("a", 404), ("b", 200)):
        mine = await restricted(foreign, hosts=[host])
        record = await api.send("GET", f"/migrations/{started.json()['id']}", **mine)
        assert record.status_code == 200
        assert (await api.send("GET", f"/vms/{VM}", **mine)).status_code == status


async def test_labels_are_not_for_those_whom_they_restrict(foreign: Foreign) -> None:
    api, body = foreign.api, {"labels": {"tier": "db", "zone": "1"}}
    of_db = await restricted(foreign, labels={"tier": "db"})
    refused = await api.send("PUT", f"/vms/{VM}/labels", body, **of_db)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (403, "out_of_reach")
    of_a = await restricted(foreign, hosts=["a"])
    assert (await api.send("PUT", f"/vms/{VM}/labels", body, **of_a)).status_code == 200


@pytest.mark.parametrize(
    ("reach", "allowed"),
    [
        ({"hosts": ["a"]}, [("vm", str(VM)), ("host", "a")]),
        ({"labels": {"tier": "db"}}, [("vm", str(VM)), ("selector", "tier=db,zone=1"),
                                      ("selector", "tier=db")]),
        ({"hosts": ["b"]}, [("host", "b")]),
        ({"hosts": ["a"], "labels": {"tier": "db"}}, [("vm", str(VM))]),
    ],
)  # fmt: skip
async def test_assignments_stay_within_reach(
    foreign: Foreign, reach: dict[str, Any], allowed: list[tuple[str, str]]
) -> None:
    api, mine = foreign.api, await restricted(foreign, **reach)
    await api.ask("DELETE", f"/assignments/{foreign.assignment}", expect=204)
    for target, key in (("vm", str(VM)), ("vm", "no uuid"), ("host", "a"), ("host", "b"),
                        ("selector", "tier=db"), ("selector", "tier=db,zone=1"),
                        ("selector", "zone=1"), ("default", "")):  # fmt: skip
        body = {"target": target, "key": key, "profile": "p"}
        made = await api.send("POST", "/assignments", body, **mine)
        if (target, key) in allowed:
            assert made.status_code == 201, (target, key, made.text)
            number = made.json()["id"]
            assert (await api.send("GET", f"/assignments/{number}", **mine)).status_code == 200
            gone = await api.send("DELETE", f"/assignments/{number}", **mine)
            assert gone.status_code == 204
        else:
            assert made.status_code in (403, 404, 422), (target, key)


async def test_events_are_told_to_those_within_reach(foreign: Foreign) -> None:
    guard = foreign.api.container.access.guard
    now = datetime.now(UTC)

    def who(reach: Reach) -> Identity:
        return Identity(Kind.TOKEN, "t", "", Rights(NOBODY.rights.scopes, reach))

    of_a, of_b = Reach(frozenset({"a"})), Reach(frozenset({"b"}))
    of_db, of_web = (Reach(None, frozenset({("tier", tier)})) for tier in ("db", "web"))
    vm = {"vm": str(VM)}
    moved = {**vm, "source": "b", "destination": "c"}
    events = [
        (EventTopic.PROFILE, "p", {}, {of_a, of_b, of_db, of_web}),
        (EventTopic.HOST, "a", {}, {of_a}),
        (EventTopic.VM, str(VM), {}, {of_a, of_db}),
        (EventTopic.APPLICATION, "x", vm, {of_a, of_db}),
        (EventTopic.MIGRATION, "x", vm, {of_a, of_db}),
        (EventTopic.MIGRATION, "x", moved, {of_b, of_db}),
        (EventTopic.MIGRATION, "x", {"vm": str(MISSING)}, set()),
        (EventTopic.EVACUATION, "x", {**vm, "host": "a"}, {of_a}),
        (EventTopic.EVACUATION, "x", {}, set()),
        (EventTopic.ASSIGNMENT, "1", {"target": "host", "key": "b"}, set()),
        (EventTopic.APPLICATION, "x", {}, set()),
    ]
    for topic, subject, data, seen_by in events:
        for message in (Event(1, now, topic, subject, data), Progress(topic, subject, data)):
            assert await guard.sees_event(who(EVERYTHING), message)
            for reach in (of_a, of_b, of_db, of_web):
                assert await guard.sees_event(who(reach), message) == (reach in seen_by), (
                    topic, data, reach)  # fmt: skip
