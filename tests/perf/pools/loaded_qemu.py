"""A QEMU whose guest loads its disks, for benchmarks of the coroutine pool."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.perf.pools.pool_model import Monitor
from tests.support.qemus.qemu import Build
from vmtune.bench.block.disks_line import DiskFiles, disks_line
from vmtune.bench.block.guest_console import GuestConsole, guest_console
from vmtune.bench.migration.direct_stage import guest_program
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import BlockCell, IoPattern, NodeKind
from vmtune.bench.qemu_process import DIES_WITH_PARENT
from vmtune.lab.domain_xml import kvm_usable

DISKS = 4
JOBS = 16
DEPTH = 64
LOOK_EVERY_S = 0.25
PATIENCE_S = 120


@dataclass(frozen=True)
class LoadedQemu:
    """Its process, its monitor, and what its guest tells."""

    pid: int
    monitor: Monitor
    console: GuestConsole


@asynccontextmanager
async def loaded_qemu(
    build: Build, iothreads: int, seconds: int, at: Path, latency_ns: int = 0
) -> AsyncIterator[LoadedQemu]:
    """One whose vCPUs have not been started. It ends with the context.

    :param seconds: of load: random reads and writes of 4 KiB on four virtio-blk disks without
        data, by 16 jobs, each with a depth of 64.
    :param latency_ns: of the disks' nodes.
    """
    cell = BlockCell(
        NodeKind.NULL, IoPattern.RANDRW, 4096, DEPTH, JOBS, disks=DISKS, iothreads=iothreads
    )
    driver = GuestDriver()
    load = BlockScenario(cell, runtime_s=seconds, ramp_s=1, driver=driver)
    kernel, own = at / "guest.elf", at / "own"
    await asyncio.to_thread(lambda: kernel.write_bytes(guest_program()))
    files = DiskFiles(Path(build.program), None, kernel, at, at / "qmp", own)
    line = disks_line(files, load, driver, uuid4(), kvm=kvm_usable())
    if latency_ns:
        slow = f"read-zeroes=on,latency-ns={latency_ns}"
        line = [word.replace("read-zeroes=on", slow) for word in line]
    async with guest_console(at, lambda: time.monotonic() * 1000) as console:
        process = await asyncio.create_subprocess_exec(*DIES_WITH_PARENT, *line)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not own.exists():
                    assert process.returncode is None, "QEMU has ended"
                    await asyncio.sleep(LOOK_EVERY_S)
            with Monitor(own) as monitor:
                yield LoadedQemu(process.pid, monitor, console)
        finally:
            process.kill()
            await process.wait()
