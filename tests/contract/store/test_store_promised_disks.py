"""Which disks are copied to a host, or will be, and which migrations in the queue copy some."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from vmtune.model.evacuation.evacuation import EvacuationVm, EvacuationVmState, LocalDisks
from vmtune.model.host.disks import Disk
from vmtune.model.migration.admission import Limits
from vmtune.model.migration.disks import CopiedDisk
from vmtune.model.migration.record import Migration, MigrationFields, MigrationState, Trigger
from vmtune.storage import Store

COPIED = CopiedDisk("vda", "/x", needed_bytes=7)
DISK = Disk("vda", path="/y", allocated_bytes=9)


def begin(store: Store, destination: str = "b", source: str = "a", **more: Any) -> Migration:
    return store.migrations.begin(
        vm=uuid4(), vm_name="guest", source=source, destination=destination, **more
    )


def test_copies_under_way_are_those_that_have_not_ended(store: Store) -> None:
    going, ended, elsewhere = begin(store), begin(store), begin(store, "c")
    begin(store)  # copies none
    for record in (going, ended, elsewhere):
        store.migrations.note_disks(record.id, [COPIED])
    over = MigrationFields(state=MigrationState.FAILED)
    store.migrations.update(ended.id, **over)
    found = {vm: disks for vm, disks in store.migrations.copying_to("b").items() if disks}
    assert found == {going.vm: (COPIED,)}


def leaving(state: EvacuationVmState, **more: Any) -> EvacuationVm:
    return EvacuationVm(uuid4(), "guest", 1, 0, state, "b", **more)


def test_disks_of_vms_that_evacuations_send_there_are_promised(store: Store) -> None:
    values = {"copy_storage": True, "copy_disks": "vda"}
    waits = leaving(EvacuationVmState.WAITING, disks=(DISK,), values=values)
    blocked = leaving(EvacuationVmState.BLOCKED, disks=(DISK,))
    without = leaving(EvacuationVmState.WAITING)
    made = store.evacuations.begin("a", [waits, blocked, without], local_disks=LocalDisks.COPY)
    assert store.evacuations.get(made.id).local_disks is LocalDisks.COPY
    found = {vm: disks for vm, disks in store.evacuations.promised_disks("b").items() if disks}
    assert found == {waits.vm: (DISK,)}
    assert store.evacuations.promised_disks("c") == {}
    assert store.evacuations.vms(made.id)[0].values == values
    moved = store.evacuations.note(made.id, waits.vm, EvacuationVmState.MOVED)
    assert moved.disks == (DISK,)
    assert not any(store.evacuations.promised_disks("b").values())


def test_one_that_copies_waits_for_another_and_lets_others_begin(store: Store) -> None:
    first, second, plain = begin(store, copies=True), begin(store, copies=True), begin(store)
    limits = Limits(3, 3, 9)
    assert set(store.slots.admit(limits)) == {first.id, plain.id}
    position = store.slots.positions([second.id], limits)[second.id]
    assert position.why == "1 of 1 copy disks from or to a"
    over = MigrationFields(state=MigrationState.FAILED)
    store.migrations.update(first.id, **over)
    assert store.slots.admit(limits) == (second.id,)


def test_one_that_others_started_counts_once_its_copies_are_found(store: Store) -> None:
    seen = begin(store, trigger=Trigger.OBSERVED, state=MigrationState.STARTING)
    waits = begin(store, copies=True)
    store.migrations.update(seen.id, disks=(COPIED,))
    assert store.slots.admit(Limits(3, 3, 9)) == ()
    store.migrations.update(seen.id, state=MigrationState.FAILED)
    assert store.slots.admit(Limits(3, 3, 9)) == (waits.id,)


def test_many_that_copy_do_not_keep_others_from_being_looked_at(store: Store) -> None:
    first, *_ = [begin(store, copies=True) for _ in range(70)]
    plain = begin(store)
    assert set(store.slots.admit(Limits(3, 3, 9))) == {first.id, plain.id}
