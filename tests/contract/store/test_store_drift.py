"""Scans for drift: which are due, what they found, and the VMs that drift."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from tests.contract.store.conftest import Clock
from vmtune.errors import NotFound, Problem
from vmtune.model.access.scopes import Reach
from vmtune.model.host.inventory import Host
from vmtune.model.plan.drift import DriftScan, ScanResult
from vmtune.model.plan.outcome import ApplicationState, Outcome, Status
from vmtune.model.plan.tuning_state import TuningState
from vmtune.storage import Store
from vmtune.storage.repositories.tuning_states import Seen

VMS = [UUID(f"00000000-0000-4000-8000-00000000000{n}") for n in "abc"]
GOOD = (Outcome("downtime_limit_ms", Status.EFFECTIVE, 700, 700),)
BAD = (Outcome("downtime_limit_ms", Status.OVERWRITTEN, 700, 5),)
FOUND = ScanResult(5, 1, 2, 1, 1, 40, (Problem("vms.x", "monitor_busy", "taken", "let go"),))


@pytest.fixture(autouse=True)
def hosts(store: Store, clock: Clock) -> None:
    for name in ("a", "b"):
        store.hosts.add(Host(name, f"qemu+ssh://{name}/system", "", "", clock()))


def applied(store: Store, vm: UUID, host: str = "a") -> UUID:
    begun = store.applications.begin(vm, host, "p", 1, {"downtime_limit_ms": 700}, True, [])
    return store.applications.finish(begun.id, ApplicationState.APPLIED, GOOD).id


def seen(vm: UUID, application: UUID | None, outcomes: tuple[Outcome, ...] = BAD) -> Seen:
    return Seen(vm, "p", 1, application, outcomes)


def test_what_is_asked_for_is_due_until_a_scan_answers_it(store: Store) -> None:
    scans = store.drift_scans
    assert scans.due(0) == ()
    assert [scan.host for scan in scans.due(900)] == ["a", "b"], "none was made yet"
    assert scans.ask(["a", "gone"]) == ("a",)
    assert scans.ask(["a"]) == ("a",)
    (asked,) = scans.due(0)
    assert (asked.host, asked.asked, asked.pending, asked.result) == ("a", 2, True, None)
    scans.note("a", asked.asked, FOUND)
    made = scans.get("a")
    assert (made.pending, made.result) == (False, FOUND)
    assert made.ended_at is not None
    assert scans.due(0) == ()
    scans.ask()
    assert [scan.host for scan in scans.due(0)] == ["a", "b"]
    assert scans.get("a").result == FOUND, "what was found stays until there is more"


def test_one_that_was_asked_for_meanwhile_is_made_again(store: Store) -> None:
    scans = store.drift_scans
    scans.ask(["a"])
    began = scans.get("a").asked
    scans.ask(["a"])
    scans.note("a", began, FOUND)
    assert [scan.host for scan in scans.due(0)] == ["a"]


def test_a_host_is_due_again_after_the_interval(store: Store, clock: Clock) -> None:
    for name in ("a", "b"):
        store.drift_scans.note(name, 0, FOUND)
    assert store.drift_scans.due(900) == ()
    clock.time += timedelta(seconds=900)
    assert {scan.host for scan in store.drift_scans.due(900)} == {"a", "b"}
    clock.time -= timedelta(days=3)
    assert {scan.host for scan in store.drift_scans.due(900)} == {"a", "b"}, "it was set back"


def test_a_host_that_is_removed_takes_its_scan_along(store: Store) -> None:
    store.drift_scans.note("a", 0, FOUND)
    store.hosts.remove("a")
    store.drift_scans.note("a", 0, FOUND)  # one that was under way
    with pytest.raises(NotFound):
        store.drift_scans.get("a")
    assert [scan.host for scan in store.drift_scans.list().items] == ["b"]


def test_scans_are_listed_page_by_page_also_those_that_were_not_made(store: Store) -> None:
    store.drift_scans.note("b", 0, FOUND)
    first = store.drift_scans.list(limit=1)
    assert first.items == (DriftScan("a"),)
    (second,) = store.drift_scans.list(after=first.next).items
    assert (second.host, second.result) == ("b", FOUND)
    of_b = store.drift_scans.list(reach=Reach(frozenset({"b"})))
    assert [scan.host for scan in of_b.items] == ["b"]
    assert [scan.host for scan in store.drift_scans.list(host="a").items] == ["a"]


def test_vms_that_drift_are_listed_with_since_when(store: Store, clock: Clock) -> None:
    store.vms.remember_all("a", {VMS[0]: "one", VMS[1]: "two"}, clock())
    store.vms.remember_all("b", {VMS[2]: "three"}, clock())
    store.vms.set_labels(VMS[2], {"tier": "db"})
    ids = [applied(store, vm) for vm in VMS]
    assert store.drift_scans.drifts().items == ()
    both = [seen(VMS[0], ids[0]), seen(VMS[2], ids[2])]
    assert store.tunings.note_all(both) == {VMS[0]: True, VMS[2]: True}
    clock()
    assert store.tunings.note_all(both) == {VMS[0]: False, VMS[2]: False}
    first = store.drift_scans.drifts(limit=1)
    assert [drift.vm.name for drift in first.items] == ["one"]
    (other,) = store.drift_scans.drifts(after=first.next).items
    assert other.vm.name == "three"
    assert other.tuning.since < other.tuning.as_of, "since when is kept while it stands so"
    assert [d.vm.name for d in store.drift_scans.drifts(host="b").items] == ["three"]
    of_db = Reach(None, frozenset({("tier", "db")}))
    assert [d.vm.name for d in store.drift_scans.drifts(reach=of_db).items] == ["three"]
    of_a = Reach(frozenset({"a"}))
    assert [d.vm.name for d in store.drift_scans.drifts(reach=of_a).items] == ["one"]
    assert store.tunings.note_all([seen(VMS[0], ids[0], GOOD)]) == {VMS[0]: True}
    tuned = store.tunings.get(VMS[0])
    assert tuned is not None
    assert tuned.state is TuningState.TUNED
    assert tuned.since == tuned.as_of
    assert [drift.vm.name for drift in store.drift_scans.drifts().items] == ["three"]


def test_what_a_scan_saw_of_a_vm_that_is_worked_on_is_not_noted(store: Store) -> None:
    old = applied(store, VMS[0])
    busy = store.applications.begin(VMS[0], "a", "p", 1, {}, True, [])
    assert store.drift_scans.busy(VMS) == {VMS[0]}
    assert store.tunings.note_all([seen(VMS[0], old)]) == {}
    store.applications.finish(busy.id, ApplicationState.APPLIED, GOOD)
    assert store.drift_scans.busy(VMS) == frozenset()
    assert store.tunings.note_all([seen(VMS[0], old)]) == {}, "another application stands"
    found = store.tunings.get(VMS[0])
    assert found is not None
    assert found.state is TuningState.TUNED


def test_the_newest_application_of_each_vm_is_what_stands(store: Store) -> None:
    applied(store, VMS[0])
    newest = applied(store, VMS[0])
    store.applications.begin(VMS[1], "a", "p", 1, {}, True, [])
    found = store.drift_scans.standing(VMS)
    assert {vm: record.id for vm, record in found.items()} == {VMS[0]: newest}


def test_vms_of_which_nothing_is_wanted_are_forgotten(store: Store) -> None:
    application = applied(store, VMS[0])
    store.tunings.note(VMS[1], "assigned", 1, None, BAD)
    assert store.tunings.forget_all(VMS) == (VMS[1],)
    assert set(store.tunings.all()) == {VMS[0]}
    assert store.tunings.all()[VMS[0]].application == application
    assert store.tunings.forget_all(VMS[1:]) == ()
