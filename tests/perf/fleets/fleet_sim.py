"""What a fleet of 1,000 hosts and 50,000 VMs costs, on simulated hosts: that twenty evacuations at
once keep every limit, that a VM costs as much in a large fleet as in a small one, and how soon
lists and explain answer.

The service is whole: store on disk, queue, jobs, preflight, records, events. Only the hosts are
not there: their VMs move in an instant. CPU time of this process is counted, not time that passes,
and divided by the VMs that moved.
"""

from __future__ import annotations

import asyncio
import logging
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from tests.support.simulated.fleet import Fleet
from tests.support.simulated.world import World, fleet_world
from vmtune.model.evacuation.evacuation import EvacuationState
from vmtune.model.host.inventory import Host
from vmtune.model.migration.admission import Limits
from vmtune.model.profile import Target
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.services.evacuations.evacuations import EvacuationStatus
from vmtune.services.evacuations.plan import EvacuationRequest
from vmtune.services.inventory_lists import InventoryLists, VmFilter
from vmtune.services.queries import Queries

VMS_A_HOST = 50
SIZES = (10, 100, 1000)
"""Hosts: 500, 5,000 and 50,000 VMs."""
TURNS = 5
SEED = 1
EVACUATED = 20
EVACUATED_FOR_COST = 2
"""In the fleet of ten hosts others must be left to go to, and the same in each is compared."""
LIMITS = Limits()
READS = 20
_EVERY_PAGE = 50


@dataclass(frozen=True)
class Cost:
    """What moving cost.

    :param cpu_ms: CPU time for each VM that moved.
    :param passed_s: time that passed, of all.
    """

    moved: int
    cpu_ms: float
    passed_s: float


def make(hosts: int) -> Fleet:
    """A fleet whose hosts have room for half as many VMs again."""
    sim = Fleet(lasts_s=0.0)
    for number in range(hosts):
        sim.add(f"h{number:04}", VMS_A_HOST, room=(VMS_A_HOST * 3 // 2) << 30)
    return sim


def remember(it: World, sim: Fleet) -> None:
    """Hosts and VMs as a service knows them that has run for a while."""
    now = datetime.now(UTC)
    for name in sim.hosts:
        it.store.hosts.add(Host(name, f"qemu+tcp://{name}/system", "", "", now))
    for name, host in sim.hosts.items():
        it.store.vms.remember_all(name, {vm.uuid: vm.name for vm in host.vms.values()}, now)


async def evacuate(it: World, names: list[str]) -> tuple[list[EvacuationStatus], Cost]:
    """Empty these hosts at once."""
    cpu, passed = time.process_time(), time.perf_counter()
    begun = [await it.evacuations.start(EvacuationRequest(name)) for name in names]
    for status in begun:
        await it.jobs.wait(str(status.record.id))
    cpu, passed = time.process_time() - cpu, time.perf_counter() - passed
    done = [await it.evacuations.get(each.record.host, each.record.id) for each in begun]
    moved = sum(each.tally.moved_bytes >> 30 for each in done)
    return done, Cost(moved, cpu / max(moved, 1) * 1000, passed)


async def slowest_ms(work: Callable[[], Awaitable[object]]) -> float:
    """The slowest of several, after one that nobody counts."""
    await work()
    times = []
    for _ in range(READS):
        began = time.perf_counter()
        await work()
        times.append((time.perf_counter() - began) * 1000)
    return max(times)


async def reads(it: World, sim: Fleet) -> dict[str, float]:
    """How long lists and explain take, in milliseconds, each the slowest of twenty."""
    queries = Queries(it.store, it.hosts, BUILT_IN)
    inventory = InventoryLists(it.store, it.hosts)
    last = sim.hosts[max(sim.hosts)]
    vm = next(iter(last.vms))
    await it.profiles.create("p", {"downtime_limit_ms": 200})
    await it.assignments.add(Target.HOST, last.name, "p")

    async def explain() -> object:
        host, _, _ = await it.hosts.locate(vm)
        return await it.assignments.explain(vm, host)

    async def migrations() -> object:
        page = await queries.migrations(None, None, None, None, None, _EVERY_PAGE)
        return await it.admission.positions([record.id for record in page.items])

    return {
        "hosts": await slowest_ms(lambda: inventory.hosts(None, _EVERY_PAGE)),
        "vms of a host": await slowest_ms(
            lambda: inventory.vms(VmFilter(host=last.name), None, _EVERY_PAGE)
        ),
        "vms": await slowest_ms(lambda: inventory.vms(VmFilter(), None, _EVERY_PAGE)),
        "migrations": await slowest_ms(migrations),
        "evacuations": await slowest_ms(lambda: it.evacuations.list(None, (), None, _EVERY_PAGE)),
        "explain": await slowest_ms(explain),
    }


async def measure(at: Path, hosts: int, whole: bool) -> tuple[Cost, list[Check], dict[str, object]]:
    """One fleet: what a VM costs; if *whole*, all the rest too."""
    sim = make(hosts)
    checks: list[Check] = []
    raw: dict[str, object] = {"hosts": hosts, "vms": hosts * VMS_A_HOST}
    async with fleet_world(at, sim, LIMITS, remember=remember) as it:
        names = list(sim.hosts)
        await evacuate(it, names[:1])  # warm: imports, caches, the first pages of the database
        done, cost = await evacuate(it, names[1 : 1 + EVACUATED_FOR_COST])
        raw["cost"] = {"moved": cost.moved, "cpu_ms": cost.cpu_ms, "passed_s": cost.passed_s}
        if whole:
            some = names[100 : 100 + EVACUATED]
            sim.most.clear()
            sim.lasts_s = 0.05  # so that limits are reached
            done, large = await evacuate(it, some)
            raw["twenty"] = {"moved": large.moved, "cpu_ms": large.cpu_ms,
                             "passed_s": large.passed_s, "most": dict(sim.most)}  # fmt: skip
            whole = sum(each.record.state is EvacuationState.COMPLETED for each in done)
            # One may arrive where the next of the twenty is ordered, and moves on from there.
            twice = sum(count > 1 for count in sim.sent.values())
            checks += [
                Check("hosts emptied of twenty", whole, "", EVACUATED, "min"),
                Check("most at once from a host", sim.most["outgoing"], "", LIMITS.outgoing, "max"),
                Check("most at once to a host", sim.most["incoming"], "", LIMITS.incoming, "max"),
                Check("most at once of all", sim.most["all"], "", LIMITS.all, "max"),
                Check("VMs ordered twice from one host", twice, "", 0, "max"),
            ]
            told = await reads(it, sim)
            raw["reads_ms"] = told
            checks += [Check(f"{name}, slowest", took, "ms", 100, "max")
                       for name, took in told.items()]  # fmt: skip
    return cost, checks, raw


async def run() -> tuple[list[Check], dict[str, object]]:
    """All sizes in turns, the order drawn anew each time; the first fleet does not count."""
    sizes = [int(text) for text in sys.argv[1:]] or list(SIZES)
    chance = random.Random(SEED)
    costs: dict[int, list[float]] = {hosts: [] for hosts in sizes}
    checks: list[Check] = []
    raw: dict[str, object] = {}
    with folder() as at:
        await measure(at, min(sizes), whole=False)
    for turn in range(TURNS):
        chance.shuffle(sizes)
        for hosts in sizes:
            last = turn == TURNS - 1
            with folder() as at:
                cost, found, told = await measure(at, hosts, last and hosts == max(SIZES))
            print(
                f"{hosts:5,} hosts, {hosts * VMS_A_HOST:6,} VMs: {cost.cpu_ms:.1f} ms of CPU for "
                f"each of {cost.moved} VMs that moved, in {cost.passed_s:.1f} s",
                flush=True,
            )
            costs[hosts].append(cost.cpu_ms)
            checks += found
            raw[f"{hosts} hosts, turn {turn + 1}"] = told
    medians = {hosts: statistics.median(each) for hosts, each in sorted(costs.items())}
    for hosts, each in sorted(costs.items()):
        print(f"{hosts:5,} hosts: {spread(each)} ms of CPU a VM")
    apart = max(medians.values()) / min(medians.values())
    raw["cpu_ms_a_vm"] = medians
    checks.insert(0, Check("cost of a VM, dearest against cheapest fleet", apart, "x", 1.2, "max"))
    return checks, raw


def main() -> None:
    """Measure and report."""
    # A line for each VM that simulated hosts do not have any more would cost more than it tells.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    where = environment()
    checks, raw = asyncio.run(run())
    finish("fleet_sim", checks, raw, where)


if __name__ == "__main__":
    main()
