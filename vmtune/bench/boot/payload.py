"""What a boot starts: the kernel, its command line, what it boots into."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

from vmtune.bench.boot.initramfs import initramfs
from vmtune.bench.boot.linux import linux_kernel
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.matrix_cells import BootGuest
from vmtune.lab.guest_build import build_guest
from vmtune.model.workload import Workload
from vmtune.units import PAGE_BYTES

_DIGITS = 12
_REGION_BYTES = 1 << 20
_REST_MS = 1000
LINUX_LINE = "console=ttyS0 earlyprintk=serial,ttyS0,115200 loglevel=6 panic=-1 edd=off"
"""The kernel's first words come early, and few after them: a serial port is slow. A panic ends
QEMU (which is started with -no-reboot). It does not ask the BIOS about disks."""


@dataclass(frozen=True, slots=True)
class BootGuestFiles:
    """A guest to boot.

    :param version: the kernel's, in its own words.
    :param kernel: its file, or its bytes.
    """

    version: str
    kernel: Path | bytes
    command_line: str
    initramfs: bytes = b""


async def prepare_guest(scenario: BootScenario, cache: Path) -> BootGuestFiles:
    """Have the guest ready.

    :raise SetupError: the Linux kernel cannot be had.
    :raise LabError: what is built here cannot be built.
    """
    if scenario.cell.guest is BootGuest.LINUX:
        first = await asyncio.to_thread(initramfs)
        kernel = await linux_kernel(cache)
        return BootGuestFiles(kernel.version, kernel.path, LINUX_LINE, first)
    program = await asyncio.to_thread(_project)
    digest = hashlib.sha256(program).hexdigest()[:_DIGITS]
    region = max(_REGION_BYTES, scenario.cell.vcpus * PAGE_BYTES)
    line = Workload(region_bytes=region, idle_ms=_REST_MS).command_line()
    if scenario.cell.remaps:
        line += f" remaps={scenario.cell.remaps}"
    return BootGuestFiles(f"vmtune's guest {digest}", program, line)


@functools.cache
def _project() -> bytes:
    """The guest's program: some kilobytes, built once for all boots of this process."""
    with tempfile.TemporaryDirectory(prefix="vmtune-guest-") as folder:
        return build_guest(Path(folder)).read_bytes()
