"""How VMs stand against what was asked for them: listed without asking a QEMU."""

from __future__ import annotations

from datetime import datetime

from tests.support.served.api import Api, Json
from tests.support.simulated.fakes import VM
from vmtune.model.host.inventory import EventTopic
from vmtune.storage import Store

NOBODY = {"tuned": 0, "drifted": 0, "pending restart": 0, "untuned": 0, "unknown": 0}


async def listed(api: Api, query: str = "?host=a") -> Json:
    (vm,) = (await api.get(f"/vms{query}"))["items"]
    return vm


async def applied(api: Api, **values: object) -> Json:
    await api.profile("p", **values)
    return await api.post(f"/vms/{VM}/applications", {"profile": "p"})


async def test_nothing_asked_of_a_vm_leaves_it_untuned(api: Api) -> None:
    vm = await listed(api)
    assert (vm["tuning_state"], vm["tuning"]) == ("untuned", None)
    assert (await api.get("/vms"))["tuning_counts"] == {**NOBODY, "untuned": 1}


async def test_a_vm_is_tuned_once_applied_and_drifted_once_that_was_seen(api: Api) -> None:
    done = await applied(api, downtime_limit_ms=700)
    vm = await listed(api)
    assert vm["tuning_state"] == "tuned"
    assert vm["tuning"] == {
        "state": "tuned",
        "profile": "p",
        "revision": 1,
        "application": done["id"],
        "differing": [],
        "as_of": vm["tuning"]["as_of"],
        "since": vm["tuning"]["as_of"],
    }
    api.source.parameters["downtime-limit"] = 5
    assert (await listed(api))["tuning_state"] == "tuned", "nobody has looked yet"
    await api.post(f"/vms/{VM}/verify", expect=200)
    seen = await listed(api)
    assert (seen["tuning_state"], seen["tuning"]["differing"]) == ("drifted", ["downtime_limit_ms"])
    assert datetime.fromisoformat(seen["tuning"]["as_of"]) > datetime.fromisoformat(
        vm["tuning"]["as_of"]
    )
    shown = await api.get(f"/vms/{VM}")
    assert (shown["tuning_state"], shown["tuning"]) == ("drifted", seen["tuning"])


async def test_a_listing_asks_no_qemu_how_it_stands(api: Api) -> None:
    await applied(api, downtime_limit_ms=700)
    api.source.commands.clear()
    await api.get("/vms?tuning_state=tuned")
    assert {command for command, _ in api.source.commands} <= {
        "query-name", "query-status", "query-uuid",
    }  # fmt: skip


async def test_vms_are_filtered_and_counted_by_how_they_stand(api: Api) -> None:
    await applied(api, downtime_limit_ms=700)
    for state, expected in (("tuned", [VM]), ("drifted", [])):
        for path in ("/vms?", "/hosts/a/vms?"):
            page = await api.get(f"{path}tuning_state={state}")
            found = {vm["uuid"] for vm in page["items"]}
            assert found == {str(uuid) for uuid in expected}
            assert page["tuning_counts"] == {**NOBODY, "tuned": 1}, "counted before the filter"
    refused = await api.refused("GET", "/vms?tuning_state=fine", status=422)
    assert [field for field, _ in refused] == ["tuning_state"]


async def test_a_reverted_vm_is_untuned_again(api: Api) -> None:
    done = await applied(api, downtime_limit_ms=700)
    await api.post(f"/applications/{done['id']}/revert", expect=200)
    assert (await listed(api))["tuning_state"] == "untuned"


async def test_an_assigned_profile_counts_until_it_is_assigned_no_more(api: Api) -> None:
    await api.profile("p", downtime_limit_ms=700)
    made = await api.post("/assignments", {"target": "default", "key": "", "profile": "p"})
    (outcome,) = (await api.post(f"/vms/{VM}/verify", expect=200))["outcomes"]
    assert (outcome["status"], outcome["seen"]["value"]) == ("not applied", 300)
    assert outcome["reason"] == "the assigned profile has not been applied to this VM"
    vm = await listed(api)
    assert (vm["tuning_state"], vm["tuning"]["profile"]) == ("untuned", "p")
    await api.ask("DELETE", f"/assignments/{made['id']}", expect=204)
    await api.refused("POST", f"/vms/{VM}/verify", status=404)
    assert (await listed(api))["tuning"] is None


async def test_a_change_of_how_a_vm_stands_is_told_once(api: Api) -> None:
    await applied(api, downtime_limit_ms=700)
    for _ in range(2):
        await api.post(f"/vms/{VM}/verify", expect=200)
    api.source.parameters["downtime-limit"] = 5
    for _ in range(2):
        await api.post(f"/vms/{VM}/verify", expect=200)
    with Store.open(api.container.settings.database_url) as store:
        told = [event.data for event in store.events.since(0) if event.topic is EventTopic.VM]
    assert told == [{"change": "tuning", "tuning_state": "drifted"}]
