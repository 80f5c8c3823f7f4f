"""Lists of a large fleet: the same VMs as of a small one, and only the page's hosts are asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.simulated.fleet import Fleet
from tests.support.simulated.world import World, fleet_world
from vmtune.errors import HostUnreachable, NotFound
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.host.facts import VmState
from vmtune.model.host.inventory import EventTopic, VmSort
from vmtune.model.plan.tuning_state import TuningState
from vmtune.services import inventory_lists as module
from vmtune.services.hosts.hosts import HostService
from vmtune.services.inventory_lists import InventoryLists, VmFilter, VmPage

pytestmark = pytest.mark.integration


def fleet() -> Fleet:
    made = Fleet()
    for name in "abcdef":
        made.add(name, 4)
    return made


async def all_pages(
    fleet: InventoryLists,
    wanted: VmFilter,
    reach: Reach = EVERYTHING,
    sort: VmSort = VmSort.NAME,
) -> list[VmPage]:
    pages, after = list[VmPage](), None
    while True:
        pages.append(await fleet.vms(wanted, after, 5, reach, sort))
        after = pages[-1].page.next
        if after is None:
            return pages


def told(pages: list[VmPage]) -> list[tuple[str, str, object]]:
    return [(vm.host, vm.summary.name, vm.labels) for each in pages for vm in each.page.items]


async def both(
    it: World,
    patch: pytest.MonkeyPatch,
    wanted: VmFilter,
    reach: Reach = EVERYTHING,
    sort: VmSort = VmSort.NAME,
) -> list[VmPage]:
    """The pages as of a large fleet, which are those of a small one."""
    fleet = InventoryLists(it.store, it.hosts)
    small = await all_pages(fleet, wanted, reach, sort)
    patch.setattr(module, "_LARGE_FLEET_VMS", 1)
    large = await all_pages(fleet, wanted, reach, sort)
    patch.undo()
    assert told(large) == told(small)
    assert [page.counts for page in large] == [page.counts for page in small]
    return large


async def test_pages_are_the_same_and_few_hosts_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = fleet()
    async with fleet_world(tmp_path, sim) as it:
        await it.hosts.list_vms()
        vm = next(iter(sim.hosts["c"].vms))
        await it.hosts.label(vm, {"tier": "db"})
        assert len(told(await both(it, monkeypatch, VmFilter()))) == 24
        assert len(told(await both(it, monkeypatch, VmFilter(labels=(("tier", "db"),))))) == 1
        assert len(told(await both(it, monkeypatch, VmFilter(name="d-2")))) == 1
        assert await both(it, monkeypatch, VmFilter(tuning=TuningState.DRIFTED))
        assert len(told(await both(it, monkeypatch, VmFilter(search="D-")))) == 4
        for sort in VmSort:
            assert len(told(await both(it, monkeypatch, VmFilter(), sort=sort))) == 24
        only = Reach(frozenset({"a", "c"}), frozenset({("tier", "db")}))
        assert len(told(await both(it, monkeypatch, VmFilter(), only))) == 1

        monkeypatch.setattr(module, "_LARGE_FLEET_VMS", 1)
        sim.calls.clear()
        sim.hosts["b"].reachable = False
        first = await InventoryLists(it.store, it.hosts).vms(VmFilter(), None, 6)
        assert sim.calls["list_vms"] == 2
        assert [vm.host for vm in first.page.items] == ["a"] * 4 + ["b"] * 2
        states = [vm.summary.state for vm in first.page.items]
        assert states == [VmState.RUNNING] * 4 + [VmState.UNKNOWN] * 2
        assert [problem.field for problem in first.problems] == ["hosts.b"]
        assert first.page.next is not None


async def test_vms_that_are_gone_leave_no_pages_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = fleet()
    async with fleet_world(tmp_path, sim) as it:
        await it.hosts.list_vms()
        for name in "abcd":  # what is left is on the last hosts alone
            sim.hosts[name].vms.clear()
        left = sum(len(host.vms) for host in sim.hosts.values())
        monkeypatch.setattr(module, "_LARGE_FLEET_VMS", 1)
        sim.calls.clear()
        page = await InventoryLists(it.store, it.hosts).vms(VmFilter(), None, 4)
        assert len(page.page.items) == 4
        assert sim.calls["list_vms"] <= len(sim.hosts)  # each at most once
        pages = await all_pages(InventoryLists(it.store, it.hosts), VmFilter(), EVERYTHING)
        assert len(told(pages)) == left


async def test_where_a_vm_is_takes_no_probe_of_it(tmp_path: Path) -> None:
    sim = fleet()
    async with fleet_world(tmp_path, sim) as it:
        vm = next(iter(sim.hosts["c"].vms))
        assert await it.hosts.where(vm) == "c"
        assert sim.calls["vm_facts"] == 0
        moved = sim.hosts["c"].vms.pop(vm)
        sim.hosts["d"].vms[vm] = moved
        assert await it.hosts.where(vm) == "d"
        moved.state = VmState.SHUT_OFF
        assert await it.hosts.where(vm) == "d"
        sim.hosts["d"].reachable = False
        del sim.hosts["d"].vms[vm]
        with pytest.raises(NotFound, match="on any host"):
            await it.hosts.where(vm)


async def test_a_copy_that_a_migration_left_behind_is_not_the_vm(tmp_path: Path) -> None:
    sim = fleet()
    async with fleet_world(tmp_path, sim) as it:
        vm = next(iter(sim.hosts["c"].vms))
        record = await it.migrations.start(vm, "e")
        await it.jobs.wait(str(record.id))
        copy = replace(sim.hosts["e"].vms[vm], state=VmState.PAUSED)
        sim.hosts["c"].vms[vm] = copy
        for _ in range(2):
            await it.hosts.list_vms()
            assert it.store.vms.get(vm).host == "e"

        async def where() -> str:
            """As a service says that has just been started."""
            new = HostService(it.store, it.bus, lambda host: sim.driver(host.name))
            return (await new.locate(vm))[0]

        assert await where() == "e"
        it.store.vms.remember_all("c", {vm: copy.name}, datetime.now(UTC))
        assert await where() == "e"
        sim.hosts["e"].vms[vm].state = VmState.SHUT_OFF
        sim.calls.clear()
        assert await where() == "c"
        assert sim.calls["vm_facts"] == 2  # not the whole fleet


async def test_a_list_that_tells_nothing_new_waits_for_no_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = fleet()
    async with fleet_world(tmp_path, sim) as it:
        written: list[str] = []
        remember = it.store.vms.remember_all

        def noted(host: str, *told: Any) -> None:
            written.append(host)
            remember(host, *told)

        monkeypatch.setattr(it.store.vms, "remember_all", noted)
        await it.hosts.list_vms()
        assert written == list("abcdef")
        written.clear()
        listed = await it.hosts.list_vms()
        assert written == []
        vm = listed.vms[0].summary.uuid
        await it.hosts.label(vm, {"tier": "db"})
        sim.hosts["b"].vms[vm] = sim.hosts["a"].vms.pop(vm)
        (seen,) = (each for each in (await it.hosts.list_vms()).vms if each.summary.uuid == vm)
        assert (written, seen.host, seen.labels) == (["b"], "b", {"tier": "db"})
        sim.hosts["b"].vms[vm].name = "renamed"
        await it.hosts.list_vms()
        assert it.store.vms.get(vm).name == "renamed"


async def test_a_list_may_be_given_again_until_something_happens(tmp_path: Path) -> None:
    sim = fleet()
    async with fleet_world(tmp_path, sim) as it:
        vm = next(iter(sim.hosts["c"].vms))
        await it.hosts.list_vms("c")
        sim.calls.clear()
        first = await it.hosts.list_vms("c", max_age_s=60)
        it.store.vms.set_labels(vm, {"tier": "db"})
        again = await it.hosts.list_vms("c", max_age_s=60)
        assert sim.calls["list_vms"] == 0
        labels = {seen.summary.uuid: dict(seen.labels) for seen in again.vms}
        assert labels[vm] == {"tier": "db"}, "labels are as they are now"
        assert [seen.summary for seen in again.vms] == [seen.summary for seen in first.vms]

        await it.bus.publish(EventTopic.MIGRATION, vm, {})
        await it.hosts.list_vms("c", max_age_s=60)
        assert sim.calls["list_vms"] == 1
        await it.hosts.list_vms("c")
        assert sim.calls["list_vms"] == 2
        sim.hosts["c"].reachable = False
        with pytest.raises(HostUnreachable):
            await it.hosts.list_vms("c")
        with pytest.raises(HostUnreachable):
            await it.hosts.list_vms("c", max_age_s=60)
