"""Evacuations over a simulated fleet: from the order to every VM's end, through pauses,
cancellations, failures and a service that dies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.simulated.fleet import Fleet, SimVm, loads
from tests.support.simulated.world import World, after_death, fleet_world
from vmtune.engine.end_state import GUEST_LOST, ROLLED_BACK
from vmtune.engine.postcopy import interrupted, not_offered
from vmtune.errors import Blocked, Conflict, InvalidInput, NotFound, Problem, TooLate
from vmtune.model.evacuation.evacuation import (
    EvacuationState,
    EvacuationVmState,
    Order,
    migration_id,
)
from vmtune.model.host.disks import DiskRoom
from vmtune.model.host.facts import Connection, VmState
from vmtune.model.migration.admission import Limits
from vmtune.model.migration.intent import Intent, Means, parse_intent
from vmtune.model.migration.record import Migration, MigrationState
from vmtune.services.evacuations.evacuations import EvacuationStatus
from vmtune.services.evacuations.plan import EvacuationRequest
from vmtune.services.forecasts.intents import IntentPlan, IntentService
from vmtune.services.hosts.hosts import HostService
from vmtune.services.migrations.migrations import MigrationService

LIMITS = Limits(outgoing=2, incoming=2, all=5)


def fleet(vms: int = 6, hosts: Sequence[str] = "abc") -> Fleet:
    made = Fleet()
    made.add(hosts[0], vms)
    for name in hosts[1:]:
        made.add(name)
    return made


async def ended(it: World, status: EvacuationStatus) -> EvacuationStatus:
    async with asyncio.timeout(60):
        await it.jobs.wait(str(status.record.id))
    return await it.evacuations.get(status.record.host, status.record.id)


def states(it: World, id: UUID) -> dict[str, EvacuationVmState]:
    return {vm.name: vm.state for vm in it.store.evacuations.vms(id)}


@pytest.mark.parametrize(("hosts", "moves"), [("ab", 1), ("abc", 2)])
async def test_the_images_of_all_vms_that_go_to_a_host_fit_there_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: str, moves: int
) -> None:
    def room(_: object) -> tuple[DiskRoom, ...]:
        return (DiskRoom("fs", 6 << 30, 10 << 30),)

    monkeypatch.setattr("vmtune.model.plan.plan.room_for_copies", room)
    async with fleet_world(tmp_path, fleet(3, hosts), LIMITS) as it:
        plan = await it.evacuations.plan(EvacuationRequest("a"))
        assert len(plan.movable) == moves
        assert {vm.state for vm in plan.left} == {EvacuationVmState.BLOCKED}
        assert "4 GiB are left next to those of other VMs" in plan.left[0].reason


async def test_all_vms_move_and_no_limit_is_exceeded(tmp_path: Path) -> None:
    sim = fleet(9)
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        done = await ended(it, await it.evacuations.start(EvacuationRequest("a")))
        assert done.record.state is EvacuationState.COMPLETED
        assert loads(sim)["a"] == 0
        assert sorted(loads(sim).values()) == [0, 4, 5]  # spread over both
        assert sim.most["outgoing"] <= 2
        assert sim.most["incoming"] <= 2
        assert set(sim.ordered.values()) == {1}
        assert it.store.slots.counts() == (0, 0)
        assert done.tally.moved_bytes == done.tally.total_bytes == 9 << 30


async def test_the_plan_changes_nothing_and_lists_what_stands_against_it(tmp_path: Path) -> None:
    sim = fleet(3)
    first, second, third = sim.hosts["a"].vms.values()
    first.blocked, second.state = "it has a passed-through device", VmState.SHUT_OFF
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        plan = await it.evacuations.plan(EvacuationRequest("a"))
        by_name = {vm.name: vm for vm in plan.vms}
        assert by_name["a-0"].state is EvacuationVmState.BLOCKED
        assert "passed-through" in by_name["a-0"].reason
        assert "vm_cannot_migrate" in [f.code for f in by_name["a-0"].findings]
        assert by_name["a-1"].state is EvacuationVmState.NOT_RUNNING
        assert "shut off" in by_name["a-1"].reason
        assert [vm.vm for vm in plan.movable] == [third.uuid]
        assert by_name["a-2"].destination in ("b", "c")
        assert plan.considered == ("b", "c")
        assert it.store.evacuations.unfinished() == ()
        assert loads(sim)["a"] == 3

        done = await ended(it, await it.evacuations.start(EvacuationRequest("a")))
        assert done.record.state is EvacuationState.INCOMPLETE
        assert done.tally.left == 1
        assert third.uuid not in sim.hosts["a"].vms
        over = EvacuationRequest("a", vm_overrides={first.uuid: ("vm_cannot_migrate",)})
        overridden = await ended(it, await it.evacuations.start(over))
        assert overridden.record.state is EvacuationState.COMPLETED
        assert first.uuid not in sim.hosts["a"].vms


async def test_a_vm_that_migrates_already_is_told_and_cannot_be_overridden(tmp_path: Path) -> None:
    sim = fleet(2)
    first, second = sim.hosts["a"].vms.values()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        it.store.migrations.begin(
            vm=first.uuid, vm_name="a-0", source="a", destination="b", state=MigrationState.ACTIVE
        )
        over = EvacuationRequest("a", overrides=("migration_active",))
        plan = await it.evacuations.plan(over)
        (stays,) = plan.left
        assert (stays.vm, stays.state) == (first.uuid, EvacuationVmState.BLOCKED)
        assert stays.reason == "it migrates already: wait until that has ended, or abort it"
        assert (stays.findings, stays.memory_bytes) == ((), 1 << 30)
        assert [vm.vm for vm in plan.movable] == [second.uuid]


@pytest.mark.parametrize("offered", [True, False])
async def test_one_that_is_paused_in_postcopy_is_not_to_be_aborted(
    tmp_path: Path, offered: bool
) -> None:
    sim = fleet(1)
    (vm,) = sim.hosts["a"].vms.values()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        record = it.store.migrations.begin(
            vm=vm.uuid, vm_name="a-0", source="a", destination="b",
            state=MigrationState.POSTCOPY_PAUSED,
        )  # fmt: skip
        if not offered:
            told = not_offered((interrupted(record, ""),), "libvirt 11.3.0 ends")
            it.store.migrations.update(record.id, problems=told)
        (stays,) = (await it.evacuations.plan(EvacuationRequest("a"))).left
        assert "cannot be aborted" in stays.reason
        assert "shut down neither host" in stays.reason
        assert (f"vmtune migration recover {record.id}" in stays.reason) is offered
        assert ("by hand" in stays.reason) is not offered


async def test_hosts_that_cannot_take_a_vm_are_told(tmp_path: Path) -> None:
    sim = fleet(3, "abcde")
    sim.hosts["b"].reachable = True
    sim.hosts["c"].facts = sim.hosts["a"].facts  # another name of the same machine
    sim.hosts["d"].room = 1 << 30
    sim.hosts["e"].facts = replace(sim.hosts["e"].facts, connection=Connection.QMP)
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        sim.hosts["b"].reachable = False
        plan = await it.evacuations.plan(EvacuationRequest("a"))
        assert plan.refused["b"] == "b cannot be reached"
        assert plan.refused["c"] == "it is the same machine"
        assert "driven by qmp" in plan.refused["e"]
        assert [vm.destination for vm in plan.movable] == ["d"]
        assert {vm.state for vm in plan.left} == {EvacuationVmState.NOT_PLACED}
        assert all("room for 0 B" in vm.reason for vm in plan.left)


async def test_chosen_destinations_are_the_only_ones(tmp_path: Path) -> None:
    sim = fleet(4, "abcd")
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        await ended(it, await it.evacuations.start(EvacuationRequest("a", ("c",))))
        assert loads(sim) == {"a": 0, "b": 0, "c": 4, "d": 0}
        with pytest.raises(InvalidInput) as caught:
            await it.evacuations.plan(EvacuationRequest("c", ("c", "d")))
        assert [p.field for p in caught.value.problems] == ["destinations.0"]
        with pytest.raises(NotFound) as unknown:
            await it.evacuations.plan(EvacuationRequest("c", ("d", "z")))
        assert unknown.value.problems[0].field == "destinations.1"


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order.LARGEST_FIRST, ["a-2", "a-1", "a-0"]),
        (Order.SMALLEST_FIRST, ["a-0", "a-1", "a-2"]),
        (Order.PRIORITY, ["a-1", "a-2", "a-0"]),
    ],
)
async def test_vms_move_in_the_order_that_was_asked_for(
    tmp_path: Path, order: Order, expected: list[str]
) -> None:
    sim = fleet(3)
    for size, vm in enumerate(sim.hosts["a"].vms.values(), 1):
        vm.memory_bytes = size << 30
    async with fleet_world(tmp_path, sim, Limits(1, 1, 1)) as it:
        await it.hosts.list_vms()
        favoured = next(vm for vm in sim.hosts["a"].vms.values() if vm.name == "a-1")
        await it.hosts.label(favoured.uuid, {"priority": "10"})
        request = EvacuationRequest("a", ("b",), order, max_outgoing=1)
        done = await ended(it, await it.evacuations.start(request))
        assert [vm.name for vm in it.store.evacuations.vms(done.record.id)] == expected
        begun = it.store.migrations.list(host="a").items[::-1]
        assert [migration.vm_name for migration in begun] == expected


async def test_it_stops_after_so_many_failures_and_lists_the_rest(tmp_path: Path) -> None:
    sim = fleet(8)
    sim.fails = dict.fromkeys(sim.hosts["a"].vms, "no space on the destination")
    async with fleet_world(tmp_path, sim, Limits(1, 1, 1)) as it:
        request = EvacuationRequest("a", max_outgoing=1, stop_after_failures=2)
        done = await ended(it, await it.evacuations.start(request))
        assert done.record.state is EvacuationState.FAILED
        assert done.record.reason == "2 migrations failed, the stated maximum"
        tally = done.tally.states
        assert tally == {EvacuationVmState.FAILED: 2, EvacuationVmState.NOT_STARTED: 6}
        failed = [vm for vm in it.store.evacuations.vms(done.record.id) if vm.migration]
        assert all("no space" in vm.reason for vm in failed)
        assert loads(sim)["a"] == 8


@pytest.mark.parametrize("why", [GUEST_LOST, ROLLED_BACK])
async def test_a_guest_that_is_lost_or_rolled_back_keeps_the_others_where_they_are(
    tmp_path: Path, why: str
) -> None:
    sim = fleet(4)
    sim.fails = dict.fromkeys(sim.hosts["a"].vms, why)
    async with fleet_world(tmp_path, sim, Limits(1, 1, 1)) as it:
        request = EvacuationRequest("a", max_outgoing=1)
        done = await ended(it, await it.evacuations.start(request))
        (harmed,) = [vm for vm in it.store.evacuations.vms(done.record.id) if vm.migration]
        assert done.record.state is EvacuationState.FAILED
        assert done.record.reason == f"{harmed.name}: {why}"
        tally = done.tally.states
        assert tally == {EvacuationVmState.FAILED: 1, EvacuationVmState.NOT_STARTED: 3}


async def test_paused_nothing_begins_and_what_runs_ends(tmp_path: Path) -> None:
    sim = fleet(6)
    sim.go.clear()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        status = await it.evacuations.start(EvacuationRequest("a"))
        id = status.record.id
        # Two run, and two more wait in the queue.
        await it.until(lambda: it.store.slots.counts() == (2, 2))
        paused = await it.evacuations.pause("a", id)
        assert paused.record.state is EvacuationState.PAUSED
        sim.go.set()
        await it.until(lambda: it.store.slots.counts() == (2, 0))
        await asyncio.sleep(1.2)  # a look at the queue, which lets none of these begin
        assert it.store.slots.counts() == (2, 0)
        assert len(sim.ordered) == 2
        queued = [m.id for m in it.store.migrations.list(state=MigrationState.QUEUED).items]
        positions = await it.admission.positions(queued)
        assert {position.why for position in positions.values()} == {"its evacuation is paused"}
        await it.evacuations.resume("a", id)
        done = await ended(it, status)
        assert done.record.state is EvacuationState.COMPLETED
        with pytest.raises(TooLate):
            await it.evacuations.pause("a", id)


async def test_cancelled_what_waits_never_begins_and_what_runs_is_aborted(tmp_path: Path) -> None:
    sim = fleet(8)
    sim.go.clear()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        status = await it.evacuations.start(EvacuationRequest("a"))
        await it.until(lambda: len(sim.ordered) == 2)
        await it.until(lambda: it.store.slots.counts() == (2, 2))
        await it.evacuations.cancel("a", status.record.id)
        done = await ended(it, status)
        assert done.record.state is EvacuationState.CANCELLED
        assert done.tally.states == {EvacuationVmState.ABORTED: 4, EvacuationVmState.NOT_STARTED: 4}
        assert loads(sim)["a"] == 8
        assert it.store.slots.counts() == (0, 0)
        assert len(sim.ordered) == 2
        with pytest.raises(TooLate):
            await it.evacuations.cancel("a", status.record.id)


async def test_a_service_that_dies_goes_on_and_orders_none_twice(tmp_path: Path) -> None:
    sim = fleet(7)
    sim.go.clear()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        status = await it.evacuations.start(EvacuationRequest("a"))
        await it.until(lambda: len(sim.ordered) == 2)
        dead = it.jobs
        id = status.record.id
    sim.go.set()
    async with fleet_world(tmp_path, sim, LIMITS, jobs=after_death(dead)) as it:
        await it.evacuations.resume_all()
        done = await ended(it, status)
        assert done.record.state is EvacuationState.COMPLETED, done
        assert set(sim.ordered.values()) == {1}
        assert len(sim.ordered) == 7
        for vm in it.store.evacuations.vms(id):
            assert vm.migration == migration_id(id, vm.vm)
        assert loads(sim)["a"] == 0
        assert it.store.slots.counts() == (0, 0)


async def test_two_evacuations_do_not_undo_each_other(tmp_path: Path) -> None:
    sim = fleet(3)
    sim.add("d", 1)
    sim.go.clear()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        first = await it.evacuations.start(EvacuationRequest("a", ("b",)))
        with pytest.raises(Conflict) as again:
            await it.evacuations.start(EvacuationRequest("a"))
        assert again.value.problems[0].code == "evacuating"
        plan = await it.evacuations.plan(EvacuationRequest("c"))
        assert "a" not in plan.considered
        named = await it.evacuations.plan(EvacuationRequest("d", ("a", "c")))
        assert (named.refused, named.considered) == ({"a": "it is being evacuated"}, ("c",))
        sim.go.set()
        assert (await ended(it, first)).record.state is EvacuationState.COMPLETED


async def test_what_is_on_its_way_to_a_host_leaves_it_again(tmp_path: Path) -> None:
    """The host was found to be a good destination before somebody wanted it empty."""
    sim = fleet(4)
    sim.go.clear()
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        first = await it.evacuations.start(EvacuationRequest("a", ("b", "c"), max_outgoing=2))
        await it.until(lambda: len(sim.ordered) == 2)
        second = await it.evacuations.start(EvacuationRequest("b", ("c",)))
        assert second.tally.total == 0
        sim.go.set()
        assert (await ended(it, second)).record.state is EvacuationState.COMPLETED
        assert (await ended(it, first)).record.state is EvacuationState.COMPLETED
        assert loads(sim) == {"a": 0, "b": 0, "c": 4}
        assert (await it.evacuations.get("b", second.record.id)).tally.total >= 1


async def test_a_destination_that_fills_up_meanwhile_is_replaced(tmp_path: Path) -> None:
    sim = fleet(3)
    sim.go.clear()
    async with fleet_world(tmp_path, sim, Limits(1, 1, 1)) as it:
        status = await it.evacuations.start(EvacuationRequest("a", max_outgoing=1))
        await it.until(lambda: len(sim.ordered) == 1)
        (there,) = {m.destination for m in it.store.migrations.unfinished()}
        (other,) = {"b", "c"} - {there}
        sim.hosts[there].room = 1 << 30
        sim.go.set()
        done = await ended(it, status)
        assert done.record.state is EvacuationState.COMPLETED
        assert loads(sim) == {"a": 0, there: 1, other: 2}


async def test_a_vm_that_somebody_else_moves_or_stops_is_gone(tmp_path: Path) -> None:
    sim = fleet(3)
    sim.go.clear()
    async with fleet_world(tmp_path, sim, Limits(1, 1, 1)) as it:
        status = await it.evacuations.start(EvacuationRequest("a", ("b",), max_outgoing=1))
        await it.until(lambda: len(sim.ordered) == 1)
        *_, moved, last = sim.hosts["a"].vms.values()
        sim.hosts["c"].vms[moved.uuid] = sim.hosts["a"].vms.pop(moved.uuid)
        del sim.hosts["a"].vms[last.uuid]
        sim.go.set()
        done = await ended(it, status)
        by_vm = {vm.vm: vm for vm in it.store.evacuations.vms(done.record.id)}
        assert by_vm[moved.uuid].state is EvacuationVmState.HANDLED_BY_OTHERS
        assert "on c" in by_vm[moved.uuid].reason
        assert by_vm[last.uuid].state is EvacuationVmState.HANDLED_BY_OTHERS
        assert done.record.state is EvacuationState.COMPLETED


async def test_what_cannot_be_accepted_is_named(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, fleet(1), LIMITS) as it:
        bad = EvacuationRequest(
            "a", overrides=("nonsense",), priority=101, max_outgoing=0, stop_after_failures=0
        )
        with pytest.raises(InvalidInput) as caught:
            await it.evacuations.start(bad)
        fields = [problem.field for problem in caught.value.problems]
        assert fields == ["priority", "max_outgoing", "stop_after_failures", "overrides.0"]
        with pytest.raises(NotFound):
            await it.evacuations.plan(EvacuationRequest("z"))
        assert it.store.evacuations.unfinished() == ()


async def test_an_unknown_profile_or_vm_is_refused_before_anything_is_stored(
    tmp_path: Path,
) -> None:
    sim = fleet(1)
    elsewhere, nowhere = UUID(int=(1 << 64) | 1), UUID(int=7)
    sim.hosts["b"].vms[elsewhere] = SimVm(elsewhere, "b-0")
    (here,) = sim.hosts["a"].vms
    codes = ("vm_cannot_migrate",)
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        for ask in (it.evacuations.plan, it.evacuations.start):
            with pytest.raises(NotFound) as unknown:
                await ask(EvacuationRequest("a", profile="nosuch"))
            assert [problem.field for problem in unknown.value.problems] == ["profile"]
            over = dict.fromkeys((nowhere, here, elsewhere), codes)
            with pytest.raises(InvalidInput) as strangers:
                await ask(EvacuationRequest("a", vm_overrides=over))
            assert {problem.field: problem.code for problem in strangers.value.problems} == {
                f"vm_overrides.{nowhere}": "not_on_host",
                f"vm_overrides.{elsewhere}": "not_on_host",
            }
            for problem in strangers.value.problems:
                assert problem.message.endswith("is not on a")
                assert "leave it out" in problem.remedy
        assert it.store.evacuations.unfinished() == ()
        assert (await it.evacuations.list("a", (), None, 10)).items == ()


async def test_what_is_gone_meanwhile_does_not_keep_added_vms_from_being_seen(
    tmp_path: Path,
) -> None:
    """The profile and a destination are removed, and a VM with an override leaves."""
    sim = fleet(2)
    sim.go.clear()
    first, second = sim.hosts["a"].vms
    async with fleet_world(tmp_path, sim, Limits(1, 1, 1)) as it:
        await it.profile("p")
        over = {second: ("vm_cannot_migrate",)}
        status = await it.evacuations.start(
            EvacuationRequest("a", ("b", "c"), profile="p", vm_overrides=over, max_outgoing=1)
        )
        await it.until(lambda: bool(sim.ordered))
        sim.hosts["a"].vms.pop(next(iter({first, second} - set(sim.ordered))))
        (there,) = (name for name in "bc" if sim.arriving[name])
        await it.hosts.remove("c" if there == "b" else "b")
        await it.profiles.delete("p")
        added = UUID(int=99)
        sim.hosts["a"].vms[added] = SimVm(added, "added")
        sim.go.set()
        done = await ended(it, status)
        by_vm = {vm.vm: vm for vm in it.store.evacuations.vms(done.record.id)}
        assert by_vm[added].state is EvacuationVmState.BLOCKED
        assert by_vm[added].reason == "there is no profile named p"


async def test_what_a_plan_asks_does_not_grow_with_the_fleet(tmp_path: Path) -> None:
    """Nor does finding a VM again that was listed once, by a service that has just started."""
    sim = fleet(3, [f"h{number:02}" for number in range(60)])
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        sim.calls.clear()
        plan = await it.evacuations.plan(EvacuationRequest("h00"))
        assert len(plan.movable) == 3
        assert len(plan.considered) == 16
        assert sim.calls["host_facts"] <= 16 + 1 + 2 * 3
        assert sim.calls["vm_facts"] == 2 * 3
        again = HostService(it.store, it.bus, lambda host: sim.driver(host.name))
        sim.calls.clear()
        host, _, _ = await again.locate(plan.vms[0].vm)
        assert (host, sim.calls["vm_facts"]) == ("h00", 1)


async def test_each_migration_has_the_evacuations_intent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    start = MigrationService.start

    async def seen(self: MigrationService, *args: Any, **given: Any) -> Migration:
        asked.append(given.pop("intent"))
        return await start(self, *args, **given)

    monkeypatch.setattr(MigrationService, "start", seen)
    intent = Intent(500, 60, 20, may=(Means.THROTTLE,))
    async with fleet_world(tmp_path, fleet(2), LIMITS) as it:
        begun = await it.evacuations.start(EvacuationRequest("a", intent=intent))
        done = await ended(it, begun)
        assert done.record.intent == intent
        assert done.record.state is EvacuationState.COMPLETED
    assert [parse_intent(raw) for raw in asked] == [intent, intent]


async def test_a_vm_whose_intent_cannot_be_kept_stays_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = fleet(2)

    async def refuses(self: IntentService, *_args: Any) -> IntentPlan:
        problem = Problem("intent", "intent_infeasible", "it would not end", "allow more")
        raise Blocked("the intent cannot be kept", problems=[problem])

    monkeypatch.setattr(IntentService, "choose", refuses)
    async with fleet_world(tmp_path, sim, LIMITS) as it:
        request = EvacuationRequest("a", intent=Intent(10, 60))
        done = await ended(it, await it.evacuations.start(request))
        assert done.record.state is EvacuationState.INCOMPLETE
        assert loads(sim)["a"] == 2
        for vm in it.store.evacuations.vms(done.record.id):
            assert vm.state is EvacuationVmState.NOT_PLACED  # no other host was better
            assert "intent" in vm.reason
