"""Migrations of drawn workloads, one at a time, for forecasts to be held against.

Each migration has a workload, a bandwidth, a downtime limit and a profile, all drawn by its number
and SEED, so that a number always is the same migration. Two QEMUs of this machine migrate over
loopback, held at the bandwidth. Each is appended to migrations.jsonl in the folder RESULTS as it
ends, with the probe that was made before, its samples, QEMU's totals and the guest's silences; a
second call goes on where the first was stopped.

    python -m tests.perf.dataset RESULTS [COUNT [SEED]]
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.perf.support import folder
from vmtune.bench.migration.order import DirectTestbed, RunOrder, RunResult
from vmtune.bench.migration.runner import run_migration
from vmtune.bench.model.scenario.migration import Scenario, VmShape
from vmtune.bench.model.scenario.parts import MIB
from vmtune.engine.dirty_probe import probe_dirtying
from vmtune.errors import VmtuneError
from vmtune.forecast.probe import DirtyProbe
from vmtune.hypervisor.protocol import Driver
from vmtune.model.tunables.tunable import Value
from vmtune.model.workload import Workload

COUNT = 100
SEED = 20261123
_BEAT_MS = 5
LONGEST_S = 40


@dataclass(frozen=True, slots=True)
class Drawn:
    """One migration to do.

    :param profile: which of the profiles its values are.
    """

    number: int
    profile: str
    scenario: Scenario


def drawn(seed: int, number: int) -> Drawn:
    """Migration *number* of *seed*."""
    chance = random.Random(f"{seed}/{number}")
    memory_mib = chance.choice((256, 384, 512, 768))
    region_mib = round(memory_mib * chance.uniform(0.05, 0.85))
    bandwidth = round(10 ** chance.uniform(7.4, 8.4))
    profile = chance.choice(("stock", "stock", "auto-converge", "multifd"))
    values: dict[str, Value] = {
        "max_bandwidth_bytes_per_s": bandwidth // MIB * MIB,
        "downtime_limit_ms": chance.choice((30, 50, 100, 200, 300, 500)),
    }
    if profile == "auto-converge":
        values["auto_converge"] = True
    if profile == "multifd":
        values |= {"multifd": True, "multifd_channels": chance.choice((2, 4))}
    return Drawn(
        number,
        profile,
        Scenario(
            f"dataset/{number}",
            vm=VmShape(memory_mib * MIB, chance.choice((1, 1, 2))),
            workload=_workload(chance, region_mib, bandwidth),
            values=values,
            warmup_s=3,
            cooldown_s=1,
            max_seconds=LONGEST_S,
            max_iterations=10_000,
        ),
    )


def _workload(chance: random.Random, region_mib: int, bandwidth: int) -> Workload:
    """A workload that dirties from a tenth of the bandwidth to twice of it, in bursts or not."""
    rate_mb = max(1, round(bandwidth / 1e6 * 10 ** chance.uniform(-0.7, 0.2)))
    kind = chance.choice(("steady",) * 6 + ("bursts", "bursts", "idle", "full speed"))
    return Workload(
        region_bytes=region_mib * MIB,
        dirty_mb_per_s={"full speed": 0, "idle": 1}.get(kind, rate_mb),
        idle_ms=chance.choice((200, 1000, 3000)) if kind == "bursts" else 0,
        beat_ms=_BEAT_MS,
    )


def migrate(one: Drawn, at: Path) -> dict[str, Any]:  # any: JSON
    """Do it; what was seen, or why it could not be run."""
    probes: list[DirtyProbe] = []

    async def probe(source: Driver, vm: UUID) -> None:
        facts = await source.vm_facts(vm)
        probes.append(await probe_dirtying(source, facts))

    order = RunOrder(one.scenario, testbed=DirectTestbed(folder=at), once_warm=probe)
    asked = {
        "number": one.number,
        "profile": one.profile,
        "memory_bytes": one.scenario.vm.memory_bytes,
        "vcpus": one.scenario.vm.vcpus,
        "workload": asdict(one.scenario.workload),
        "values": dict(one.scenario.values),
    }
    try:
        result = asyncio.run(run_migration(order, lambda _: None))
    except VmtuneError as error:
        return asked | {"state": "not run", "failure": str(error)}
    return asked | _seen(result) | {"probe": _probed(probes)}


def _probed(probes: list[DirtyProbe]) -> dict[str, Any] | None:  # any: JSON
    """None where the run had ended before."""
    if not probes:
        return None
    return asdict(probes[0]) | {"measured_at": probes[0].measured_at.isoformat()}


def _seen(result: RunResult) -> dict[str, Any]:  # any: JSON
    record = result.record
    begun = record.migration_ms or 0
    return {
        "state": result.state.value,
        "failure": result.failure,
        "totals": asdict(record.totals) if record.totals else None,
        "ended_ms": None
        if record.migration_ended_ms is None
        else record.migration_ended_ms - begun,
        "beat_interval_ms": record.beat_interval_ms,
        "samples": [asdict(each) | {"at_ms": each.at_ms - begun} for each in record.samples],
        "silences": [asdict(each) for each in record.silences],
        "begun_ms": begun,
    }


def collect(results: Path, count: int, seed: int) -> list[dict[str, Any]]:  # any: JSON
    """The first *count* migrations of *seed*, by number. Those that the file *results* does not
    have are done, and appended to it."""
    results.parent.mkdir(parents=True, exist_ok=True)
    have: dict[int, dict[str, Any]] = {}
    if results.exists():
        whole, _, torn = results.read_text().rpartition("\n")
        if torn:  # it was stopped while it wrote
            results.write_text(whole + "\n" if whole else "")
        have = {one["number"]: one for one in map(json.loads, whole.splitlines())}
    with folder() as at:
        for number in range(count):
            if number in have:
                continue
            found = have[number] = migrate(drawn(seed, number), at)
            with results.open("a") as file:
                file.write(json.dumps(found) + "\n")
            took = found["totals"] and found["totals"]["total_time_ms"]
            print(number, found["profile"], found["state"], found["failure"][:80], took, flush=True)
    return [have[number] for number in range(count)]


def main() -> None:
    """Do those that are not there yet."""
    count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNT
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    collect(Path(sys.argv[1]) / "migrations.jsonl", count, seed)


if __name__ == "__main__":
    main()
