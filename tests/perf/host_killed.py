"""How much later ten operations on two hosts are while a third one dies.

Three machines of the lab, reached over SSH, and a service on the first. Ten operations at a time,
each a plan, an application with read-back and its revert of one VM, on VMs of the first and the
second host. In turns: all is well; the third host's sshd is killed as they begin; its libvirtd is.

    python -m tests.perf host_killed
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.perf.report import Check, environment, finish, spread
from tests.support.hosts.live import Live, wait_for
from tests.support.hosts.machines import by_its_bus, live_machines, said, why_no_machines
from vmtune import lab
from vmtune.client.connection.errors import Refused
from vmtune.model.workload import Workload

ROUNDS, OPERATIONS = 5, 10
MOST = 1.2
SMALL = Workload(region_bytes=1 << 20, idle_ms=1000)
KILLED = {
    "sshd": (
        "for pid in $(pgrep --ns $$ --nslist net -x sshd); do kill -KILL $pid; done",
        "/usr/sbin/sshd",
    ),
    "libvirtd": (
        "kill -KILL $(cat /run/libvirtd.pid)",
        "/usr/sbin/libvirtd --daemon --listen --pid-file /run/libvirtd.pid",
    ),
}


def operation(live: Live, vm: str) -> float:
    """One operation; how long it took, in milliseconds."""
    began = time.perf_counter()
    live.client.post(f"/vms/{vm}/plan", {"profile": "paced"})
    applied = live.client.post(f"/vms/{vm}/applications", {"profile": "paced"})
    assert applied["state"] == "applied", applied
    reverted = live.client.post(f"/applications/{applied['id']}/revert", {})
    assert reverted["state"] == "reverted", reverted
    return (time.perf_counter() - began) * 1000


def ten(live: Live, vms: list[str], breaks: str = "") -> list[float]:
    """Ten at a time, the third host broken as they begin."""
    with ThreadPoolExecutor(OPERATIONS) as pool:
        begun = [pool.submit(operation, live, vm) for vm in vms]
        if breaks:
            said(by_its_bus(live.host("c")), "sh", "-ec", breaks)
        return [each.result() for each in begun]


@contextmanager
def three() -> Iterator[tuple[Live, list[str]]]:
    """Three machines, and ten VMs on the first and the second."""
    with live_machines(hosts=3) as live:
        for name, host in zip("abc", live.status.hosts, strict=True):
            uri = f"qemu+ssh://root@{host.name}/system"
            live.client.post("/hosts", {"name": name, "uri": uri, "peer_uri": uri})
        live.profile("paced", downtime_limit_ms=450)
        vms = []
        for number in range(OPERATIONS):
            settings = lab.VmSettings(name=f"vm{number}", memory_bytes=64 << 20, workload=SMALL)
            vms.append(lab.define_vm(live.settings, settings, host="ab"[number % 2]).uuid)
        yield live, vms


def reached(live: Live) -> bool:
    """Whether the third host answers the service."""
    try:
        live.client.get("/hosts/c/findings")
    except Refused:
        return False
    return True


def main() -> None:
    """Measure and report."""
    if why := why_no_machines():
        raise SystemExit(why)
    where = environment()
    usual: list[float] = []
    dead: dict[str, list[float]] = {what: [] for what in KILLED}
    with three() as (live, vms):
        ten(live, vms)
        for _ in range(ROUNDS):
            usual += ten(live, vms)
            for what, (breaks, restores) in KILLED.items():
                dead[what] += ten(live, vms, breaks)
                said(by_its_bus(live.host("c")), "sh", "-ec", restores)
                wait_for(lambda: reached(live), "the third host to be reached again")
    print(f"operation, all is well: {spread(usual)} ms, {len(usual)} operations")
    checks = []
    for what, times in dead.items():
        print(f"operation, {what} of the third host killed: {spread(times)} ms")
        ratio = statistics.median(times) / statistics.median(usual)
        checks.append(Check(f"{what} killed, median by usual", ratio, "times", MOST, "max"))
        latest = max(times) / max(usual)
        checks.append(Check(f"{what} killed, latest by the latest", latest, "times", MOST, "max"))
    finish("host_killed", checks, {"usual_ms": usual, **dead}, where)


if __name__ == "__main__":
    main()
