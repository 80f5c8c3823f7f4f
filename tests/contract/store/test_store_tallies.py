"""What /metrics reads of the database, on both."""

from __future__ import annotations

from uuid import uuid4

from tests.contract.store.conftest import Clock
from vmtune.model.cluster import ServiceState
from vmtune.model.host.inventory import Host
from vmtune.model.migration.record import MigrationState
from vmtune.model.plan.drift import ScanResult
from vmtune.model.plan.outcome import ApplicationState, Outcome, Status
from vmtune.model.plan.tuning_state import TuningState
from vmtune.storage import Store

BAD = (Outcome("downtime_limit_ms", Status.OVERWRITTEN, 700, 5),)


def test_an_empty_database_has_nothing_of_everything(store: Store) -> None:
    tally = store.tallies.now()
    counts = (tally.migrations, tally.applications, tally.evacuations, tally.vms, tally.services)
    assert all(number == 0 for each in counts for number in each.values())
    assert (tally.waiting, tally.runs, tally.orders, tally.hosts) == (0, 0, 0, {})
    assert (set(tally.drift.values()), tally.oldest_scan) == ({0}, None)


def test_what_is_open_is_counted_and_what_has_ended_is_not(store: Store, host: Host) -> None:
    def begun() -> None:
        record = store.migrations.begin(vm=uuid4(), vm_name="x", source="a", destination="b")
        made.append(record.id)

    made: list[object] = []
    for _ in range(4):
        begun()
    store.migrations.update(made[0], state=MigrationState.CANCELLED)
    store.migrations.update(made[1], state=MigrationState.UNKNOWN)
    tally = store.tallies.now()
    assert tally.migrations[MigrationState.QUEUED] == 2
    assert tally.migrations[MigrationState.UNKNOWN] == 1
    assert MigrationState.CANCELLED not in tally.migrations
    assert tally.waiting == 2
    vm = uuid4()
    application = store.applications.begin(vm, "a", "p", 1, {"downtime_limit_ms": 700}, True, [])
    assert store.tallies.now().applications[ApplicationState.INTENDED] == 1
    store.vms.remember_all("a", {vm: "x"}, host.created_at)
    store.applications.finish(application.id, ApplicationState.APPLIED, BAD)
    tally = store.tallies.now()
    assert not any(tally.applications.values())
    assert tally.vms[TuningState.DRIFTED] == 1


def test_the_last_scans_of_all_hosts_are_added_up(store: Store, clock: Clock) -> None:
    for name in ("a", "b", "c"):
        store.hosts.add(Host(name, f"qemu+ssh://{name}/system", "", "", clock()))
    store.drift_scans.note("a", 0, ScanResult(checked=5, drifted=2, without_profile=7, failed=1))
    first = store.drift_scans.get("a").ended_at
    store.drift_scans.note("b", 0, ScanResult(checked=3, drifted=1, skipped=4))
    tally = store.tallies.now()
    assert tally.drift == {
        "drifted": 3, "matching": 5, "without_profile": 7, "skipped": 4, "failed": 1
    }  # fmt: skip
    assert tally.oldest_scan == first


def test_hosts_are_counted_by_who_drives_them(store: Store, clock: Clock) -> None:
    for name in ("a", "b"):
        store.hosts.add(Host(name, f"qemu+ssh://{name}/system", "", "", clock()))
    store.services.join("one", "m", 1, "0")
    store.services.claim("a", "one", "")
    tally = store.tallies.now()
    assert tally.hosts == {"one": 1, "": 1}
    assert tally.services[ServiceState.RUNNING] == 1
