"""Migrations of drawn workloads, one at a time, for forecasts to be held against.

Eight migrations in a row, four of the first 340, have the same guest and workload, drawn by their
number and SEED, and each has a bandwidth, a downtime limit and a profile of its own, so that a
number always is the same migration. Two QEMUs of this machine migrate over loopback, held at the
bandwidth. Each is appended to migrations.jsonl in the folder RESULTS as it ends, with the probe
that was made before the first of them, its samples, QEMU's totals, the guest's silences, and how
busy the machine was; a second call goes on where the first was stopped, and the first one of the
usual SEED where the published dataset ends.

    python -m tests.perf.dataset RESULTS [COUNT [SEED]]
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.perf import dataset_file
from tests.perf.machine_load import Counters, between, counters
from tests.perf.support import folder
from vmtune.bench.migration.order import DirectTestbed, Phase, RunOrder, RunProgress, RunResult
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
SEED = 20261124
OF_ONE_WORKLOAD = 8
"""A probe takes longer than most migrations; of 2,000 they are 293 workloads still."""
_FIRST, _OF_ONE_OF_THE_FIRST = 340, 4
"""The migrations that were published before that."""
LONGEST_S = 30
_BEAT_MS = 5
_FIRST_PASS_WITHIN_S = 8
"""A guest that writes in order has written to all of its region by then."""
_PROFILES = ("stock",) * 5 + ("auto-converge",) * 2 + ("multifd",) * 2 + ("xbzrle", "zstd")
_KINDS = ("in order",) * 5 + ("skewed",) * 5 + ("bursts",) * 3 + ("full speed", "idle", "content")
_SKEWS = (50, 70, 80, 90)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One migration to do.

    :param profile: which of the profiles its values are.
    :param kind: what its guest does, in a word.
    """

    number: int
    profile: str
    kind: str
    scenario: Scenario


def _workload_of(number: int) -> int:
    """Which workload migration *number* has."""
    if number < _FIRST:
        return number // _OF_ONE_OF_THE_FIRST
    return _FIRST // _OF_ONE_OF_THE_FIRST + (number - _FIRST) // OF_ONE_WORKLOAD


def drawn(seed: int, number: int) -> Drawn:
    """Migration *number* of *seed*."""
    of_all = random.Random(f"{seed}/workload/{_workload_of(number)}")
    memory_mib, vcpus = of_all.choice((128, 192, 256, 384)), of_all.choice((1, 1, 1, 2))
    pace = 10 ** of_all.uniform(7.4, 7.9)
    kind = of_all.choice(_KINDS)
    workload = _workload(of_all, kind, round(memory_mib * of_all.uniform(0.15, 0.85)), pace)
    chance = random.Random(f"{seed}/{number}")
    profile = chance.choice(_PROFILES)
    return Drawn(
        number,
        profile,
        kind,
        Scenario(
            f"dataset/{number}",
            vm=VmShape(memory_mib * MIB, vcpus),
            workload=workload,
            values=_values(chance, profile, pace * 10 ** chance.uniform(-0.3, 0.3)),
            warmup_s=1 + _first_pass_s(workload),
            cooldown_s=1,
            max_seconds=LONGEST_S,
            max_iterations=10_000,
        ),
    )


def _values(chance: random.Random, profile: str, bandwidth: float) -> dict[str, Value]:
    values: dict[str, Value] = {
        "max_bandwidth_bytes_per_s": round(bandwidth) // MIB * MIB,
        "downtime_limit_ms": chance.choice((30, 50, 100, 200, 300, 500)),
    }
    if profile == "auto-converge":
        values["auto_converge"] = True
    if profile == "xbzrle":
        values["xbzrle"] = True
    if profile in ("multifd", "zstd"):
        values |= {"multifd": True, "multifd_channels": chance.choice((2, 4))}
    if profile == "zstd":
        values["multifd_compression"] = "zstd"
    return values


def _workload(chance: random.Random, kind: str, region_mib: int, pace: float) -> Workload:
    """A workload that writes at a fifth to one and a half of *pace*, in bursts at more."""
    rate_mb = max(1, round(pace / 1e6 * 10 ** chance.uniform(-0.7, 0.2)))
    skew = chance.choice(_SKEWS)
    rest_ms = chance.choice((200, 500, 1000, 2000))
    zero, incompressible = chance.choice(((0, 100), (30, 30), (60, 40), (0, 0)))
    if kind == "idle":
        rate_mb, skew = 1, 50
    in_order = kind in ("in order", "full speed") or (kind == "bursts" and chance.random() < 0.5)
    if kind == "bursts":  # as much on average, or half as much
        rate_mb *= chance.choice((2, 4))
        region_mib = max(8, min(region_mib, round(rate_mb * chance.uniform(0.2, 2))))
    elif in_order:
        region_mib = max(8, min(region_mib, _FIRST_PASS_WITHIN_S * rate_mb))
    return Workload(
        region_bytes=region_mib * MIB,
        dirty_mb_per_s=0 if kind == "full speed" else rate_mb,
        idle_ms=rest_ms if kind == "bursts" else 0,
        zero_percent=zero if kind == "content" else 0,
        random_percent=incompressible if kind == "content" else 0,
        skew_percent=0 if in_order else skew,
        beat_ms=_BEAT_MS,
        cpu_ring=3,  # where the host emulates the kernel's instructions, ring 0 misses its rate
    )


def _first_pass_s(workload: Workload) -> int:
    """Until all of its region is in use."""
    if workload.skew_percent or not workload.dirty_mb_per_s:
        return 0
    return math.ceil(workload.region_bytes / 1e6 / workload.dirty_mb_per_s)


def migrate(one: Drawn, at: Path, probed: dict[str, Any] | None) -> dict[str, Any]:  # any: JSON
    """Do it; what was seen, or why it could not be run.

    :param probed: what the probe of the same workload said; None: it is to be made.
    """
    probes: list[DirtyProbe] = []
    marks: dict[str, Counters] = {}

    async def probe(source: Driver, vm: UUID) -> None:
        marks["probe"] = counters()
        facts = await source.vm_facts(vm)
        probes.append(await probe_dirtying(source, facts))
        marks["probed"] = counters()

    def progress(now: RunProgress) -> None:
        if now.phase in (Phase.MIGRATING, Phase.COOL_DOWN):
            marks.setdefault(now.phase.value, counters())

    order = RunOrder(
        one.scenario,
        testbed=DirectTestbed(folder=at),
        once_warm=None if probed else probe,
        knows_pace=False,
    )
    asked = {
        "number": one.number,
        "profile": one.profile,
        "kind": one.kind,
        "memory_bytes": one.scenario.vm.memory_bytes,
        "vcpus": one.scenario.vm.vcpus,
        "workload": asdict(one.scenario.workload),
        "values": dict(one.scenario.values),
    }
    try:
        result = asyncio.run(run_migration(order, progress))
    except VmtuneError as error:
        return asked | {"state": "not run", "failure": str(error)}
    made = {"probe": probed or _probed(one.number, probes, marks)}
    return asked | _seen(result) | made | {"load": _load(marks)}


def _probed(
    number: int, probes: list[DirtyProbe], marks: dict[str, Counters]
) -> dict[str, Any] | None:  # any: JSON
    """None where the run had ended before."""
    if not probes:
        return None
    return asdict(probes[0]) | {
        "measured_at": probes[0].measured_at.isoformat(),
        "number": number,
        "load": between(marks["probe"], marks["probed"]),
    }


def _load(marks: dict[str, Counters]) -> dict[str, float | None] | None:
    """While it migrated."""
    begin, end = (marks.get(phase.value) for phase in (Phase.MIGRATING, Phase.COOL_DOWN))
    return None if begin is None else between(begin, end or counters())


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


def probe_of(
    wanted: Drawn,
    others: Iterable[dict[str, Any] | None],  # any: JSON
) -> dict[str, Any] | None:
    """The probe of one of *others* whose guest does the same; None where it is to be made."""
    shape = {"memory_bytes": wanted.scenario.vm.memory_bytes, "vcpus": wanted.scenario.vm.vcpus}
    same = shape | {"workload": asdict(wanted.scenario.workload)}
    for one in others:
        if one and one.get("probe") and all(one.get(name) == same[name] for name in same):
            return dict(one["probe"])
    return None


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
            alike = [have.get(other) for other in range(max(0, number - OF_ONE_WORKLOAD), number)]
            wanted = drawn(seed, number)
            probed = probe_of(wanted, alike)
            found = have[number] = migrate(wanted, at, probed)
            with results.open("a") as file:
                file.write(json.dumps(found) + "\n")
            took = found["totals"] and found["totals"]["total_time_ms"]
            print(
                number,
                found["kind"],
                found["profile"],
                found["state"],
                found["failure"][:80],
                took,
                flush=True,
            )
    return [have[number] for number in range(count)]


def main() -> None:
    """Do those that are not there yet."""
    count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNT
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else SEED
    results = Path(sys.argv[1]) / "migrations.jsonl"
    if seed == SEED and not results.exists():
        dataset_file.unpack_lines(dataset_file.PUBLISHED, results)
    collect(results, count, seed)


if __name__ == "__main__":
    main()
