"""A small fleet on one machine: 200 QEMUs, and two services that share them on PostgreSQL.

How long a drift scan of all takes, how many of ten migrations that are ordered at once run at
once between the two libvirt hosts of a lab and what is recorded of each, and what each service
costs when nothing happens: its share of a core over half a minute, and its memory. Each service
drives a host of 100 QEMUs without libvirt, whose VMs have a profile of ten settings applied; one
drives the lab's source, the other its destination.

    python -m tests.perf.fleets.fleet [QEMUS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID, uuid4

from tests.perf.fleets.fleet_apply import MACHINE, memory_bytes
from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import SETTINGS, folder, variables
from tests.support.hosts.live import wait_for, why_no_lab
from tests.support.hosts.sharing import LiveFleet, SharingService, live_fleet
from tests.support.qemus.qemu import cpu_s, installed, running
from tests.support.stores.postgres import why_no_postgres
from vmtune.client.connection.http import Document
from vmtune.model.workload import Workload

QEMUS = 200
AT_ONCE = 10
SCANS, SCAN_WITHIN_S = 3, 120
MAX_SCAN_S, MAX_IDLE_PERCENT, MAX_MEMORY_MB = 10.0, 2.0, 250.0
SETTLED_AFTER_S, IDLE_S = 75.0, 30.0
"""In their first minute the jobs' engine looks more often."""
SMALL = {"memory_bytes": 64 << 20, "workload": Workload(region_bytes=24 << 20, idle_ms=60_000)}
"""One pass over 24 MiB, then rest."""
HELD = {"max_bandwidth_bytes_per_s": "2MiB/s", "downtime_limit_ms": 450}
"""So slow that the last has begun before the first has ended."""


@dataclass(frozen=True)
class Idle:
    """A service while nothing happens.

    :param percent: of a core.
    :param memory_bytes: resident, at the end; *max_bytes* at the most so far.
    """

    percent: float
    memory_bytes: int
    max_bytes: int


@contextmanager
def qemus(at: Path, number: int) -> Iterator[list[UUID]]:
    """So many QEMUs, half of them in each of the folders ``at/q1`` and ``at/q2``."""
    uuids = [uuid4() for _ in range(number)]
    with ExitStack() as stack:
        for place, uuid in enumerate(uuids):
            where = at / f"q{1 + place % 2}"
            stack.enter_context(running(installed(), where, f"v{place}", uuid, machine=MACHINE))
        yield uuids


def apply_to_all(services: list[SharingService], uuids: list[UUID]) -> None:
    """Ten settings to each VM, by the service that drives it."""
    services[0].client.post("/profiles", {"name": "ten", "values": SETTINGS[0]})
    with ThreadPoolExecutor(20) as pool:
        work = [
            pool.submit(
                services[place % 2].client.post, f"/vms/{uuid}/applications", {"profile": "ten"}
            )
            for place, uuid in enumerate(uuids)
        ]
        for one in work:
            one.result()


def scan(it: LiveFleet, number: int) -> float:
    """Seconds that a drift scan of all takes, ordered at one of the services."""
    client = it.services[1].client
    begun = time.monotonic()
    client.post("/drift-scans")

    def over() -> bool:
        return not any(each["pending"] for each in client.items("/drift-scans"))

    wait_for(over, "the scans to end", SCAN_WITHIN_S)
    took_s = time.monotonic() - begun
    found = [each["result"] for each in client.items("/drift-scans")]
    checked = sum(each["checked"] for each in found)
    assert checked == number, f"of {number} VMs {checked} were checked: {found}"
    return took_s


def idle(services: list[SharingService]) -> list[Idle]:
    """What each costs over half a minute."""
    pids = [one.process.pid for one in services if one.process is not None]
    used, begun = [cpu_s(pid) for pid in pids], time.monotonic()
    time.sleep(IDLE_S)
    passed = time.monotonic() - begun
    return [
        Idle(
            100 * (cpu_s(pid) - before) / passed,
            memory_bytes(pid, "VmRSS"),
            memory_bytes(pid, "VmHWM"),
        )
        for pid, before in zip(pids, used, strict=True)
    ]


def at_once(it: LiveFleet) -> tuple[int, list[str]]:
    """Order ten migrations together.

    :return: how many ran at the same time at the most, and what is wrong with a record.
    """
    it.profile("held", **HELD)
    with ExitStack() as stack:
        starting = [it.vm(**SMALL) for _ in range(AT_ONCE)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            vms = list(pool.map(lambda one: one.__enter__(), starting))
        for one in starting:
            stack.push(one)
        body = {"destination": "b", "profile": "held"}
        orders = [
            it.services[place % 2].client.post("/migrations", {"vm": vm.uuid, **body})
            for place, vm in enumerate(vms)
        ]
        records = [it.ended(order) for order in orders]
        wrong = [
            f"{vm.name}: {why}"
            for vm, record in zip(vms, records, strict=True)
            for why in _wrong(it, record, it.states(vm))
        ]
    return _together(records), wrong


def _wrong(it: LiveFleet, record: Document, at: dict[str, str]) -> list[str]:
    """What its record lacks."""
    found: list[str] = []
    if record["state"] != "completed":
        found.append(f"it is {record['state']}: {record['failure']}")
    if at != {"b": "running"}:
        found.append(f"it is at {at}")
    if not record["totals"]:
        found.append("there are no figures")
    if record["problems"]:
        found.append(f"{record['problems']}")
    if any(outcome["status"] != "effective" for outcome in record["outcomes"]):
        found.append(f"settings were not effective: {record['outcomes']}")
    samples = list(it.client.items(f"/migrations/{record['id']}/samples"))
    took_s = (_moment(record["ended_at"]) - _moment(record["active_at"])).total_seconds()
    if len(samples) < took_s:  # ten a second are taken
        found.append(f"{len(samples)} samples in {took_s:.0f} s")
    return found


def _together(records: list[Document]) -> int:
    """How many were active at the same time at the most."""
    ends = [(_moment(record["ended_at"]), -1) for record in records if record["active_at"]]
    begins = [(_moment(record["active_at"]), 1) for record in records if record["active_at"]]
    most = now = 0
    for _, change in sorted(ends + begins):
        now += change
        most = max(most, now)
    return most


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def main() -> None:
    """Measure and report."""
    where = environment()
    number = int(sys.argv[1]) if len(sys.argv) > 1 else QEMUS
    if why_no_lab() or why_no_postgres():
        sys.exit(why_no_lab() or why_no_postgres())
    with ExitStack() as stack:
        at = stack.enter_context(folder())
        limit = str(AT_ONCE)
        stack.enter_context(
            variables(VMTUNE_MAX_OUTGOING_MIGRATIONS=limit, VMTUNE_MAX_INCOMING_MIGRATIONS=limit)
        )
        it = stack.enter_context(live_fleet(at, 99))
        started = time.monotonic()
        uuids = stack.enter_context(qemus(at, number))
        for place, service in enumerate(it.services, 1):
            body = {"name": f"q{place}", "uri": f"qmp+unix://{at}/q{place}"}
            service.client.post("/hosts", body)
        apply_to_all(it.services, uuids)
        scans = [scan(it, number) for _ in range(SCANS)]
        print(f"drift scan of {number} VMs: {spread(scans)} s")
        left_s = started + SETTLED_AFTER_S - time.monotonic()
        time.sleep(max(0.0, left_s))
        rests = idle(it.services)
        for service, rest in zip(it.services, rests, strict=True):
            print(
                f"service {service.name}, idle: {rest.percent:.2f} % of a core, "
                f"{rest.memory_bytes / 1e6:.0f} MB, at most {rest.max_bytes / 1e6:.0f} MB so far"
            )
        together, wrong = at_once(it)
        print(f"migrations at once: {together}")
        for line in wrong:
            print(f"  {line}")
    checks = [
        Check(f"drift scan of {number} VMs, slowest", max(scans), "s", MAX_SCAN_S, "max"),
        Check("migrations at once", together, "", AT_ONCE, "min"),
        Check("that are not recorded completely", len(wrong), "", 0, "max"),
        Check(
            "dearer service, idle",
            max(rest.percent for rest in rests), "% of a core", MAX_IDLE_PERCENT, "max",
        ),
        Check(
            "larger service, idle",
            max(rest.memory_bytes for rest in rests) / 1e6, "MB", MAX_MEMORY_MB, "max",
        ),
    ]  # fmt: skip
    raw = {"scans_s": scans, "idle": [asdict(rest) for rest in rests], "wrong": wrong}
    finish("fleet", checks, raw, where)


if __name__ == "__main__":
    main()
