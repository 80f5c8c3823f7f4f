"""How long a guest takes to boot, phase by phase, with the spread over ten boots.

The project's guest with KVM and SeaBIOS; a Linux kernel by TCG with SeaBIOS and, where it is
installed, with OVMF. The three take turns, each boot with a fresh QEMU. What each phase is from
and to is in docs/how-to/measure-boot.md.

Arguments: how many boots of each (10).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.perf.report import Check, environment, finish, spread
from tests.perf.support import folder
from tests.support.qemus.qemu import CHECKOUT, installed
from vmtune.bench.boot.firmware import find_firmware
from vmtune.bench.boot.order import BootOrder, BootResult
from vmtune.bench.boot.payload import prepare_guest
from vmtune.bench.boot.reduce import reduce_boot
from vmtune.bench.boot.run import run_boot
from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.model.runs.run import RunState
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.matrix_cells import Accelerator, BootCell, BootGuest, Firmware
from vmtune.errors import SetupError
from vmtune.lab.domain_xml import kvm_usable

BOOTS = 10
MIB = 1 << 20
CACHE = CHECKOUT / ".cache/boot"
SCENARIOS = tuple(
    BootScenario(BootCell(*parts, 1, 512 * MIB))
    for parts in (
        (BootGuest.PROJECT, Firmware.SEABIOS, Accelerator.KVM),
        (BootGuest.LINUX, Firmware.SEABIOS, Accelerator.TCG),
        (BootGuest.LINUX, Firmware.OVMF, Accelerator.TCG),
    )
)
PHASES = {
    "to the first guest instruction": "boot_to_guest_ms",
    "to the kernel": "boot_to_kernel_ms",
    "to user space": "boot_to_userspace_ms",
}
BESIDES = {
    "of it firmware": "boot_firmware_ms",
    "of it loading": "boot_loading_ms",
    "CPU time": "boot_cpu_ms",
    "updates of memory regions": "memory_region_updates",
    "of them by the guest": "memory_region_updates_by_guest",
}


@dataclass
class Boots:
    """All boots of one scenario."""

    scenario: BootScenario
    results: list[BootResult] = field(default_factory=list)

    @property
    def complete(self) -> int:
        """How many reached user space with every phase seen."""
        return sum(
            result.state is RunState.COMPLETED
            and set(PHASES.values()) <= reduce_boot(result.record).keys()
            for result in self.results
        )

    def values(self, metric: str) -> list[float]:
        """Those of all boots that have it."""
        found = (reduce_boot(result.record) for result in self.results)
        return [metrics[metric] for metrics in found if metric in metrics]

    def print(self) -> None:
        """The phases with their spread, and what did not boot."""
        record = self.results[0].record
        print(f"{self.scenario.name}, {len(self.results)} boots: {record.firmware}, "
              f"kernel {record.kernel.split(' (')[0]}")  # fmt: skip
        for title, metric in {**PHASES, **BESIDES}.items():
            if values := self.values(metric):
                unit = " ms" if metric.endswith("_ms") else ""
                print(f"  {title:32}{spread(values)}{unit}")
        for result in self.results:
            if result.state is not RunState.COMPLETED:
                print(f"  {result.state}: {result.failure}")


async def why_not(scenario: BootScenario) -> str:
    """Why it cannot be booted here; empty where it can. Fetches the kernel."""
    if scenario.needs_kvm and not kvm_usable():
        return "no usable /dev/kvm"
    try:
        find_firmware(scenario.cell.firmware)
        await prepare_guest(scenario, CACHE)
    except SetupError as error:
        return str(error)
    return ""


async def measure(program: Path, at: Path, boots: int) -> list[Boots]:
    """Every scenario in turn, *boots* times."""
    found: list[Boots] = []
    for scenario in SCENARIOS:
        if why := await why_not(scenario):
            print(f"{scenario.name}: left out: {why}")
        else:
            found.append(Boots(scenario))
    testbed = DirectTestbed(program, folder=at / "runs")
    for _ in range(boots):
        for each in found:
            order = BootOrder(each.scenario, testbed=testbed, cache=CACHE)
            each.results.append(await run_boot(order, lambda _: None))
    return found


def checks(found: Sequence[Boots], boots: int) -> list[Check]:
    """Every boot has to tell its three phases."""
    return [
        Check(f"{each.scenario.variant}: boots with all phases", each.complete, "", boots, "min")
        for each in found
    ]


def main() -> None:
    """Measure and report."""
    build = installed()
    where = environment()
    if build.why_not:
        print(build.why_not)
        finish("boot", [], {"skipped": build.why_not}, where)
    boots = int(sys.argv[1]) if len(sys.argv) > 1 else BOOTS
    with folder() as at:
        found = asyncio.run(measure(Path(build.program), at, boots))
    for each in found:
        each.print()
    raw = {
        each.scenario.name: [
            {**reduce_boot(r.record), "state": r.state, "failure": r.failure} for r in each.results
        ]
        for each in found
    }
    finish("boot", checks(found, boots), {"qemu": build.label, **raw}, where)


if __name__ == "__main__":
    main()
