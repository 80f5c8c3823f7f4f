"""How soon reads are answered at 1,000 a second, while two migrations run in the lab.

What the web UI asks for, in about the shares in which it does so, over TCP with a token, at a
fixed rate (tests/support/served/load.py): the lists of VMs, migrations and hosts, a migration's
record and its newest samples as a page asks for them that follows it, another's samples as a whole,
and which profile a VM gets and why. On SQLite and on PostgreSQL: one service, its database, the two
libvirt hosts, both guests and the generator share the machine. The service keeps to one CPU (the
setting ``cpus``), and has the share of it that the package's unit gives it
(tests/support/hosts/slices.py), where the machine lets shares be given; PostgreSQL has the same, as
docs/how-to/several-services.md has it for a database on the service's host.

    python -m tests.perf.fleets.api_load [SECONDS]
"""

from __future__ import annotations

import statistics
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from tests.perf.report import Check, environment, finish
from tests.perf.support import folder, variables
from tests.support.examples.samples import make_samples
from tests.support.hosts.live import Live, live, why_no_lab
from tests.support.hosts.slices import of_command, slices, weights, why_no_slices
from tests.support.qemus.qemu import cpu_s, installed, running
from tests.support.served.browser import free_port
from tests.support.served.load import Answers, Plan, send
from tests.support.stores.postgres import new_database, running_postgres, why_no_postgres
from vmtune.client.connection.http import Document
from vmtune.hypervisor.linux import cpus
from vmtune.model.migration.record import MigrationState, Totals
from vmtune.model.workload import Workload
from vmtune.storage import Store, upgrade

RATE_PER_S = 1030.0
LEAST_PER_S, MAX_P99_MS = 1000.0, 50.0
WARM_S, SECONDS = 5.0, 30.0
AT_REST = 20
"""QEMUs beside the two that migrate, so that a list of VMs has some."""
REMEMBERED, SAMPLES = 200, 600
"""Migrations of earlier days, each of which has a minute's samples."""
MACHINE = ("-machine", "none", "-nodefaults", "-display", "none")
HELD = {"max_bandwidth_bytes_per_s": "1MiB/s", "downtime_limit_ms": 1}
BUSY = Workload(region_bytes=48 << 20, dirty_mb_per_s=2)
"""More than the bandwidth lets through, so that no migration comes to its end by itself; not much
more, for the cores are to be the service's: where KVM has no help of the processor, 16 MB/s of
writes to pages that are watched take half a core."""
CPU = str(max(cpus.ALL))
SHARES = {
    "migrations": 4, "record": 4, "newest samples": 4, "VMs": 3, "hosts": 3, "explain": 2,
    "all samples": 1,
}  # fmt: skip


def remember(url: str) -> list[str]:
    """Have the database hold the migrations of earlier days; the ids of some."""
    begun = datetime.now(UTC) - timedelta(days=1)
    taken = make_samples(SAMPLES)
    totals = Totals(60_000, 120, 3, 5 << 30, 12)
    ids: list[str] = []
    with Store.open(url) as store:
        for number in range(REMEMBERED):
            at = begun + timedelta(minutes=number)
            made = store.migrations.begin(
                vm=uuid4(), vm_name=f"web{number}", source="a", destination="b",
                state=MigrationState.STARTING, started_at=at,
            )  # fmt: skip
            store.migrations.add_samples(made.id, taken)
            store.migrations.update(
                made.id, state=MigrationState.COMPLETED, totals=totals, ended_at=at
            )
            ids.append(str(made.id))
    return ids[-20:]


def plan_of(it: Live, running_now: list[Document], ended: list[str], seconds: float) -> Plan:
    """What to ask for."""
    token = it.client.post("/tokens", {"name": "load", "scopes": ["read"]})["token"]
    base = "/api/v1"
    ids = [record["id"] for record in running_now]
    # A page that follows a migration asks each second for what came since.
    newest = [list(it.client.items(f"/migrations/{id}/samples"))[-10]["at_ms"] for id in ids]
    kinds = {
        "migrations": [f"{base}/migrations?limit=50"],
        "record": [f"{base}/migrations/{id}" for id in ids],
        "newest samples": [
            f"{base}/migrations/{id}/samples?limit=10000&later_than_ms={at}.."
            for id, at in zip(ids, newest, strict=True)
        ],
        "VMs": [f"{base}/vms?limit=50"],
        "hosts": [f"{base}/hosts?limit=50"],
        "explain": [f"{base}/vms/{record['vm']}/explain" for record in running_now],
        "all samples": [f"{base}/migrations/{id}/samples?limit=10000" for id in ended],
    }
    return Plan(it.service.port, token, RATE_PER_S, WARM_S, seconds, kinds, SHARES)


def measure(url: str, at: Path, number: int, seconds: float) -> tuple[Answers, float]:
    """On one database: the answers, and the service's share of a core meanwhile (%)."""
    upgrade(url)
    ended = remember(url)  # before the service is there, which would look for their jobs
    with ExitStack() as stack:
        stack.enter_context(variables(VMTUNE_DATABASE_URL=url, VMTUNE_CPUS=CPU))
        it = stack.enter_context(live(at, number, port=free_port()))
        resting = at / "qmp"
        for each in range(AT_REST):
            stack.enter_context(running(installed(), resting, f"q{each}", uuid4(), machine=MACHINE))
        it.client.post("/hosts", {"name": "here", "uri": f"qmp+unix://{resting}"})
        it.profile("held", **HELD)
        it.client.post("/assignments", {"target": "default", "key": "", "profile": "held"})
        vms = [stack.enter_context(it.vm(workload=BUSY)) for _ in range(2)]
        records = [it.migrate(vm, "b") for vm in vms]
        for record in records:
            it.until_active(record)
        time.sleep(3)  # the first iteration, and some samples
        plan = plan_of(it, records, ended, seconds)
        assert it.service.process is not None
        pid = it.service.process.pid
        if why_no_slices():
            print(f"without shares of the CPU: {why_no_slices()}")
        else:
            move = stack.enter_context(slices(weights()))
            move("vmtune", [pid, *of_command("postgres")])
            move("machine", of_command(*(vm.name for vm in vms), str(resting)))
        used, begun = cpu_s(pid), time.monotonic()
        answers = send(plan)
        share = 100 * (cpu_s(pid) - used) / (time.monotonic() - begun)
        if set(answers.statuses) != {"200"}:
            print(it.service.said()[-8000:])
        states = [it.record(record)["state"] for record in records]
        assert states == ["active", "active"], f"a migration has ended: {states}"
        for record in records:
            it.client.delete(f"/migrations/{record['id']}")
            assert it.ended(record)["state"] == "cancelled"
        return answers, share


def tell(name: str, answers: Answers, share: float) -> None:
    """What is measured of one database."""
    its_own = 100 * answers.cpu_s / (WARM_S + answers.seconds)
    print(
        f"{name}: {answers.rate_per_s:.0f} answers a second, p50 {answers.percentile(50):.1f}, "
        f"p95 {answers.percentile(95):.1f}, p99 {answers.percentile(99):.1f}, most "
        f"{answers.all_ms[-1]:.0f} ms"
    )
    other = {status: many for status, many in answers.statuses.items() if status != "200"}
    if other:
        print(f"  not answered with 200: {other}")
    print(
        f"  service {share:.0f} % of a core ({10 * share / answers.rate_per_s:.2f} ms a read, with "
        f"all else that it does), generator {its_own:.0f} %, which was late by at most "
        f"{answers.late_ms:.0f} ms"
    )
    for kind, took in answers.took_ms.items():
        late = sorted(took)[int(len(took) * 0.99)]
        middle = statistics.median(took)
        print(f"  {kind:15} {len(took):5}, median {middle:6.1f} ms, p99 {late:6.1f} ms")


def main() -> None:
    """Measure and report."""
    where = environment()
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    why_not = why_no_lab()
    if why_not:
        sys.exit(why_not)
    checks: list[Check] = []
    raw: dict[str, object] = {}
    with ExitStack() as stack:
        at = stack.enter_context(folder())
        urls = {"SQLite": f"sqlite:///{at}/sqlite/vmtune.db"}
        if why_no_postgres():
            print(f"without PostgreSQL: {why_no_postgres()}")
        else:
            server = stack.enter_context(running_postgres())
            urls["PostgreSQL"] = stack.enter_context(new_database(server))
        for number, (name, url) in enumerate(urls.items()):
            place = at / name.lower()
            place.mkdir()
            answers, share = measure(url, place, 97 + number, seconds)
            tell(name, answers, share)
            good = answers.statuses.get("200", 0) / len(answers.all_ms)
            checks += [
                Check(f"reads answered, {name}", answers.rate_per_s, "/s", LEAST_PER_S, "min"),
                Check(f"p99, {name}", answers.percentile(99), "ms", MAX_P99_MS, "max"),
                Check(f"answered with 200, {name}", 100 * good, "%", 100, "min"),
            ]
            raw[name] = {"took_ms": answers.took_ms, "service_percent": share,
                         "generator_cpu_s": answers.cpu_s, "late_ms": answers.late_ms,
                         "bytes": answers.bytes}  # fmt: skip
    finish("api_load", checks, raw, where)


if __name__ == "__main__":
    main()
