"""The fleet at a glance, what is done in it, and one search over all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.served.api import Api, running_api
from tests.support.simulated.fakes import VM
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.services.hosts.checks import HostChecks
from vmtune.storage import Store


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path) as made:
        yield made


async def migrate(api: Api, **values: object) -> str:
    await api.profile(**values)
    body = {"vm": str(VM), "destination": "b", "profile": "p"}
    done = await api.ended((await api.post("/migrations", body, expect=202))["id"])
    assert done["state"] == "completed"
    id: str = done["id"]
    return id


async def test_the_fleet_at_a_glance(api: Api) -> None:
    await api.get("/vms")
    id = await migrate(api, downtime_limit_ms=1)
    await api.ask("PUT", "/hosts/b/maintenance", {"on": True})
    seen = await api.get("/overview")
    (exceeded,) = seen["attention"]
    assert (exceeded["concern"], exceeded["count"]) == ("downtime exceeded", 1)
    assert exceeded["subjects"][0]["id"] == id
    (move,) = seen["migrations"]
    assert (move["id"], move["exceeded"], move["state"]) == (id, True, "completed")
    hosts = {each["name"]: each for each in seen["hosts"]}
    assert hosts["b"]["maintenance"] and not hosts["a"]["maintenance"]
    assert {each["outgoing"] for each in hosts.values()} == {0}
    assert sum(seen["tuning_counts"].values()) == 1


async def test_migrations_are_filtered_by_whether_they_exceeded_their_limit(api: Api) -> None:
    ids = []
    with Store.open(api.container.settings.database_url) as store:
        for limit_ms in (694, 693):
            begun = store.migrations.begin(
                vm=uuid4(), vm_name="other", source="a", destination="b",
                profile="p0", wanted={"downtime_limit_ms": limit_ms},
            )  # fmt: skip
            for state in (MigrationState.PREPARING, MigrationState.STARTING):
                store.migrations.update(begun.id, state=state)
            totals = Totals(9000, 694, None, 1 << 20, 2)
            store.migrations.update(begun.id, state=MigrationState.COMPLETED, totals=totals)
            ids.append(str(begun.id))
    kept, over = ids
    newest = await migrate(api, downtime_limit_ms=1)

    async def listed(query: str) -> list[str]:
        return [each["id"] for each in (await api.get(f"/migrations{query}"))["items"]]

    assert await listed("?downtime_exceeded=true") == [newest, over]
    assert await listed("?downtime_exceeded=false") == [kept]
    assert await listed("") == [newest, over, kept]
    assert await listed("?downtime_exceeded=true&profile=p0") == [over]


async def test_what_is_done_with_who_began_it(api: Api) -> None:
    id = await migrate(api)
    (done,) = (await api.get("/activity"))["items"]
    assert (done["kind"], done["id"], done["ended"]) == ("migration", id, True)
    assert done["actor"], "root, at the unix socket"
    assert done["host"] is None


async def test_one_search_finds_all_kinds(api: Api) -> None:
    await api.get("/vms")
    id = await migrate(api)
    name = (await api.get(f"/vms/{VM}"))["name"]
    found = (await api.get(f"/search?q={name[:3].upper()}"))["items"]
    assert {each["kind"] for each in found} >= {"vm", "migration"}
    assert (await api.get(f"/search?q={id}"))["items"][0]["kind"] == "migration"
    assert (await api.get(f"/search?q={uuid4()}"))["items"] == []
    assert await api.refused("GET", "/search?q=%20", status=422) == [("q", "invalid_input")]


async def test_the_audit_log_names_the_vm(api: Api) -> None:
    await api.get("/vms")
    name = (await api.get(f"/vms/{VM}"))["name"]
    await api.ask("PUT", f"/vms/{VM}/labels", {"labels": {"tier": "db"}})
    await api.profile(downtime_limit_ms=400)
    await api.post(f"/vms/{VM}/applications", {"profile": "p"})
    await api.ended((await api.post("/migrations", {"vm": str(VM), "destination": "b"}, 202))["id"])
    entries = (await api.get("/audit"))["items"]
    named = {each["subject"].split()[0]: each["vm_name"] for each in entries}
    assert {named["labels"], named["application"], named["migration"]} == {name}
    assert named["profile"] is None
    exported = await api.send("GET", "/audit/export?form=csv")
    assert f",{VM},{name}," in exported.text


async def test_checks_of_hosts_see_vms_that_nobody_listed(api: Api) -> None:
    async def seen() -> dict[str, int]:
        return {each["name"]: each["vms"] for each in (await api.get("/overview"))["hosts"]}

    assert (await seen())["a"] == 0
    await HostChecks(api.container.hosts, api.container.doctor, 60).check_all()
    assert (await seen())["a"] == 1
