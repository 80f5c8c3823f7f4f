"""How long a migration takes that copies a disk, by vmtune and by virsh, and whether all arrives.

Two machines with file systems of their own. The same VM, whose guest writes to the disk and to its
memory all the time, goes there and back by three ways in turns: ``virsh migrate
--copy-storage-all``, vmtune with the same, and vmtune with other settings. Counted from starting
virsh until it ends, and from the POST until the migration has ended, as its record says. After each
the image at the destination is compared with what it was made of, and with what the guest writes.
What the source's machine sent meanwhile is counted, too: the disk and the memory.

Each round is kept in disks.jsonl of the folder that RESULTS names, if it does: with more of them a
second call goes on where the first ended or was stopped.

    SEED=1 [RESULTS=FOLDER] python -m tests.perf.disks [times|checksums [MIGRATIONS]]
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.perf.kept import Kept
from tests.perf.report import Check, environment, finish, spread
from tests.support.hosts.live import Live
from tests.support.hosts.local_disks import (
    MIB,
    VIRSH,
    LocalDisk,
    make_disk,
    own_file_systems,
    remove,
    vm_on,
    wrong_on,
)
from tests.support.hosts.machines import live_machines, said
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
    :param sent_bytes: by the source's machine, likewise.
    :param wrong: what does not hold of images, one for each that has something.
    """

    times_ms: dict[str, list[float]] = field(default_factory=lambda: {arm: [] for arm in ARMS})
    sent_bytes: dict[str, list[int]] = field(default_factory=lambda: {arm: [] for arm in ARMS})
    checked: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, round_: dict[str, dict[str, Any]]) -> None:
        """Take in what came of a round, by arm."""
        for arm, each in round_.items():
            self.checked += 1
            self.times_ms[arm].append(each["took_ms"])
            self.sent_bytes[arm].append(each["sent_bytes"])
            if each["wrong"]:
                self.wrong.append(f"{arm}: {each['wrong']}")


def sent_bytes(lines: Iterable[str]) -> int:
    """What a machine's cards have sent, by its /proc/net/dev."""
    cards = (line.partition(":") for line in lines if ":" in line)
    return sum(int(counts.split()[8]) for name, _, counts in cards if name.strip() != "lo")


def _sent_bytes(host: lab.HostStatus) -> int:
    return sent_bytes(said(host, "cat", "/proc/net/dev").splitlines())


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


class Stage:
    """The machines with a VM of one format, which come up when the first round needs them."""

    def __init__(self, size_bytes: int, format: str) -> None:
        self._size_bytes = size_bytes
        self._format = format
        self._stack = ExitStack()
        self._up: tuple[Live, lab.LabVm, LocalDisk] | None = None
        self._here = 0

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def round(self, number: int) -> dict[str, dict[str, Any]]:
        """Migrate by all arms, from wherever the VM is; each round begins with another arm."""
        if self._up is None:
            live = self._stack.enter_context(live_machines())
            own_file_systems(live, 2 * self._size_bytes + GIB // 2)
            disk = make_disk(live, self._size_bytes, self._format, f"{SEED} {self._format}")
            vm = self._stack.enter_context(vm_on(live, disk, GUEST, MEMORY_BYTES))
            self._up = live, vm, disk
        shift = number % len(ARMS)
        return {arm: self._one(*self._up, arm) for arm in (*ARMS[shift:], *ARMS[:shift])}

    def _one(self, live: Live, vm: lab.LabVm, disk: LocalDisk, arm: str) -> dict[str, Any]:
        source, there = (live.status.hosts[i] for i in (self._here, 1 - self._here))
        before = _sent_bytes(source)
        took_ms = migrate(live, arm, self._here, vm)
        sent = _sent_bytes(source) - before
        remove(source, disk)
        self._here = 1 - self._here
        wrong = wrong_on(live, there, vm, disk)
        told = f"{took_ms:.0f} ms, {sent / MIB:.0f} MiB sent, {wrong or 'all there'}"
        print(f"{disk.format}, {arm}: {told}", flush=True)
        return {"took_ms": took_ms, "sent_bytes": sent, "wrong": wrong}


def run(kept: Kept, size_bytes: int, formats: tuple[str, ...], rounds: int) -> Found:
    """So many rounds for each format, each with an image and a VM of its own."""
    found = Found()
    for format in formats:
        with Stage(size_bytes, format) as stage:
            for number in range(rounds):
                what = f"{size_bytes} {format} {number}"
                found.add(kept.once(what, lambda n=number: stage.round(n)))
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
    results = os.environ.get("RESULTS")
    file = Path(results) / "disks.jsonl" if results else None
    kept = Kept(file, {"cpu": where["cpu"], "kernel": where["kernel"], "chosen": CHOSEN})
    checks: list[Check] = []
    raw: dict[str, object] = {"seed": SEED}
    wrong: list[str] = []
    checked = 0
    if part in ("", "times"):
        found = run(kept, TIMED_BYTES, FORMATS[:1], number or TIMED)
        for arm in ARMS:
            sent_mib = [each / MIB for each in found.sent_bytes[arm]]
            print(f"{arm}: {spread(found.times_ms[arm])} ms, {spread(sent_mib)} MiB sent")
        for arm, bound in (("vmtune", 3), ("chosen", 0)):
            later = _later(found, arm)
            print(f"{arm} later than virsh by {spread(later)} %")
            name = f"{arm}: longer than virsh, median of {len(later)}"
            checks.append(Check(name, statistics.median(later), "%", bound, "max"))
        raw |= {"times_ms": found.times_ms, "sent_bytes": found.sent_bytes}
        wrong, checked = found.wrong, found.checked
    if part in ("", "checksums"):
        rounds = -(-(number or CHECKED) // (len(ARMS) * len(FORMATS)))
        found = run(kept, SMALL_BYTES, FORMATS, rounds)
        wrong, checked = wrong + found.wrong, checked + found.checked
    raw |= {"wrong": wrong, "checked": checked}
    checks.append(Check(f"images that are wrong, of {checked}", len(wrong), "", 0, "max"))
    finish("disks", checks, raw, where)


if __name__ == "__main__":
    main()
