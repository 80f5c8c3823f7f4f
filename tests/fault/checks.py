"""What has to hold after a fault, whatever the fault was."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from tests.fault.direct import DirectLive
from tests.fault.testbed import FaultTestbed, states
from tests.support.hosts.local_disks import (
    LocalDisk,
    holds,
    machines,
    pools,
    wrong_at_rest,
    wrong_image,
    wrong_on,
    wrong_to_the_guest,
)
from vmtune import lab
from vmtune.client.connection.http import Document
from vmtune.lab.guest_serial import GuestPass, parse_serial

_SETTLED = ("completed", "failed", "cancelled")


@dataclass
class Try:
    """One try of a fault.

    :param before: what the VM ran with before its migration was ordered.
    :param dead: what the record may say where the fault has ended the guest itself.
    :param stays: how the record may stay without an end.
    :param copied: the disk that is copied along; *removes*: whose image on the source is to go
        once the VM runs at the destination.
    :param passes: how many the guest had made when the record was settled, where its workload
        checks its memory.
    """

    number: int
    vm: lab.LabVm
    migration: str
    before: Mapping[str, object]
    note: str = ""
    dead: frozenset[str] = frozenset()
    stays: frozenset[str] = frozenset()
    copied: LocalDisk | None = None
    removes: bool = False
    passes: int | None = None
    record: Document = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether its record is settled."""
        return self.record.get("state") in _SETTLED


def settings_of(testbed: FaultTestbed, vm: lab.LabVm) -> dict[str, object]:
    """What the VM's tunables are set to, by name."""
    readings = testbed.live.client.get(f"/vms/{vm.uuid}/effective")["readings"]
    return {name: reading["value"] for name, reading in readings.items()}


def wrong(testbed: FaultTestbed, tried: Try) -> list[str]:
    """What does not hold; empty where nothing was lost or invented."""
    found: list[str] = []
    record = tried.record
    listed = list(testbed.live.client.items("/migrations", {"vm": tried.vm.uuid}))
    if [one["id"] for one in listed] != [tried.migration]:
        found.append(f"{len(listed)} records of one migration")
    if not tried.ended and record["state"] not in tried.stays:
        found.append(f"its record is {record['state']}")
    at = states(testbed.live, tried.vm)
    running = sorted(host for host, state in at.items() if state == "running")
    found += place(record, running, tried.dead)
    if running and tried.ended:
        found += left_behind(tried.before, settings_of(testbed, tried.vm), running[0])
        if tried.passes is not None:
            found += memory(guest_passes(tried.vm), tried.passes)
    found += _record(record)
    if tried.copied is not None:
        look = direct_images if isinstance(testbed.live, DirectLive) else images
        found += look(testbed, tried, tried.copied, running)
    found += _stored(testbed, tried)
    return found


def place(record: Document, running: Collection[str], dead: Collection[str]) -> list[str]:
    """Whether the VM runs where its record says, and nowhere else."""
    if len(running) > 1:
        return ["the VM runs on two hosts"]
    if not running:
        allowed = record["state"] in dead
        return [] if allowed else [f"the VM runs on no host, and it is {record['state']}"]
    expected = "b" if record["state"] in ("completed", "postcopy-paused") else "a"
    here = next(iter(running))
    return [] if here == expected else [f"it is {record['state']}, and runs on {here}"]


def left_behind(before: Mapping[str, object], now: Mapping[str, object], where: str) -> list[str]:
    """What was set for the migration and is still set."""
    return [
        f"{name} is {now.get(name)} on {where}, and was {value}"
        for name, value in before.items()
        if now.get(name) != value
    ]


def images(testbed: FaultTestbed, tried: Try, disk: LocalDisk, running: Sequence[str]) -> list[str]:
    """Whether the guest's disk is whole where it runs, the source's is still there, and what was
    made at the destination for nothing is gone or told."""
    a, b = hosts = machines(testbed.live)
    found = source_image(tried.record, tried.removes, holds(a, disk))
    completed = tried.record["state"] == "completed"
    told = {p["code"] for p in tried.record["problems"]} & {"image_left", "image_kept"}
    if tried.ended and not completed and holds(b, disk) and not told:
        found.append("an image stays at the destination, and the record does not say so")
    if completed and not holds(b, disk):
        found.append("the image at the destination is gone")
    if tried.ended:
        found += [f"{name} is left on b" for name in pools(b)]
    for which in running:
        why = wrong_on(testbed.live, hosts["ab".index(which)], tried.vm, disk)
        found += [f"the disk on {which}: {why}"] if why else []
    if not running and not completed:
        why = wrong_at_rest(testbed.live, a, disk)
        found += [f"the source's image: {why}"] if why else []
    return found


def direct_images(
    testbed: FaultTestbed, tried: Try, disk: LocalDisk, running: Sequence[str]
) -> list[str]:
    """Likewise without libvirt: vmtune makes no image, and has QEMUs export and copy them."""
    live = testbed.live
    assert isinstance(live, DirectLive)
    found = source_image(tried.record, tried.removes, live.image("a", disk).exists())
    if not live.image("b", disk).exists():
        found.append("the image at the destination is gone")
    if tried.ended:
        found += [f"{name} is left" for name in live.left_of_copies(tried.vm)]
    for which in running:
        live.ask(which, tried.vm, "stop")
        why = wrong_image(testbed.folder, disk, str(live.image(which, disk)))
        live.ask(which, tried.vm, "cont")
        why = why or wrong_to_the_guest(tried.vm)
        found += [f"the disk on {which}: {why}"] if why else []
    if not running and tried.record["state"] != "completed":
        why = wrong_image(testbed.folder, disk, str(live.image("a", disk)))
        found += [f"the source's image: {why}"] if why else []
    return found


def source_image(record: Document, removes: bool, there: bool) -> list[str]:
    """Whether the source's image is there unless it was to be removed and may be, and its record
    says so.

    :param removes: it was to be removed once the VM runs at the destination.
    """
    state = next((disk["source_image"] for disk in record.get("disks", ())), "kept")
    if not there and not (removes and record["state"] == "completed"):
        return ["the source's image is gone"]
    if state == "unknown":
        return []
    if there and removes and record["state"] == "completed" and not _told_why(record):
        return ["the source's image is there, and the record does not say why"]
    told = "kept" if there else "removed"
    return [] if state == told else [f"the source's image is {told}, and its record says {state}"]


def _told_why(record: Document) -> bool:
    return any(problem["code"] == "source_image_kept" for problem in record["problems"])


def guest_passes(vm: lab.LabVm) -> list[GuestPass]:
    """Those that it has told, on whichever host."""
    with vm.serial.open(errors="replace") as lines:
        return [event for event in parse_serial(lines) if isinstance(event, GuestPass)]


def memory(passes: Sequence[GuestPass], before: int) -> list[str]:
    """Whether the guest has gone over its memory since, from the beginning to the end, and found
    all that it had written.

    :param before: how many passes there were by then; one may have been under way.
    """
    last = {one.worker: one for one in passes}
    if not last or min(one.number for one in last.values()) < before + 2:
        return ["the guest has not gone over its memory since"]
    counts = [one.wrong for one in last.values() if one.wrong is not None]
    if len(counts) < len(last):
        return ["the guest does not check its memory"]
    words = sum(counts)
    return [f"{words} words of the guest's memory are not what it wrote"] if words else []


def _record(record: Document) -> list[str]:
    found: list[str] = []
    if record["state"] == "failed" and not record["failure"]:
        found.append("it failed, and does not say why")
    if record["abort"] == "requested":
        found.append("its abort is still only requested")
    return found


def _stored(testbed: FaultTestbed, tried: Try) -> list[str]:
    """Of the records themselves, past the service."""
    found: list[str] = []
    with testbed.store() as store:
        id = UUID(tried.migration)
        samples = store.migrations.samples(id)
        moments = [sample.at_ms for sample in samples]
        if moments != sorted(moments):
            found.append("its samples are not in order")
        if len(samples) != store.migrations.sample_count(id):
            found.append("samples are lost")
        names = {"", *(service.name for service in store.services.all())}
        held = set().union(*(store.services.operations_of(name) for name in names))
        if tried.ended and tried.migration in held:
            found.append("it still has the VM to itself")
        if store.audit.check().broken_at is not None:
            found.append("the audit log is broken")
        if any(store.services.orders(name) for name in names):
            found.append("a job that nobody begins")
    return found
