"""What it costs to watch a migration at 20 Hz.

CPU: of the service, while it carries a migration that is held for some seconds, samples it 20
times a second, stores the samples and tells whoever follows; less what the same service uses
when idle. Time: the same migration, watched at 20 Hz and only waited for, in pairs whose order
alternates; of stopped QEMUs full of bytes that cannot be left out, over loopback without a limit.

    python -m tests.perf.sampling_overhead [PAIRS]
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from tests.support.hosts.live import wait_for
from tests.support.qemus.qemu import cpu_s, installed, running
from vmtune.admin.demo.service import running_service
from vmtune.client.connection.http import Client
from vmtune.engine.watch import watch
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.model.migration.record import Snapshot
from vmtune.stats.compare import compare
from vmtune.stats.model import Criterion, Sample

HZ = 20
PAIRS = 10
CPU_REPEATS = 5
WATCHED_S = 6.0
HELD = "2MiB/s"
MEMORY_MIB = 768
FILLED_MIB = 512
VALUES = {"max_bandwidth_bytes_per_s": 0}


MACHINE = (
    *("-machine", "pc", "-accel", "tcg", "-m", f"{MEMORY_MIB}M", "-S"),
    *("-nodefaults", "-display", "none"),
)
STARTS_WITHIN_S = 60.0


@contextmanager
def pair(at: Path, filled: Path) -> Iterator[tuple[UUID, Path, Path]]:
    """A source and a destination that waits for it: the VM, and their folders."""
    vm, source, destination = uuid4(), at / "a", at / "b"
    full = ("-device", f"loader,file={filled},addr=0x2000000,force-raw=on")
    arriving = ("-incoming", "defer")
    with (
        running(installed(), source, uuid=vm, machine=MACHINE, extra=full),
        running(installed(), destination, uuid=vm, machine=MACHINE, extra=arriving),
    ):
        asyncio.run(until_it_answers(source))
        yield vm, source, destination


async def until_it_answers(where: Path) -> None:
    """It fills its memory first."""
    driver = QmpDriver(f"qmp+unix://{where}", greeting_timeout_s=STARTS_WITHIN_S)
    try:
        await driver.list_vms()
    finally:
        await driver.close()


def share_of_a_core(pid: int) -> float:
    """What a process uses of one core from now on, in percent."""
    began, used = time.monotonic(), cpu_s(pid)
    time.sleep(WATCHED_S)
    return 100 * (cpu_s(pid) - used) / (time.monotonic() - began)


def watching_costs(at: Path, filled: Path) -> tuple[list[float], list[float]]:
    """The service's share of a core, idle and while it watches."""
    os.environ["VMTUNE_SAMPLE_HZ"] = str(HZ)
    idle, busy = [], []
    with running_service(at) as service:
        held = {"name": "held", "values": {"max_bandwidth_bytes_per_s": HELD}}
        service.client.post("/profiles", held)
        for repeat in range(CPU_REPEATS):
            with pair(at / str(repeat), filled) as (vm, source, destination):
                for name, where in (("a", source), ("b", destination)):
                    service.client.post("/hosts", {"name": name, "uri": f"qmp+unix://{where}"})
                idle.append(share_of_a_core(service.pid))
                busy.append(while_it_migrates(service.client, service.pid, vm))
                for name in "ab":
                    service.client.delete(f"/hosts/{name}")
    return idle, busy


def while_it_migrates(client: Client, pid: int, vm: UUID) -> float:
    """The share while the service watches the VM's migration."""
    order = {"vm": str(vm), "destination": "b", "profile": "held"}
    where = f"/migrations/{client.post('/migrations', order)['id']}"
    wait_for(lambda: client.get(where)["state"] == "active", "the migration to run")
    before = len(list(client.items(f"{where}/samples")))
    share = share_of_a_core(pid)
    seen = len(list(client.items(f"{where}/samples"))) - before
    # It must have looked as often as it was told to, or the cost says nothing.
    assert seen >= 0.8 * HZ * WATCHED_S, f"only {seen} samples"
    client.delete(where)
    wait_for(lambda: client.get(where)["state"] == "cancelled", "the migration to end")
    return share


async def migrate(vm: UUID, source: Path, destination: Path, watched: bool) -> float:
    """Milliseconds that QEMU says the migration took."""
    here, there = QmpDriver(f"qmp+unix://{source}"), QmpDriver(f"qmp+unix://{destination}")
    looks: list[Snapshot] = []

    async def look(snapshot: Snapshot) -> None:
        looks.append(snapshot)

    try:
        handle = await here.start_migration(MigrateOrder(vm, VALUES, {}), there)
        if watched:
            await watch(here, vm, HZ, look, handle)
        await handle.wait()
        totals = (await here.migration(vm)).totals
        assert totals is not None
        assert totals.transferred_bytes > FILLED_MIB << 20
        assert bool(looks) == watched
        return float(totals.total_time_ms)
    finally:
        await here.close()
        await there.close()


def times(at: Path, filled: Path, pairs: int) -> dict[str, list[float]]:
    """Both arms' times; a warm-up pair is thrown away."""
    found: dict[str, list[float]] = {"watched": [], "unwatched": []}
    for number in range(-1, pairs):
        arms = list(found) if number % 2 else list(reversed(found))
        for arm in arms:
            with pair(at / f"{number}-{arm}", filled) as (vm, source, destination):
                took = asyncio.run(migrate(vm, source, destination, arm == "watched"))
            if number >= 0:
                found[arm].append(took)
    return found


def main() -> None:
    """Measure and report."""
    where = environment()
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    with folder() as at:
        filled = at / "filled"
        filled.write_bytes(os.urandom(FILLED_MIB << 20))
        idle, busy = watching_costs(at, filled)
        found = times(at, filled, pairs)
    costs = [b - i for b, i in zip(busy, idle, strict=True)]
    criterion = Criterion("total_time_ms", unit="ms", resolution=1.0)
    arms = [Sample.of(arm, found[arm], blocks=True) for arm in ("unwatched", "watched")]
    compared = compare(*arms, criterion)
    print(f"service, idle: {spread(idle)} % of a core; watching at {HZ} Hz: {spread(busy)} %")
    print(f"migration of {FILLED_MIB} MiB, unwatched: {spread(found['unwatched'])} ms")
    print(f"watched at {HZ} Hz: {spread(found['watched'])} ms, {pairs} pairs")
    print(f"watched against unwatched: {compared.verdict}: {compared.reason}")
    checks = [
        Check(f"watching at {HZ} Hz, median", statistics.median(costs), "% of a core", 2, "max")
    ]
    if compared.test is not None:
        p = compared.test.p
        checks.append(Check("p that watching changes no time", p, "", 0.05, "min"))
    raw = {"idle_percent": idle, "watching_percent": busy, "times_ms": found}
    finish("sampling_overhead", checks, raw, where)


if __name__ == "__main__":
    main()
