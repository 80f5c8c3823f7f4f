"""How long guests are slowed down while they migrate with rings of each size, in 3 to 8 GiB.

One block of the larger guests of the campaign file ring-sizes: a bitmap, and rings of 1,024 to
65,536 entries, emptied by QEMU's own reaper and by vmtune's ``levels``, each once in an order that
is drawn. With FULL=1 also the guests of drop-duration-full, of which the last write to 30 GiB. A
guest is left out, and said, where the machine has no memory for both of its QEMUs.

Each run is kept in drop_duration.jsonl of the folder that RESULTS names, if it does, and a second
call with it goes on where the first was stopped. A run takes up to 85 s, or MOST_S and 25 s more;
CELLS=4G,8G chooses guests, ENTRIES=1024,65536 rings. All 45 runs take at most 64 minutes. The
source's rings alone (ENTRIES=4096,65536) are 15 runs of 21 minutes at most, which need not be
repeated for all, with the same RESULTS.

    [FULL=1] [RESULTS=FOLDER] [BLOCKS=N] [MOST_S=N] [CELLS=...] [ENTRIES=...]
        python -m tests.perf.rings.drop_duration
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.perf.kept import Kept
from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from vmtune.bench.migration.order import DEFAULT_QEMU, DirectTestbed, RunOrder
from vmtune.bench.migration.runner import run_migration
from vmtune.bench.model.campaign.file import read_toml
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.reduce import reduce
from vmtune.errors import VmtuneError
from vmtune.lab.domain_xml import kvm_usable
from vmtune.reference.files import scenario_file
from vmtune.stats.schedule import schedule

SEED = 20261126
SMALLEST_MIB = 3 * 1024
OWN_MIB = 1536
"""Of both QEMUs, besides what the guest writes to, and left to the machine."""
METRICS = ("guest_drop_ms", "guest_worst_ms_per_gib", "ring_full_exits", "total_time_ms")


@dataclass(frozen=True)
class Guest:
    """A cell of one of the files, with a scenario by the name of each arm."""

    name: str
    scenarios: Mapping[str, Scenario]

    @property
    def needs_mib(self) -> int:
        """What of the machine's memory a run needs: the guest's, at both ends."""
        one = next(iter(self.scenarios.values()))
        return 2 * one.workload.region_bytes // MIB + OWN_MIB


def guests(full: bool, most_s: int | None = None) -> list[Guest]:
    """All that are asked for, by how much they write to."""
    found = []
    for name in ("ring-sizes", *(["drop-duration-full"] if full else [])):
        made = read_toml(scenario_file(name).text, {})
        for cell in made.all_cells:
            by_arm = {arm.name: made.scenario_of(cell, arm) for arm in made.arms}
            if made.scenario_of(cell, made.arms[0]).vm.memory_bytes < SMALLEST_MIB * MIB:
                continue
            if most_s:
                by_arm = {
                    arm: replace(each, max_seconds=most_s, ends_at_limit=True)
                    for arm, each in by_arm.items()
                }
            found.append(Guest(cell.name, by_arm))
    return sorted(found, key=lambda guest: guest.needs_mib)


def available_mib(text: str) -> int:
    """Of /proc/meminfo: what may be had without swapping."""
    (line,) = (line for line in text.splitlines() if line.startswith("MemAvailable:"))
    return int(line.split()[1]) // 1024


def chosen(arms: Sequence[str], entries: Sequence[str]) -> tuple[str, ...]:
    """The bitmap, and the rings of these sizes; none named are all."""
    return tuple(arm for arm in arms if not entries or {"bitmap", *entries} & set(_words(arm)))


def _words(arm: str) -> list[str]:
    return arm.replace(",", " ").split()


def measure(scenario: Scenario) -> dict[str, Any]:
    """One run. One that fails has no metrics, and says why."""
    with folder() as at:
        order = RunOrder(
            scenario, testbed=DirectTestbed(qemu=DEFAULT_QEMU, folder=at / "bench"), kvm=True
        )
        try:
            result = asyncio.run(run_migration(order, lambda _: None))
        except VmtuneError as error:
            return {"failed": str(error)}
    if result.failure or not result.state.counts:
        return {"failed": result.failure or result.state.value}
    metrics = reduce(result.record, result.state, scenario.values)
    found = {name: metrics[name] for name in METRICS if name in metrics}
    return {**found, "state": result.state.value}


def runs(
    all_guests: Sequence[Guest], blocks: int, entries: Sequence[str], kept: Kept
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Guest, arm and result of each run, as it ends."""
    for guest in all_guests:
        arms = chosen(tuple(guest.scenarios), entries)
        for slot in schedule(arms, blocks, SEED, warm_ups=0):
            scenario = guest.scenarios[slot.arm]
            what = f"{guest.name} {slot.arm} {slot.block} {scenario.max_seconds} s"
            row = kept.once(what, lambda scenario=scenario: measure(scenario))
            said = ", ".join(
                f"{name} {value:.4g}" if isinstance(value, float | int) else f"{name}: {value}"
                for name, value in row.items()
            )
            print(f"block {slot.block} of {blocks}: {guest.name:10}{slot.arm:20}{said}", flush=True)
            yield guest.name, slot.arm, row


def show(found: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> None:
    """The table."""
    print(f"\n{'guest':10}{'arm':20}{'drop, s':>22}{'slowest, ms/GiB':>32}{'ring-full exits':>34}")
    for (guest, arm), rows in found.items():
        good = [row for row in rows if "failed" not in row]
        cells = []
        for name, by in (("guest_drop_ms", 1000), (METRICS[1], 1), (METRICS[2], 1)):
            values = [row[name] / by for row in good if name in row]
            cells.append(spread(values) if values else "-")
        failed = f"  {len(rows) - len(good)} failed" if len(good) < len(rows) else ""
        print(f"{guest:10}{arm:20}{cells[0]:>22}{cells[1]:>32}{cells[2]:>34}{failed}")


def main() -> None:
    """Measure and report."""
    where = environment()
    if not kvm_usable():
        print("there is no usable KVM: the rings are its")
        finish("drop_duration", [], {"skipped": "no KVM"}, where)
    most_s = int(os.environ.get("MOST_S") or 0) or None
    names = [name for name in os.environ.get("CELLS", "").split(",") if name]
    entries = [each for each in os.environ.get("ENTRIES", "").split(",") if each]
    room = available_mib(Path("/proc/meminfo").read_text())
    wanted = [
        guest
        for guest in guests(bool(os.environ.get("FULL")), most_s)
        if not names or guest.name in names
    ]
    fits = [guest for guest in wanted if guest.needs_mib <= room]
    for guest in wanted:
        if guest not in fits:
            print(f"{guest.name} is left out: it needs {guest.needs_mib:,} MiB, and {room:,} MiB "
                  "are available")  # fmt: skip
    results = os.environ.get("RESULTS")
    file = Path(results) / "drop_duration.jsonl" if results else None
    kept = Kept(file, {"machine": [where["cpu"], where["kernel"]]})
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name, arm, row in runs(fits, int(os.environ.get("BLOCKS") or 1), entries, kept):
        found.setdefault((name, arm), []).append(row)
    show(found)
    measured = sum("failed" not in row for rows in found.values() for row in rows)
    checks = [Check("runs that gave figures", measured, "", 1, "min")] if fits else []
    raw = [{"guest": name, "arm": arm, "runs": rows} for (name, arm), rows in found.items()]
    finish("drop_duration", checks, {"runs": raw, "room_mib": room}, where)


if __name__ == "__main__":
    main()
