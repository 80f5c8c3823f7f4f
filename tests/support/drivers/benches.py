"""The drivers that the contract suite holds to the contract, each with VMs to try it on.

A module listed in PROVIDERS offers ``kinds()``: the kinds of bench that it can set up.
"""

from __future__ import annotations

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from uuid import UUID

from vmtune.hypervisor.protocol import Driver
from vmtune.model.tunables.tunable import Value
from vmtune.model.versions import Version

PROVIDERS = (
    "tests.support.drivers.bench_fake",
    "tests.support.drivers.bench_qmp",
    "tests.support.drivers.bench_libvirt",
)


class Bench(ABC):
    """Two hosts and a VM that runs on the first.

    The VM is a pc machine with 64 MiB and one vCPU, no dirty ring, the iothreads iothread1
    and iothread2, and the virtio-blk disk virtio-disk0 with 4 queues. It runs (firmware
    that finds nothing to start will do) and has never migrated.

    :param source: has the VM.
    :param destination: to where the VM can migrate, once :meth:`open_destination` was called.
    :param slow: with this a migration does not end by itself; libvirt takes whole MiB/s.
    """

    slow: ClassVar[Mapping[str, Value]] = {"max_bandwidth_bytes_per_s": 1 << 20}

    source: Driver
    destination: Driver
    vm: UUID
    name: str
    qemu: Version

    @abstractmethod
    async def open_destination(self) -> None:
        """Make the destination ready for one migration; nothing to do where it always is."""

    @abstractmethod
    async def kill(self) -> None:
        """End the VM's QEMU as if it had crashed."""

    @abstractmethod
    async def take_monitor(self) -> Callable[[], None] | None:
        """Connect another client to the VM's monitor before *source* has; what lets go of
        it again. None where the monitor cannot be taken, as libvirt's cannot."""

    @abstractmethod
    async def kill_destination(self) -> None:
        """End the destination's QEMU while the migration runs."""


@dataclass(frozen=True)
class BenchKind:
    """A bench that can be set up.

    :param why_not: why it cannot be here; empty where it can.
    :param open: sets it up in a folder, and takes it down again.
    """

    id: str
    open: Callable[[Path], AbstractAsyncContextManager[Bench]]
    why_not: str = ""


def bench_kinds() -> list[BenchKind]:
    """Every kind of bench, usable here or not."""
    modules = [importlib.import_module(n) for n in PROVIDERS if importlib.util.find_spec(n)]
    return [kind for module in modules for kind in module.kinds()]
