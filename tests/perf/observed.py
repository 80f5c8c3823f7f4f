"""Whether ``virsh migrate`` is found in time, recorded completely, and not slowed down.

The same VM goes there and back between the lab's hosts by virsh, with the service running and with
it stopped (SIGSTOP) in turns, so that a pair differs in nothing else. It is found when its record
was created; libvirt's start is QEMU's own time stamp of its first MIGRATION event on the source,
``setup``. Both are this machine's clock.
"""

from __future__ import annotations

import os
import signal
import statistics
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tests.perf.migrate_overhead import Observer, stage
from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from vmtune.admin.demo.service import Service
from vmtune.client.connection.http import Client, Document
from vmtune.lab import HostStatus, VmSettings, virsh
from vmtune.model.workload import Workload

TRIES = 20
FOUND_WITHIN_MS = 300
_SETTLES_WITHIN_S = 10.0
GUEST = VmSettings(
    name="perf",
    memory_bytes=256 << 20,
    workload=Workload(region_bytes=64 << 20, idle_ms=60_000),
)


class Starts(Observer):
    """Hears when QEMU is told to migrate."""

    status = "setup"

    def last_after(self, moment: float) -> float:
        """When the source was, of a migration that is over: the destination was before it."""
        return max(when for when in list(self._active) if when >= moment)


def migrate(source: HostStatus, to: HostStatus, name: str) -> float:
    """Milliseconds that virsh takes."""
    began = time.perf_counter()
    virsh(
        source.uri,
        *("migrate", "--live", "--p2p", "--persistent", "--undefinesource", "--bandwidth", "32"),
        *(name, to.peer_uri),
    )
    return (time.perf_counter() - began) * 1000


def record_after(client: Client, known: set[str]) -> Document:
    """The record that has come, once it has ended."""
    deadline = time.monotonic() + _SETTLES_WITHIN_S
    while time.monotonic() < deadline:
        for record in client.items("/migrations"):
            if record["id"] not in known and record["ended"]:
                known.add(str(record["id"]))
                return record
        time.sleep(0.1)
    raise TimeoutError("the migration was not recorded")


def missing(client: Client, record: Document) -> list[str]:
    """What the record does not tell, and one of vmtune's own would."""
    samples = list(client.items(f"/migrations/{record['id']}/samples"))
    told = {
        "trigger": record["trigger"] == "observed",
        "state": record["state"] == "completed",
        "destination": record["destination"],
        "totals": record["totals"],
        "samples": samples,
    }
    return [name for name, there in told.items() if not there]


def run(at: Path) -> tuple[list[float], list[float], list[float], int]:
    """How long until each was found, virsh's times with and without vmtune, and how many records
    are complete; a warm-up pair is thrown away."""
    found: list[float] = []
    watched: list[float] = []
    alone: list[float] = []
    known: set[str] = set()
    whole = 0
    with stage(at, GUEST) as (service, hosts, vm):
        observer = Starts(hosts)
        here = 0
        for pair in range(-1, TRIES):
            for with_vmtune in (True, False) if pair % 2 else (False, True):
                there = 1 - here
                if not with_vmtune:
                    took = _without(service, hosts[here], hosts[there], vm.name)
                    # What it has heard when it goes on is recorded too, and counts for nothing.
                    with suppress(TimeoutError):
                        record_after(service.client, known)
                    if pair >= 0:
                        alone.append(took)
                else:
                    began = time.time()
                    took = migrate(hosts[here], hosts[there], vm.name)
                    record = record_after(service.client, known)
                    if pair >= 0:
                        watched.append(took)
                        found.append(_found_ms(record, observer.last_after(began)))
                        lacking = missing(service.client, record)
                        whole += not lacking
                        if lacking:
                            print(f"incomplete: {lacking}: {record}")
                here = there
    return found, watched, alone, whole


def _without(service: Service, source: HostStatus, to: HostStatus, name: str) -> float:
    """Virsh's time while the service stands still."""
    os.kill(service.pid, signal.SIGSTOP)
    try:
        return migrate(source, to, name)
    finally:
        os.kill(service.pid, signal.SIGCONT)


def _found_ms(record: Document, started: float) -> float:
    return (datetime.fromisoformat(record["created_at"]).timestamp() - started) * 1000


def main() -> None:
    """Measure and report."""
    where = environment()
    with folder() as at:
        found, watched, alone, whole = run(at)
    slower = [a - b for a, b in zip(watched, alone, strict=True)]
    in_time = sum(took <= FOUND_WITHIN_MS for took in found)
    print(f"found after {spread(found)} ms, at most {max(found):.0f} ms, {TRIES} tries")
    print(f"virsh migrate with vmtune watching: {spread(watched)} ms, without: {spread(alone)} ms")
    print(f"slower by {spread(slower)} ms")
    share = statistics.median(slower) / statistics.median(alone) * 100
    checks = [
        Check(f"found within {FOUND_WITHIN_MS} ms", in_time, f"of {TRIES}", TRIES, "min"),
        Check("complete records", whole, f"of {TRIES}", TRIES, "min"),
        Check("virsh migrate slower with vmtune watching, median", share, "%", 5, "max"),
    ]
    figures = {"found_ms": found, "watched_ms": watched, "alone_ms": alone}
    finish("observed", checks, figures, where)


if __name__ == "__main__":
    main()
