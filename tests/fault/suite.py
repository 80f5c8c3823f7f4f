"""Tries a fault many times, each at a random moment of a fresh migration."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fault.checks import Try, guest_passes, settings_of, wrong
from tests.fault.direct import DirectLive
from tests.fault.faults import FAULTS, Fault
from tests.fault.testbed import FaultTestbed, Kind
from tests.support.hosts.live import wait_for
from tests.support.hosts.local_disks import LocalDisk, make_disk, vm_on
from vmtune import lab
from vmtune.client.connection.errors import ClientError, Refused
from vmtune.client.connection.http import Document
from vmtune.model.workload import Workload

PROFILE = "put-back"
VALUES = {
    "max_bandwidth_bytes_per_s": "24MiB/s",
    "downtime_limit_ms": 450,
    "multifd": True,
    "multifd_channels": 3,
}
POSTCOPY = "post-copy"
POSTCOPY_VALUES = {
    "max_bandwidth_bytes_per_s": "24MiB/s",
    "max_postcopy_bandwidth_bytes_per_s": "16MiB/s",
    "postcopy": True,
}
"""Some four seconds in post-copy, of the same workload."""
AT_ONCE = [{"when": {"after_iterations": 0}, "then": {"do": "postcopy"}}]
WORKLOAD = Workload(region_bytes=64 << 20, idle_ms=60_000)
"""One pass over 64 MiB, then rest: at 24 MiB/s some three seconds, so that every phase is hit."""
CHECKED = Workload(region_bytes=64 << 20, idle_ms=1000, check=1)
"""In post-copy: the guest looks each second whether all its memory is what it wrote."""
WITH_DISK = Workload(region_bytes=64 << 20, idle_ms=5000, check=1)
"""It rests for long enough to migrate meanwhile, and writes to its disk then."""
COPYING = Workload(region_bytes=24 << 20, idle_ms=2000, check=1)
DISK = lab.DiskSettings(ide=True, shareable=True, stops=True)
COPIES = "copies-disks"
COPIES_VALUES = {
    "copy_storage": True,
    "max_bandwidth_bytes_per_s": "24MiB/s",
    "downtime_limit_ms": 450,
}
REMOVES = "removes-disks"
REMOVES_VALUES = {**COPIES_VALUES, "copy_source_images": "remove"}
COPIED_BYTES = 96 << 20
"""Half of it is full: some two seconds of copying, then one or two of memory."""
_SETTLES_WITHIN_S = 120
_SETTLES_WHEN_MENDED_WITHIN_S = 300
"""TCP tries again after as long as it has waited before: up to two minutes."""
_ASKED_WITHIN_S = 90
"""A guest that writes to a disk needs some 20 s for two passes, and more on a busy machine."""


@dataclass(frozen=True)
class Tried:
    """What came of a try.

    :param fault: by its short name.
    :param number: with *seed* it says at which moment and how the fault was brought about.
    :param moment_s: when, after the migration was ordered.
    :param state: how the migration ended.
    :param wrong: what did not hold.
    """

    fault: str
    seed: int
    number: int
    moment_s: float
    note: str
    state: str
    took_s: float
    wrong: tuple[str, ...] = ()

    def __str__(self) -> str:
        verdict = "; ".join(self.wrong) or "nothing lost"
        return (
            f"{self.number:3} at {self.moment_s:.2f} s {self.note}: {self.state} "
            f"({self.took_s:.0f} s): {verdict}"
        )


def try_often(
    testbed: FaultTestbed,
    fault: str,
    numbers: Iterable[int],
    seed: int,
    say: Callable[[Tried], None] = print,
) -> list[Tried]:
    """Try a fault. What happens in a try follows from the seed and its number alone.

    :param fault: by its short name.
    :param say: is told of each try.
    """
    profiles = {each["name"] for each in testbed.live.client.items("/profiles")}
    if PROFILE not in profiles:
        testbed.live.profile(PROFILE, **VALUES)
        body = {"name": POSTCOPY, "values": POSTCOPY_VALUES, "steps": AT_ONCE}
        testbed.live.client.post("/profiles", body)
        testbed.live.profile(COPIES, **COPIES_VALUES)
        testbed.live.profile(REMOVES, **REMOVES_VALUES)
    found: list[Tried] = []
    for number in numbers:
        one = _try(testbed, fault, number, seed)
        testbed.revive()
        found.append(one)
        say(one)
    return found


def _try(testbed: FaultTestbed, name: str, number: int, seed: int) -> Tried:
    fault = FAULTS[name]
    chance = random.Random(f"{seed} {name} {number}")
    begun = time.monotonic()
    workload = CHECKED if fault.postcopy else WITH_DISK if fault.disk else WORKLOAD
    workload = COPYING if fault.kind.copies else workload
    removes = fault.kind.copies and number % 4 > 1  # with both formats
    with _vm(testbed, fault, workload, f"{seed} {number}") as (vm, copied):
        before = settings_of(testbed, vm)
        tried = Try(number, vm, "", before, dead=fault.dead, stays=fault.stays, copied=copied)
        tried.removes = removes
        moment_s = chance.uniform(0, fault.within_s)
        copying = REMOVES if removes else COPIES
        profile = copying if copied else POSTCOPY if fault.postcopy else PROFILE
        tried.migration = testbed.live.migrate(vm, "b", profile=profile)["id"]
        if fault.postcopy:
            wait_for(lambda: _has_switched(testbed, tried.migration), "post-copy")
        time.sleep(moment_s)
        tried.note = fault.inject(testbed, tried, chance)
        try:
            tried.record = _ended(testbed, tried)
        finally:
            if fault.mend is not None:
                fault.mend(testbed)
        told = {problem["code"] for problem in tried.record.get("problems", ())}
        silent = bool(fault.says) and not tried.ended and not fault.says & told
        if fault.mend is not None and not tried.ended:
            tried.note += f"; {tried.record['state']} until it was mended"
            tried.record = _ended(testbed, tried, _SETTLES_WHEN_MENDED_WITHIN_S)
        state = tried.record["state"]
        if workload.check:
            tried.passes = max((one.number for one in guest_passes(vm)), default=0)
        broken = tuple(_twice_wrong(testbed, tried))
        if silent:
            broken = (*broken, f"the record did not say why it waits: {sorted(told)}")
    took_s = time.monotonic() - begun
    return Tried(name, seed, number, round(moment_s, 2), tried.note, state, took_s, broken)


@contextmanager
def _vm(
    testbed: FaultTestbed, fault: Fault, workload: Workload, seed: str
) -> Iterator[tuple[lab.LabVm, LocalDisk | None]]:
    """The VM on host a, and its disk where that is copied."""
    format = "qcow2" if seed[-1] in "02468" else "raw"
    live = testbed.live
    if isinstance(live, DirectLive) and fault.kind.copies:
        with (
            live.local_disk(COPIED_BYTES, format, seed) as disk,
            live.vm(workload=workload, copied=disk) as vm,
        ):
            yield vm, disk
        return
    if fault.kind is Kind.DISKS:
        disk = make_disk(testbed.live, COPIED_BYTES, format, seed)
        with vm_on(testbed.live, disk, workload) as vm:
            yield vm, disk
        return
    with testbed.live.vm(workload=workload, disks=(DISK,) if fault.disk else ()) as vm:
        yield vm, None


def _has_switched(testbed: FaultTestbed, migration: str) -> bool:
    """Whether it is in post-copy, or has ended."""
    record = testbed.live.client.get(f"/migrations/{migration}")
    return record["ended"] or any(step["effect"] == "done" for step in record["step_records"])


def _ended(testbed: FaultTestbed, tried: Try, within_s: float = _SETTLES_WITHIN_S) -> Document:
    """The record once it is settled, or as it is after a long while."""
    seen: Document = {"state": "not to be had"}

    def settled() -> bool:
        nonlocal seen
        try:
            seen = testbed.live.client.get(f"/migrations/{tried.migration}")
        except ClientError:
            return False  # the service is busy starting, or its database is away
        return seen["state"] in ("completed", "failed", "cancelled", *tried.stays)

    try:
        wait_for(settled, "the record to be settled", within_s)
    except AssertionError:
        return seen
    return seen


def _twice_wrong(testbed: FaultTestbed, tried: Try) -> list[str]:
    """What does not hold, and still does not a moment later: libvirt puts back what it set a
    moment after the migration's end."""
    broken: list[str] = []
    give_up = time.monotonic() + _ASKED_WITHIN_S
    while time.monotonic() < give_up:
        try:
            broken = wrong(testbed, tried)
        except (ClientError, Refused) as error:
            broken = [f"the service does not say: {error}"]
        if not broken:
            return []
        time.sleep(1)
    return broken


def note(file: Path, tried: Tried) -> None:
    """Add a try to a file, a line for each."""
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(tried)) + "\n")


def noted(file: Path) -> list[Tried]:
    """The tries in a file; none where there is no such file. A last line that was cut short is
    removed: that try is made again."""
    if not file.exists():
        return []
    lines = file.read_text().splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()  # cut short: whoever wrote it was killed
        file.write_text("".join(lines))
    rows = [json.loads(line) for line in lines]
    return [Tried(**{**row, "wrong": tuple(row["wrong"])}) for row in rows]


def left_to_try(done: Iterable[Tried], fault: str, seed: int, tries: int) -> list[int]:
    """The numbers of the tries that a fault lacks, of so many with that seed."""
    there = {one.number for one in done if one.fault == fault and one.seed == seed}
    return [number for number in range(1, tries + 1) if number not in there]


def as_markdown(all_tried: Iterable[Tried]) -> Iterator[str]:
    """The table."""
    found = list(all_tried)
    yield "| fault | where | tries | outcome | nothing lost |"
    yield "|---|---|---:|---|---|"
    for name, fault in FAULTS.items():
        tries = [one for one in found if one.fault == name]
        if not tries:
            continue
        states = Counter(one.state for one in tries)
        outcome = ", ".join(f"{count} {state}" for state, count in states.most_common())
        broken = sum(bool(one.wrong) for one in tries)
        lost = "yes" if not broken else f"NO, in {broken}"
        yield f"| {fault.name} | {fault.kind.value} | {len(tries)} | {outcome} | {lost} |"
