"""How soon the pages of a fleet of 1,000 hosts and 50,000 VMs are answered: lists, sorting, search,
and the overview, asked of the whole application over its socket; and how soon a browser shows the
overview.

Store, routes and the server are real; only the hosts are not there. Every request differs from the
one before: none is answered from kept answers.

    python -m tests.perf.fleets.fleet_pages [HOSTS]
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

from sqlalchemy import insert

from tests.perf.fleets.fleet_sim import VMS_A_HOST, make
from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from tests.support.benchmarks.bench_runs import a_program, fake_tools
from tests.support.examples.migrations import make_migration
from tests.support.served.browser import chromium, free_port, settled, tab, why_no_browser
from tests.support.simulated.fleet import Fleet
from tests.support.stores.databases import empty_database
from vmtune.api.serving.server import Server
from vmtune.api.serving.sockets import listening
from vmtune.api.wiring.deps import open_container
from vmtune.client.connection.http import Client
from vmtune.config.settings import BenchQemu, Settings
from vmtune.model.host.inventory import Host
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.model.plan.tuning_state import TuningState
from vmtune.services.heavy.work import InThreads
from vmtune.storage import Store
from vmtune.storage.repositories.migrations import _MAP
from vmtune.storage.tables.core import MigrationRow, TuningRow
from vmtune.testing.inline_jobs import InlineEngine

HOSTS = 1000
MIGRATIONS = 20_000
TURNS = 20
MAX_MS = 300
LOADS = 5
MAX_PAINT_MS = 1500
_PAINTED = """() => new Promise((resolve) => new PerformanceObserver((list) =>
  resolve(list.getEntries().at(-1).startTime))
  .observe({ type: "largest-contentful-paint", buffered: true }))"""


def fill(store: Store, sim: Fleet) -> None:
    """What a service has that ran for some months."""
    now = datetime.now(UTC)
    for name in sim.hosts:
        store.hosts.add(Host(name, f"qemu+tcp://{name}/system", "", "", now))
    vms = [vm for host in sim.hosts.values() for vm in host.vms.values()]
    for name, host in sim.hosts.items():
        store.vms.remember_all(name, {vm.uuid: vm.name for vm in host.vms.values()}, now)
    states = [TuningState.TUNED] * 96 + [
        TuningState.DRIFTED, TuningState.UNKNOWN, TuningState.PENDING_RESTART, TuningState.DRIFTED
    ]  # fmt: skip
    tunings = [
        {
            "vm": vm.uuid, "state": states[place % 100], "profile": "fast", "revision": 1,
            "application": None, "differing": [], "as_of": now, "since": now,
        }
        for place, vm in enumerate(vms[::2])
    ]  # fmt: skip
    hosts = list(sim.hosts)
    done = make_migration(state=MigrationState.COMPLETED, totals=Totals(30_000, 90, 9, 1 << 30, 5))
    migrations = []
    for number in range(MIGRATIONS):
        vm = vms[number * 7 % len(vms)]
        at = now - timedelta(minutes=MIGRATIONS - number)
        record = replace(
            done, id=uuid4(), vm=vm.uuid, vm_name=vm.name, created_at=at, ended_at=at,
            source=hosts[number % len(hosts)], destination=hosts[(number + 1) % len(hosts)],
        )  # fmt: skip
        row = {**_MAP.columns(record), "downtime_ms": 20 + number % 700, "total_time_ms": 30_000}
        migrations.append({**row, "downtime_exceeded": number % 50 == 0})
    with store._database.write() as session:
        session.execute(insert(TuningRow), tunings)
        session.execute(insert(MigrationRow), migrations)


@contextmanager
def served(at: Path, port: int, sim: Fleet) -> Iterator[Client]:
    """The application over *sim*, at a socket in *at* and a port of loopback."""
    empty_database(at / "vmtune.db")
    settings = Settings(
        state_dir=at,
        runtime_dir=at,
        bench_dir=at / "bench",
        bench_qemus=(BenchQemu("system", a_program(at)),),
        host_check_interval_s=0,
        observe_migrations=False,
        socket_path=at / "vmtune.sock",
        listen_port=port,
    )
    with Store.open(f"sqlite:///{at}/vmtune.db") as store:
        fill(store, sim)
    ready = threading.Event()
    stops: list[Callable[[], object]] = []

    async def serve() -> None:
        async with open_container(
            settings,
            driver_factory=lambda host: sim.driver(host.name),
            jobs=InlineEngine(),
            bench_tools=fake_tools(),
            heavy=InThreads,
        ) as container:
            server = Server(container)
            loop = asyncio.get_running_loop()
            with listening(settings) as sockets:
                stops.append(lambda: loop.call_soon_threadsafe(server.stop))
                serving = asyncio.ensure_future(server.serve(sockets))
                while not (server.started or serving.done()):  # noqa: ASYNC110 - it has no event
                    await asyncio.sleep(0.005)
                ready.set()
                await serving

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(120), "the application did not start"
    try:
        yield Client(at / "vmtune.sock")
    finally:
        stops[0]()
        thread.join(60)


def asked(sim: Fleet) -> dict[str, Callable[[int], str]]:
    """What is asked, by what it is; the n-th time for something else."""
    names = list(sim.hosts)
    other = {number: names[number * 37 % len(names)] for number in range(TURNS + 1)}
    return {
        "VMs, by a part of the name": lambda n: f"/vms?search={other[n][1:]}-1",
        "VMs, by a part that none has": lambda n: f"/vms?search=none{n}",
        "VMs, by the beginning of a UUID": lambda n: f"/vms?search={UUID(int=n << 64).hex[:16]}",
        "VMs, by name backwards": lambda n: f"/vms?sort=-name&limit={50 + n}",
        "VMs, by host": lambda n: f"/vms?sort=host&limit={50 + n}",
        "VMs, by tuning state": lambda n: f"/vms?sort=tuning_state&limit={50 + n}",
        "VMs that drifted": lambda n: f"/vms?tuning_state=drifted&limit={50 + n}",
        "VMs of a host": lambda n: f"/vms?host={other[n]}",
        "hosts, by VMs": lambda n: f"/hosts?sort=-vms&limit={50 + n}",
        "hosts, by a part of the name": lambda n: f"/hosts?search={other[n]}",
        "migrations": lambda n: f"/migrations?limit={50 + n}",
        "migrations, by downtime": lambda n: f"/migrations?sort=-downtime&limit={50 + n}",
        "migrations that exceeded": lambda n: f"/migrations?downtime_exceeded=true&limit={50 + n}",
        "migrations, by a part of a name": lambda n: f"/migrations?search={other[n][1:]}-2",
        "search over everything": lambda n: f"/search?q={other[n][1:]}",
        "search for what is not there": lambda n: f"/search?q=none{n}",
        "overview": lambda _: "/overview",
        "activity": lambda n: f"/activity?limit={20 + n}",
    }


def took_ms(client: Client, address: Callable[[int], str]) -> list[float]:
    """How long each of several answers took, after one that nobody counts."""
    times = []
    for turn in range(TURNS + 1):
        # A write outdates kept answers, as something always happens in a fleet.
        client.put("/profiles/beat", {"values": {}, "note": str(turn)}, if_match="*")
        began = time.perf_counter()
        client.get(address(turn))
        times.append((time.perf_counter() - began) * 1000)
    return times[1:]


def painted_ms(origin: str, token: str) -> list[float]:
    """When the largest part of the overview was seen, each time with an empty cache."""
    found = []
    with chromium() as browser:
        for _ in range(LOADS):
            with tab(browser, origin, token) as made:
                made.page.goto("/")
                settled(made.page)
                found.append(float(made.page.evaluate(_PAINTED)))
    return found


def main() -> None:
    """Measure and report."""
    if why := why_no_browser():
        raise SystemExit(why)
    where = environment()
    sim = make(int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS)
    gc.freeze()  # no service holds those VMs: looking through them takes Python's collector 0.2 s
    port = free_port()
    told: dict[str, list[float]] = {}
    with folder() as at, served(at, port, sim) as client:
        client.post("/profiles", {"name": "beat", "values": {}})
        token = str(client.post("/tokens", {"name": "pages", "scopes": ["admin"]})["token"])
        for what, address in asked(sim).items():
            told[what] = took_ms(client, address)
            print(f"{what}: {spread(told[what])} ms", flush=True)
        paints = painted_ms(f"http://127.0.0.1:{port}", token)
    print(f"overview in a browser: largest part seen after {spread(paints)} ms")
    checks = [Check(f"{what}, slowest", max(each), "ms", MAX_MS, "max")
              for what, each in told.items()]  # fmt: skip
    paint = statistics.median(paints)
    checks.append(Check("largest contentful paint, median", paint, "ms", MAX_PAINT_MS, "max"))
    raw = {"hosts": len(sim.hosts), "vms": len(sim.hosts) * VMS_A_HOST, "ms": told,
           "paints_ms": paints}  # fmt: skip
    finish("fleet_pages", checks, raw, where)


if __name__ == "__main__":
    main()
