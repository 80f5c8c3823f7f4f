"""How much later a migration becomes active when vmtune starts it than when virsh does.

From the POST, or from starting virsh, until QEMU itself says ``active``: both times are this
machine's clock, the second is QEMU's own time stamp of its MIGRATION event. The same VM goes
there and back between the lab's hosts, untuned, by vmtune and by virsh in turns.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import LAB, folder
from vmtune.admin.demo.service import Service, running_service
from vmtune.client.connection.http import Client
from vmtune.lab import HostStatus, LabVm, VmSettings, define_vm, down, up, virsh
from vmtune.model.workload import Workload

PAIRS = 10
GUEST = VmSettings(
    name="perf",
    memory_bytes=128 << 20,
    workload=Workload(region_bytes=1 << 20, idle_ms=1000),
)


class Observer:
    """Hears QEMU's MIGRATION events of both hosts, with QEMU's own time stamps."""

    status = "active"
    """The one that is waited for."""

    def __init__(self, hosts: tuple[HostStatus, ...]) -> None:
        libvirt.virEventRegisterDefaultImpl()
        threading.Thread(target=self._run, daemon=True).start()
        self._connections = [libvirt.open(host.uri) for host in hosts]
        self._active: list[float] = []
        for connection in self._connections:
            libvirt_qemu.qemuMonitorEventRegister(
                connection, None, "MIGRATION", self._heard, None, 0
            )

    def _run(self) -> None:
        while True:
            libvirt.virEventRunDefaultImpl()

    def _heard(self, *arguments: Any) -> None:  # any: libvirt ships no types
        _, _, _, seconds, micros, details, _ = arguments
        if json.loads(details)["status"] == self.status:
            self._active.append(seconds + micros / 1e6)

    def first_active_after(self, moment: float, within_s: float = 10) -> float:
        """When QEMU first said active after *moment*: the source, or the destination if it
        is quicker to tell."""
        deadline = time.time() + within_s
        while time.time() < deadline:
            later = [when for when in list(self._active) if when >= moment]
            if later:
                return min(later)
            time.sleep(0.005)
        raise TimeoutError("QEMU never said active")


@contextmanager
def stage(
    at: Path, guest: VmSettings = GUEST
) -> Iterator[tuple[Service, tuple[HostStatus, ...], LabVm]]:
    """A lab, a service that knows its hosts, and a VM on the first."""
    lab = up(LAB)
    try:
        with running_service(at) as service:
            for name, host in zip("ab", lab.hosts, strict=True):
                body = {"name": name, "uri": host.uri, "peer_uri": host.peer_uri}
                service.client.post("/hosts", body)
            yield service, lab.hosts, define_vm(LAB, guest)
    finally:
        down(LAB)


def by_vmtune(client: Client, vm: str, to: str, observer: Observer) -> float:
    """Milliseconds until active, started by vmtune."""
    began = time.time()
    record = client.post("/migrations", {"vm": vm, "destination": to})
    active = observer.first_active_after(began)
    while record["state"] not in ("completed", "failed", "cancelled", "unknown"):
        time.sleep(0.1)
        record = client.get(f"/migrations/{record['id']}")
    assert record["state"] == "completed", record
    return (active - began) * 1000


def by_virsh(source: HostStatus, to: HostStatus, vm: str, observer: Observer) -> float:
    """Milliseconds until active, started by virsh with the same flags."""
    began = time.time()
    virsh(
        source.uri,
        *("migrate", "--live", "--p2p", "--persistent", "--undefinesource", vm, to.peer_uri),
    )
    return (observer.first_active_after(began) - began) * 1000


def run(at: Path) -> tuple[list[float], list[float]]:
    """Both arms' times in milliseconds; a warm-up pair is thrown away."""
    ours: list[float] = []
    theirs: list[float] = []
    with stage(at) as (service, hosts, vm):
        observer = Observer(hosts)
        here = 0
        for pair in range(-1, PAIRS):
            for arm in ("vmtune", "virsh") if pair % 2 else ("virsh", "vmtune"):
                there = 1 - here
                if arm == "vmtune":
                    took = by_vmtune(service.client, vm.uuid, "ab"[there], observer)
                else:
                    took = by_virsh(hosts[here], hosts[there], vm.name, observer)
                if pair >= 0:
                    (ours if arm == "vmtune" else theirs).append(took)
                here = there
    return ours, theirs


def main() -> None:
    """Measure and report."""
    where = environment()
    with folder() as at:
        ours, theirs = run(at)
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    print(f"vmtune, from POST to active: {spread(ours)} ms, {PAIRS} pairs")
    print(f"virsh migrate, from its start to active: {spread(theirs)} ms")
    print(f"vmtune later by {spread(differences)} ms")
    checks = [
        Check("vmtune later than virsh, median", statistics.median(differences), "ms", 200, "max")
    ]
    finish("migrate_overhead", checks, {"vmtune_ms": ours, "virsh_ms": theirs}, where)


if __name__ == "__main__":
    main()
