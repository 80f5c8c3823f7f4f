"""A boot in a process of its own, which says what phase it is at, for a test that kills it.

Arguments: the folder of runs, the QEMU.
"""

import asyncio
import sys
from pathlib import Path

from vmtune.bench.boot.order import BootOrder
from vmtune.bench.boot.run import run_boot
from vmtune.bench.migration.order import DirectTestbed, RunProgress
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.matrix_cells import Accelerator, BootCell, BootGuest, Firmware


def tell(progress: RunProgress) -> None:
    """To whoever reads standard output."""
    print(progress.phase.value, flush=True)


def main() -> None:
    """Boot the project's guest."""
    cell = BootCell(BootGuest.PROJECT, Firmware.SEABIOS, Accelerator.TCG, 1, 64 << 20)
    testbed = DirectTestbed(Path(sys.argv[2]), folder=Path(sys.argv[1]))
    asyncio.run(run_boot(BootOrder(BootScenario(cell), testbed=testbed), tell))


if __name__ == "__main__":
    main()
