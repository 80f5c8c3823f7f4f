"""The host's limits: raised for applications and by hand, shared, put back, also after a death."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.support.simulated.fakes import VM
from tests.support.simulated.world import World, world
from vmtune.errors import CommandRefused, Forbidden, InvalidInput
from vmtune.hypervisor.linux.sysctl import FILE_NAME, Sysctls, WishFile
from vmtune.model.host.facts import HostFacts, MemoryMaps, VmFacts
from vmtune.model.host.limits import OPERATOR, SYSCTLS, Wish
from vmtune.model.plan.changes import Change
from vmtune.model.plan.outcome import ApplicationState, Status
from vmtune.model.plan.situation import Permissions
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.services.hosts.limits import HostLimits, is_local
from vmtune.services.tuning.applications import ApplyService
from vmtune.services.tuning.planning import PlanService
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import Fault, FaultKind

MAPS = "vm_max_map_count"
BEFORE = 65530


@dataclass
class Place:
    """A world on a machine whose sysctls are files."""

    world: World
    folder: Path
    limits: HostLimits
    applications: ApplyService
    sysctls: Sysctls

    @property
    def live(self) -> int:
        return self.sysctls.live()[MAPS]

    @live.setter
    def live(self, value: int) -> None:
        (self.folder / "sys/vm/max_map_count").write_text(str(value))

    def left(self) -> object:
        kept = (self.folder / "sysctl.d" / FILE_NAME).exists()
        return self.live, kept, self.sysctls.journal(), self.wishes()

    def wishes(self) -> dict[str, Wish]:
        return WishFile(self.folder / "wishes.json").read()


UNTOUCHED: object = (BEFORE, False, {}, {})


def furnish(made: World, folder: Path, allowed: bool = True) -> Place:
    """Services as they are after a start, on what is in *folder*."""
    sysctls = Sysctls(folder / "journal.json", folder / "sys", folder / "sysctl.d")
    file = WishFile(folder / "wishes.json")
    limits = HostLimits(made.hosts, made.bus, sysctls, file, allowed)
    permissions = Permissions(host_changes=allowed)
    plans = PlanService(made.hosts, made.assignments, permissions, BUILT_IN, made.store)
    applications = ApplyService(made.store, made.bus, made.hosts, plans, limits)
    return Place(made, folder, limits, applications, sysctls)


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    for row, value in zip(SYSCTLS.values(), (BEFORE, 131072), strict=True):
        path = tmp_path / "sys" / row.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    (tmp_path / "sysctl.d").mkdir()
    async with world(tmp_path) as made:
        found = furnish(made, tmp_path)
        for driver in made.drivers.values():
            told = driver._facts

            async def facts(driver: FakeDriver = driver, told: HostFacts = told) -> HostFacts:
                driver._sockets()
                return replace(told, sysctls=found.sysctls.live())

            monkeypatch.setattr(driver, "host_facts", facts)
        yield found


class TestApplying:
    async def test_a_profile_raises_it_and_reverting_puts_it_back(self, place: Place) -> None:
        await place.world.profile("p", vm_max_map_count=100_000, downtime_limit_ms=444)
        record = await place.applications.apply(VM, "p")
        assert record.state is ApplicationState.APPLIED
        outcomes = {o.tunable: o for o in record.outcomes}
        assert (outcomes[MAPS].status, outcomes[MAPS].seen) == (Status.EFFECTIVE, 100_000)
        assert Change(MAPS, BEFORE) in record.journal
        assert place.live == 100_000
        assert (await place.applications.verify(VM)).clean
        place.live = 99_000
        verified = await place.applications.verify(VM)
        assert {o.tunable: o.status for o in verified.outcomes}[MAPS] is Status.OVERWRITTEN
        place.live = 100_000
        record = await place.applications.revert(record.id)
        reverted = {o.tunable: o for o in record.outcomes}[MAPS]
        assert (reverted.status, reverted.seen, reverted.reason) == (Status.REVERTED, BEFORE, "")
        assert place.left() == UNTOUCHED

    async def test_a_refusal_by_qemu_puts_the_host_back_too(self, place: Place) -> None:
        await place.world.profile("p", vm_max_map_count=100_000, main_loop_thread_pool_max=8)
        place.world.source.faults.append(Fault(FaultKind.REFUSE, "object-add"))
        record = await place.applications.apply(VM, "p")
        assert record.state is ApplicationState.FAILED
        assert place.left() == UNTOUCHED

    async def test_a_host_that_does_not_take_it_changes_no_vm(self, place: Place) -> None:
        (place.folder / "sysctl.d").rmdir()
        await place.world.profile("p", vm_max_map_count=100_000, downtime_limit_ms=444)
        record = await place.applications.apply(VM, "p")
        assert record.state is ApplicationState.FAILED
        assert record.problems[0].code == "not_writable"
        assert place.live == BEFORE
        assert place.world.source.parameters["downtime-limit"] == 300
        assert place.wishes() == {}

    async def test_what_is_enough_is_not_touched(self, place: Place) -> None:
        await place.world.profile("p", vm_max_map_count=2000)
        record = await place.applications.apply(VM, "p")
        assert [o.status for o in record.outcomes] == [Status.EFFECTIVE]
        assert place.left() == UNTOUCHED

    async def test_it_stays_as_long_as_another_application_asks(self, place: Place) -> None:
        await place.world.profile("p", vm_max_map_count=100_000)
        await place.limits.set_by_hand("a", {MAPS: 90_000})
        record = await place.applications.apply(VM, "p")
        record = await place.applications.revert(record.id)
        (outcome,) = record.outcomes
        assert (place.live, outcome.seen) == (90_000, 90_000)
        await place.limits.restore("a")
        assert place.left() == UNTOUCHED

    async def test_what_a_dead_service_had_begun_is_put_back(self, place: Place) -> None:
        await place.world.profile("p", vm_max_map_count=100_000)
        store = place.world.store
        record = store.applications.begin(
            VM, "a", "p", 1, {MAPS: 100_000}, False, (Change(MAPS, BEFORE),)
        )
        await place.limits.claim(f"application {record.id}", {MAPS: 100_000})
        after = furnish(place.world, place.folder)
        await after.applications.reconcile()
        assert store.applications.get(record.id).state is ApplicationState.FAILED
        assert after.left() == UNTOUCHED

    async def test_reverting_does_not_need_the_permission(self, place: Place) -> None:
        await place.world.profile("p", vm_max_map_count=100_000)
        record = await place.applications.apply(VM, "p")
        after = furnish(place.world, place.folder, allowed=False)
        await after.applications.revert(record.id)
        assert after.left() == UNTOUCHED


class TestByHand:
    async def test_it_is_set_shown_and_restored(self, place: Place) -> None:
        states = await place.limits.set_by_hand("a", {MAPS: "100000"})
        assert [(s.tunable, s.value, s.before) for s in states] == [
            (MAPS, 100_000, BEFORE),
            ("net_core_optmem_max_bytes", 131072, None),
        ]
        assert states[0].claims == {OPERATOR: 100_000}
        states = await place.limits.restore("a")
        assert [(s.value, s.before) for s in states] == [(BEFORE, None), (131072, None)]
        assert place.left() == UNTOUCHED

    async def test_it_takes_the_permission(self, place: Place) -> None:
        off = furnish(place.world, place.folder, allowed=False)
        with pytest.raises(Forbidden) as refused:
            await off.limits.set_by_hand("a", {MAPS: 100_000})
        (problem,) = refused.value.problems
        assert problem.code == "host_changes_not_allowed"
        assert "host_changes = true" in problem.remedy
        assert place.left() == UNTOUCHED

    async def test_bad_values_change_nothing(self, place: Place) -> None:
        with pytest.raises(InvalidInput):
            await place.limits.set_by_hand("a", {MAPS: 100_000, "net_core_optmem_max_bytes": 1})
        assert place.left() == UNTOUCHED

    async def test_another_machine_is_left_alone(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        facts = replace(await place.world.drivers["b"].host_facts(), local=False)

        async def elsewhere() -> HostFacts:
            return facts

        monkeypatch.setattr(place.world.drivers["b"], "host_facts", elsewhere)
        for ask in (
            place.limits.state("b"),
            place.limits.set_by_hand("b", {MAPS: 1 << 20}),
            place.limits.restore("b"),
        ):
            with pytest.raises(Forbidden, match="another machine"):
                await ask
        assert place.left() == UNTOUCHED

    async def test_a_refused_claim_leaves_the_others(self, place: Place) -> None:
        await place.limits.set_by_hand("a", {MAPS: 100_000})
        foreign = place.folder / "sysctl.d" / FILE_NAME
        text = foreign.read_text()
        foreign.write_text("somebody's\n")
        with pytest.raises(CommandRefused):
            await place.limits.claim("application x", {MAPS: 200_000})
        assert place.wishes()[MAPS].claims == {OPERATOR: 100_000}
        assert place.live == 100_000
        foreign.write_text(text)
        await place.limits.restore("a")
        assert place.left() == UNTOUCHED


class TestNeeds:
    async def test_it_does_not_fall_below_what_a_running_vm_has(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        driver = place.world.drivers["a"]
        probe = driver.vm_facts
        maps = [MemoryMaps(90_000, 0)]

        async def crowded(vm: object) -> VmFacts:
            return replace(await probe(VM), maps=maps[0])

        monkeypatch.setattr(driver, "vm_facts", crowded)
        await place.limits.set_by_hand("a", {MAPS: 200_000})
        (state, _) = await place.limits.restore("a")
        assert state.value is not None
        assert 90_000 <= state.value < 200_000
        assert "the VM vm needs it" in state.held
        maps[0] = MemoryMaps(300, 0)
        await place.limits.settle()
        assert place.left() == UNTOUCHED

    async def test_where_a_host_is_silent_nothing_is_lowered(self, place: Place) -> None:
        await place.limits.set_by_hand("a", {MAPS: 200_000})
        place.world.drivers["b"].reachable = False
        await place.limits.release(OPERATOR)
        assert place.live == 200_000
        (state, _) = await place.limits.state("a")
        assert "b does not answer" in state.held
        place.world.drivers["b"].reachable = True
        await place.limits.settle()
        assert place.left() == UNTOUCHED

    async def test_a_restarted_service_ends_what_was_begun_and_then_leaves_others_alone(
        self, place: Place
    ) -> None:
        await place.limits.set_by_hand("a", {MAPS: 100_000})
        place.live = BEFORE  # as if it had been killed before it could write
        after = furnish(place.world, place.folder)
        await after.limits.settle()
        assert after.live == 100_000
        place.live = 70_000
        await after.limits.settle()
        assert after.live == 70_000

    async def test_without_any_change_settling_asks_nobody(self, place: Place) -> None:
        place.world.drivers["a"].reachable = False
        await place.limits.settle()
        assert place.left() == UNTOUCHED


@pytest.mark.parametrize(
    ("uri", "local"),
    [
        ("qemu:///system", True),
        ("qemu+unix:///system?socket=/run/x", True),
        ("qmp+unix:///run/qmp", True),
        ("qemu+ssh://root@rack/system", False),
        ("qemu+tls://rack/system", False),
    ],
)
def test_which_hosts_may_be_this_machine(uri: str, local: bool) -> None:
    assert is_local(uri) is local
