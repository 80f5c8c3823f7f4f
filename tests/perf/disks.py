"""How long a migration takes that copies a disk, by vmtune and by virsh, and whether all arrives.

Two machines with file systems of their own. The same VM, whose guest writes to the disk and to its
memory all the time, goes there and back by three ways in turns: ``virsh migrate
--copy-storage-all``, vmtune with the same, and vmtune with other settings. Counted from starting
virsh until it ends, and from the POST until the migration has ended, as its record says. After each
the image at the destination is compared with what it was made of, and with what the guest writes.

    SEED=1 python -m tests.perf.disks [times|checksums [MIGRATIONS]]
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime

from tests.perf.report import Check, environment, finish, spread
from tests.support.live import Live
from tests.support.local_disks import (
    MIB,
    VIRSH,
    LocalDisk,
    make_disk,
    own_file_systems,
    remove,
    vm_on,
    wrong_on,
)
from tests.support.machines import live_machines, said
from vmtune import lab
from vmtune.model.workload import Workload

SEED = os.environ.get("SEED", "1")
GIB = 1 << 30
TIMED_BYTES, SMALL_BYTES = 4 * GIB, 96 * MIB
TIMED, CHECKED = 9, 50
GUEST = Workload(region_bytes=128 * MIB, idle_ms=500, check=1)
"""It writes to the disk while it rests."""
MEMORY_BYTES = 256 * MIB
ARMS = ("virsh", "vmtune", "chosen")
SAME = {"copy_storage": "on"}
CHOSEN = {**SAME, "downtime_limit_ms": "500ms"}
"""No parallel channels: two cores are not free here (:mod:`vmtune.intent.choosing`), and the memory
takes 0.3 s of some 9, so that they could save little."""
_LOOK_EVERY_S = 0.25
"""Each look takes the two cores some milliseconds."""
FORMATS = ("qcow2", "raw")


@dataclass
class Found:
    """What came of the migrations so far.

    :param times_ms: of each arm.
    :param wrong: what does not hold of images, one for each that has something.
    """

    times_ms: dict[str, list[float]] = field(default_factory=lambda: {arm: [] for arm in ARMS})
    checked: int = 0
    wrong: list[str] = field(default_factory=list)


def migrate(live: Live, arm: str, here: int, vm: lab.LabVm) -> float:
    """Milliseconds that a migration by an arm takes, from machine *here* to the other."""
    source, there = live.status.hosts[here], live.status.hosts[1 - here]
    os.sync()  # what was written to look at the last one's image
    begun = time.time()
    if arm == "virsh":
        flags = ("--live", "--p2p", "--persistent", "--undefinesource", "--copy-storage-all")
        to = f"qemu+tls://{there.name}/system"
        said(source, *VIRSH, "migrate", *flags, vm.name, to)
    else:
        values = SAME if arm == "vmtune" else CHOSEN
        body = {"vm": vm.uuid, "destination": "ab"[1 - here], "values": values}
        record = live.client.post("/migrations", body)
        while not record["ended"]:
            time.sleep(_LOOK_EVERY_S)
            record = live.client.get(f"/migrations/{record['id']}")
        assert record["state"] == "completed", record["failure"]
        return (datetime.fromisoformat(record["ended_at"]).timestamp() - begun) * 1000
    return (time.time() - begun) * 1000


def go(live: Live, vm: lab.LabVm, disk: LocalDisk, rounds: int, found: Found) -> None:
    """So many rounds of all arms, each of which begins another one and is on either machine."""
    here = 0
    for round_ in range(rounds):
        shift = round_ % len(ARMS)
        for arm in (*ARMS[shift:], *ARMS[:shift]):
            took = migrate(live, arm, here, vm)
            remove(live.status.hosts[here], disk)
            here = 1 - here
            wrong = wrong_on(live, live.status.hosts[here], vm, disk)
            found.checked += 1
            found.times_ms[arm].append(took)
            print(f"{disk.format}, {arm}: {took:.0f} ms {wrong or 'all there'}", flush=True)
            if wrong:
                found.wrong.append(f"{disk.format}, {arm}: {wrong}")


def run(size_bytes: int, formats: tuple[str, ...], rounds: int) -> Found:
    """So many rounds for each format, each with an image and a VM of its own."""
    found = Found()
    with live_machines() as live:
        own_file_systems(live, 2 * size_bytes + GIB // 2)
        for format in formats:
            disk = make_disk(live, size_bytes, format, f"{SEED} {format}")
            with vm_on(live, disk, GUEST, MEMORY_BYTES) as vm:
                go(live, vm, disk, rounds, found)
    return found


def _later(found: Found, arm: str) -> list[float]:
    """By how many percent an arm took longer than virsh, in each round."""
    pairs = zip(found.times_ms[arm], found.times_ms["virsh"], strict=True)
    return [(ours / theirs - 1) * 100 for ours, theirs in pairs]


def main() -> None:
    """Measure and report."""
    where = environment()
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    checks: list[Check] = []
    raw: dict[str, object] = {"seed": SEED}
    wrong: list[str] = []
    checked = 0
    if part in ("", "times"):
        found = run(TIMED_BYTES, FORMATS[:1], number or TIMED)
        for arm in ARMS:
            print(f"{arm}: {spread(found.times_ms[arm])} ms")
        for arm, bound in (("vmtune", 3), ("chosen", 0)):
            later = _later(found, arm)
            print(f"{arm} later than virsh by {spread(later)} %")
            name = f"{arm}: longer than virsh, median of {len(later)}"
            checks.append(Check(name, statistics.median(later), "%", bound, "max"))
        raw["times_ms"] = found.times_ms
        wrong, checked = found.wrong, found.checked
    if part in ("", "checksums"):
        rounds = -(-(number or CHECKED) // (len(ARMS) * len(FORMATS)))
        found = run(SMALL_BYTES, FORMATS, rounds)
        wrong, checked = wrong + found.wrong, checked + found.checked
    raw |= {"wrong": wrong, "checked": checked}
    checks.append(Check(f"images that are wrong, of {checked}", len(wrong), "", 0, "max"))
    finish("disks", checks, raw, where)


if __name__ == "__main__":
    main()
