"""How long it takes to apply ten settings and read them back, by how the host is reached.

On a lab machine, over the service's API: a VM on the service's own machine by libvirt's
socket, and an equal one on the other machine by SSH and by TLS, one way after the other.

    python -m tests.perf apply_transports
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import SETTINGS, interleaved
from tests.support.hosts.live import Live, at_work, wait_for
from tests.support.hosts.machines import live_machines, why_no_machines
from vmtune import lab
from vmtune.model.workload import Workload

REPEATS = 15
MOST_MS = 1000.0
"""No aim is set for libvirt's way: what an operator still does not wait for."""
SMALL = lab.VmSettings(
    name="perf",
    memory_bytes=64 << 20,
    workload=Workload(region_bytes=1 << 20, idle_ms=1000),
    iothreads=1,
)
WAYS = ("unix", "ssh", "tls")


def uri(live: Live, way: str) -> str:
    """Of the host that has the VM, for the service on the first machine."""
    if way == "unix":
        return "qemu:///system"
    login = "root@" if way == "ssh" else ""
    return f"qemu+{way}://{login}{live.host('b').name}/system"


def measure(way: str) -> list[float]:
    """The times of one way, in milliseconds, on machines of its own."""
    with live_machines() as live:
        which = "a" if way == "unix" else "b"
        vm = lab.define_vm(live.settings, SMALL, host=which)
        wait_for(lambda: at_work(vm), "the guest to write")
        live.client.post("/hosts", {"name": which, "uri": uri(live, way)})
        for n, values in enumerate(SETTINGS):
            known = {name: value for name, value in values.items() if "main_loop" not in name}
            live.client.post("/profiles", {"name": f"ten-{n}", "values": known})

        def apply(n: int) -> object:
            done = live.client.post(f"/vms/{vm.uuid}/applications", {"profile": f"ten-{n}"})
            assert done["state"] == "applied", done
            return done

        arm: Callable[[int], object] = apply
        return interleaved((arm,), REPEATS)[0]


def main() -> None:
    """Measure and report."""
    if why := why_no_machines():
        raise SystemExit(why)
    where = environment()
    times = {way: measure(way) for way in WAYS}
    for way, taken in times.items():
        print(f"apply and read back over {way}: {spread(taken)} ms, {REPEATS} repeats")
    checks = [
        Check(f"apply over {way}, median", statistics.median(taken), "ms", MOST_MS, "max")
        for way, taken in times.items()
    ]
    finish("apply_transports", checks, times, where)


if __name__ == "__main__":
    main()
