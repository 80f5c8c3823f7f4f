"""The fleet at a glance, what is done, and what a search finds."""

from uuid import UUID, uuid4

from tests.contract.store.conftest import Clock
from vmtune.model.access.audit import Act
from vmtune.model.access.scopes import EVERYTHING, Identity, Kind, Reach
from vmtune.model.evacuation.evacuation import (
    EvacuationState,
    EvacuationVm,
    EvacuationVmState,
)
from vmtune.model.host.inventory import Host
from vmtune.model.migration.record import Migration, MigrationState, Totals
from vmtune.model.overview import ActivityKind, FoundKind
from vmtune.model.plan.outcome import ApplicationState, Outcome, Status
from vmtune.model.plan.tuning_state import TuningState
from vmtune.storage import Store
from vmtune.storage.auditing import ACT

STEPS = (MigrationState.PREPARING, MigrationState.STARTING, MigrationState.ACTIVE)
ONLY_B = Reach(hosts=frozenset({"b"}))
LABELLED = Reach(labels=frozenset({("tier", "db")}))


def begin(store: Store, name: str = "web1", vm: UUID | None = None) -> Migration:
    made = store.migrations.begin(vm=vm or uuid4(), vm_name=name, source="a", destination="c")
    for state in STEPS:
        store.migrations.update(made.id, state=state)
    return made


def complete(store: Store, made: Migration, downtime_ms: int = 40) -> None:
    totals = Totals(900, downtime_ms, 10, 1 << 20, 2)
    store.migrations.update(made.id, state=MigrationState.COMPLETED, totals=totals)


def fleet(store: Store, clock: Clock) -> dict[str, UUID]:
    store.hosts.add(Host("b", "qemu+ssh://rack7/system", "", "", clock()))
    vms = {name: uuid4() for name in ("web1", "web2", "db1")}
    store.vms.remember_all("a", {vms["web1"]: "web1", vms["web2"]: "web2"}, clock())
    store.vms.remember(vms["db1"], "db1", "b", clock())
    store.vms.set_labels(vms["db1"], {"tier": "db"})
    differs = Outcome("downtime_limit_ms", Status.OVERWRITTEN, 300, 900)
    application = store.applications.begin(vms["web1"], "a", "p", 1, {}, True, [])
    store.applications.finish(application.id, ApplicationState.APPLIED, (differs,))
    return vms


def test_hosts_moves_and_vms_that_need_a_look(store: Store, host: Host, clock: Clock) -> None:
    vms = fleet(store, clock)
    done, running = begin(store), begin(store, "web2")
    complete(store, done)
    standing = store.overview.standing(clock(), 5)
    assert [(each.name, each.vms) for each in standing.hosts] == [("a", 2), ("b", 1)]
    assert [(each.id, each.downtime_ms) for each in standing.moves] == [
        (running.id, None), (done.id, 40)
    ]  # fmt: skip
    assert not standing.cut
    assert standing.tunings[TuningState.DRIFTED] == 1
    (drifted,) = standing.worst[TuningState.DRIFTED]
    assert (drifted.vm, drifted.name, drifted.differing) == (
        vms["web1"], "web1", ("downtime_limit_ms",)
    )  # fmt: skip


def test_the_newest_evacuation_of_a_host_counts_where_it_stopped(
    store: Store, host: Host, clock: Clock
) -> None:
    fleet(store, clock)

    def stopped(reach: Reach = EVERYTHING) -> list[tuple[str, EvacuationState, int]]:
        seen = store.overview.standing(clock(), 5, reach)
        return [(each.host, each.state, each.left) for each in seen.stopped]

    assert stopped() == []
    ways = {"x": EvacuationVmState.WAITING, "y": EvacuationVmState.FAILED}
    gone = {"z": EvacuationVmState.MOVED}
    vms = [EvacuationVm(uuid4(), name, 1, 0, its) for name, its in (ways | gone).items()]
    first = store.evacuations.begin("a", vms)
    assert stopped() == []
    store.evacuations.enter(first.id, EvacuationState.PAUSED)
    assert stopped() == [("a", EvacuationState.PAUSED, 2)]
    store.evacuations.enter(first.id, EvacuationState.INCOMPLETE)
    assert stopped() == [("a", EvacuationState.INCOMPLETE, 2)]
    assert (stopped(ONLY_B), stopped(LABELLED)) == ([], [])
    second = store.evacuations.begin("a", [])
    assert stopped() == []
    store.evacuations.enter(second.id, EvacuationState.COMPLETED)
    assert stopped() == []


def test_who_is_restricted_sees_their_own_alone(store: Store, host: Host, clock: Clock) -> None:
    fleet(store, clock)
    begin(store)
    seen = store.overview.standing(clock(), 5, ONLY_B)
    assert [each.name for each in seen.hosts] == ["b"]
    assert seen.moves == ()
    assert seen.tunings[TuningState.DRIFTED] == 0
    assert seen.worst[TuningState.DRIFTED] == ()
    labelled = store.overview.standing(clock(), 5, LABELLED)
    assert [(each.name, each.vms) for each in labelled.hosts] == [("a", 0), ("b", 1)]
    assert store.overview.activities(9, ONLY_B) == []
    assert [each.title for each in store.overview.find("web", 9, ONLY_B)] == []
    assert [each.title for each in store.overview.find("db", 9, LABELLED)] == ["db1"]


def test_what_runs_is_among_the_newest_however_many_came_after(
    store: Store, host: Host, clock: Clock
) -> None:
    fleet(store, clock)
    first = begin(store, "long")
    for _ in range(3):
        complete(store, begin(store))
    evacuation = store.evacuations.begin("a", [])
    found = {each.id: each for each in store.overview.activities(2)}
    assert (found[first.id].title, found[first.id].detail) == ("long", "a to c")
    assert not found[first.id].ended
    kinds = [each.kind for each in found.values()]
    assert kinds.count(ActivityKind.MIGRATION) == 3
    assert kinds.count(ActivityKind.APPLICATION) == 1
    assert found[evacuation.id].state == EvacuationState.RUNNING
    named = next(each for each in found.values() if each.kind is ActivityKind.APPLICATION)
    assert (named.title, named.detail) == ("web1", "p r1 on a")


def test_who_began_something_is_told_by_the_audit_log(store: Store, host: Host) -> None:
    act = Act(Identity(Kind.TOKEN, "t1", "night shift"), "127.0.0.1", "start_migration")
    token = ACT.set(act)
    begun = store.migrations.begin(vm=uuid4(), vm_name="x", source="a", destination="c")
    act.is_open = False
    ACT.reset(token)
    other = begin(store, "y")
    assert store.overview.actors([begun.id, other.id, uuid4()]) == {begun.id: "night shift"}


def test_a_part_of_a_name_or_the_beginning_of_an_id_finds(
    store: Store, host: Host, clock: Clock
) -> None:
    vms = fleet(store, clock)
    store.profiles.create("webby", "for web servers", {})
    made = begin(store, "WEB9")

    def kinds(search: str, limit: int = 9) -> list[tuple[FoundKind, str]]:
        return [(each.kind, each.title) for each in store.overview.find(search, limit)]

    assert kinds("WEB") == [
        (FoundKind.VM, "web1"),
        (FoundKind.VM, "web2"),
        (FoundKind.PROFILE, "webby"),
        (FoundKind.MIGRATION, "WEB9"),
    ]
    assert kinds("web", 1)[:2] == [(FoundKind.VM, "web1"), (FoundKind.PROFILE, "webby")]
    assert kinds("rack7") == [(FoundKind.HOST, "b")]
    for text in (str(made.id), str(made.id)[:13], made.id.hex.upper()):
        assert (FoundKind.MIGRATION, "WEB9") in kinds(text)
    assert (FoundKind.VM, "db1") in kinds(str(vms["db1"])[:9])
    assert kinds("100%") == []
