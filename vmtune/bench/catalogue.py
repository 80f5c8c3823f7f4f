"""Every scenario that ships, of each kind, by its name; and why one cannot be run here.

Those of migrations are in :mod:`vmtune.bench.migration.families`. Of the others each
combination can be requested (`vmtune bench block`, `boot` and `srcu`); the listed ones are the most
informative.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from vmtune import units
from vmtune.bench.block.disks_line import memory_mib
from vmtune.bench.boot.firmware import find_firmware
from vmtune.bench.migration.families import FAMILIES, SCENARIOS
from vmtune.bench.migration.order import DirectTestbed
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.scenario import block, boot, srcu
from vmtune.bench.model.scenario.any_kind import AloneScenario, AnyScenario, kind_of
from vmtune.bench.model.scenario.block import BlockScenario
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import (
    Accelerator,
    BlockCell,
    BootCell,
    BootGuest,
    Firmware,
    IoPattern,
    NodeKind,
    SrcuCell,
)
from vmtune.bench.model.scenario.parts import MIB
from vmtune.bench.model.scenario.srcu import SrcuScenario
from vmtune.errors import SetupError
from vmtune.units import Unit

_BLOCK_WHY = (
    "What QEMU's block layer takes for each request, without a guest: null-co is the cost of the "
    "layer alone, raw and qcow2 add a file and a format. Hold two QEMUs, or two sizes of a pool, "
    "against each other with it."
)
_GUEST_BLOCK_WHY = (
    "What a guest's virtio-blk disk takes for each request, all of the way: the guest's driver, "
    "virtio queues, iothreads, QEMU's block layer. Compare QEMUs, or numbers of iothreads, with it."
)
_BOOT_WHY = (
    "How long a VM takes from QEMU's start to its user space, and how often KVM's memory regions "
    "change meanwhile: on each change an affected kernel waits. Run it before and after a change "
    "of the host's kernel."
)
_SRCU_WHY = (
    "What one update of a VM's memory map costs, while its vCPUs spin: KVM waits for SRCU grace "
    "periods, and firmware makes thousands. Run it before and after a change of the host's kernel "
    "or of srcutree's parameters."
)
_K4, _K128 = 4096, 128 * 1024
_BLOCKS = (
    (NodeKind.NULL, IoPattern.RANDREAD, _K4, 1, 1),
    (NodeKind.NULL, IoPattern.RANDREAD, _K4, 64, 1),
    (NodeKind.NULL, IoPattern.RANDRW, _K4, 64, 16),
    (NodeKind.RAW, IoPattern.RANDREAD, _K4, 64, 1),
    (NodeKind.RAW, IoPattern.RANDWRITE, _K4, 64, 1),
    (NodeKind.RAW, IoPattern.READ, _K128, 8, 1),
    (NodeKind.QCOW2, IoPattern.RANDREAD, _K4, 64, 1),
    (NodeKind.QCOW2, IoPattern.RANDWRITE, _K4, 64, 1),
)
_GUEST_BLOCKS = (
    BlockCell(NodeKind.NULL, IoPattern.RANDREAD, _K4, 64),
    BlockCell(NodeKind.NULL, IoPattern.RANDRW, _K4, 64, 16, disks=4, iothreads=4),
    BlockCell(NodeKind.QCOW2, IoPattern.RANDREAD, _K4, 64),
)
_BOOTS = tuple(
    (guest, firmware, accelerator, 1, 512 * MIB)
    for guest in BootGuest
    for firmware in Firmware
    if not boot.why_not(guest, firmware)
    for accelerator in Accelerator
)

_SPINNING = (1, 2, 4)


@dataclass(frozen=True, slots=True)
class OfferedFamily:
    """Scenarios that are listed together.

    :param quick: the variants that the quick selection has, in small.
    """

    name: str
    title: str
    kind: ScenarioKind
    quick: tuple[str, ...] = ()


def _block(cell: BlockCell) -> BlockScenario:
    size = units.render(cell.block_size_bytes, Unit.BYTES)
    jobs = f"{cell.numjobs} job{'s' if cell.numjobs > 1 else ''}"
    title = f"{cell.rw} of {size} on {cell.node}, {cell.iodepth} at once, {jobs}"
    return BlockScenario(cell, title, _BLOCK_WHY)


def _guest_block(cell: BlockCell) -> BlockScenario:
    plain = _block(replace(cell, disks=1, iothreads=1))
    disks = "a guest's disk" if cell.disks == 1 else f"{cell.disks} disks of a guest"
    threads = f", {cell.iothreads} iothreads" if cell.iothreads > 1 else ""
    title = f"{plain.title}, {disks}{threads}"
    return BlockScenario(cell, title, _GUEST_BLOCK_WHY, driver=GuestDriver())


def _boot(cell: BootCell) -> BootScenario:
    guest = "The project's guest" if cell.guest is BootGuest.PROJECT else "Linux"
    firmware = "SeaBIOS" if cell.firmware is Firmware.SEABIOS else "OVMF"
    title = f"{guest} by {firmware}, with {cell.accelerator.value.upper()}"
    return BootScenario(cell, title, _BOOT_WHY)


def _srcu(cell: SrcuCell) -> SrcuScenario:
    spin = "1 vCPU spins" if cell.vcpus == 1 else f"{cell.vcpus} vCPUs spin"
    return SrcuScenario(cell, f"Updates of a memory map while {spin}", _SRCU_WHY)


def _by_name(found: Iterable[AnyScenario]) -> Mapping[str, AnyScenario]:
    return MappingProxyType({one.name: one for one in found})


BLOCK_SCENARIOS = _by_name(
    [*(_block(BlockCell(*each)) for each in _BLOCKS), *map(_guest_block, _GUEST_BLOCKS)]
)
BOOT_SCENARIOS = _by_name(_boot(BootCell(*each)) for each in _BOOTS)
SRCU_SCENARIOS = _by_name(_srcu(SrcuCell(vcpus)) for vcpus in _SPINNING)
CATALOGUE: Mapping[str, AnyScenario] = MappingProxyType(
    {**SCENARIOS, **BLOCK_SCENARIOS, **BOOT_SCENARIOS, **SRCU_SCENARIOS}
)
"""Every scenario by name, in the order in which they are listed."""

OFFERED: Mapping[str, OfferedFamily] = MappingProxyType(
    {
        **{
            family.name: OfferedFamily(
                family.name, family.title, ScenarioKind.MIGRATION, family.quick
            )
            for family in FAMILIES.values()
        },
        block.KIND: OfferedFamily(block.KIND, "Block I/O of a QEMU", ScenarioKind.BLOCK),
        boot.KIND: OfferedFamily(boot.KIND, "Boot of a VM", ScenarioKind.BOOT),
        srcu.KIND: OfferedFamily(srcu.KIND, "Updates of a VM's memory map", ScenarioKind.SRCU),
    }
)
"""Every family by name, likewise."""
assert {one.family for one in CATALOGUE.values()} == set(OFFERED)
assert all(OFFERED[one.family].kind is kind_of(one) for one in CATALOGUE.values())


def why_not_alone(
    scenario: AloneScenario,
    testbed: DirectTestbed,
    kvm_usable: bool,
    memory_bytes: int | None,
) -> str:
    """Why what needs no more than one QEMU of this machine cannot be run; empty where nothing is
    known against it.

    :param memory_bytes: the host's; None where it is not known.
    """
    if isinstance(scenario, SrcuScenario):
        return why_not_updates(kvm_usable)
    if shutil.which(testbed.qemu) is None:
        return f"there is no program {testbed.qemu}"
    if isinstance(scenario, BlockScenario):
        if scenario.driver is not None:
            needed = memory_mib(scenario.cell) * MIB
            return why_no_guest() or why_no_memory(needed, memory_bytes)
        return "" if shutil.which("fio") else "fio is not installed (on Debian: the package fio)"
    if scenario.needs_kvm and not kvm_usable:
        return "it needs KVM, and this machine has no usable /dev/kvm"
    if too_little := why_no_memory(scenario.cell.memory_bytes, memory_bytes):
        return too_little
    try:
        find_firmware(scenario.cell.firmware, testbed.data_folder)
    except SetupError as error:
        return str(error)
    return ""


def why_no_memory(needed: int, memory_bytes: int | None) -> str:
    """Why a VM of that memory cannot be run here; empty where nothing is known against it."""
    if memory_bytes is None or memory_bytes >= needed:
        return ""
    return (
        f"the VM needs {units.render(needed, Unit.BYTES)}, and the host has "
        f"{units.approximate(memory_bytes, Unit.BYTES)}"
    )


def why_no_guest() -> str:
    """Why the project's guest cannot be built here; empty where nothing is known against it."""
    missing = [name for name in ("make", "gcc", "ld") if shutil.which(name) is None]
    return f"the guest is built with {', '.join(missing)}, not installed" if missing else ""


def why_not_updates(kvm_usable: bool, machine: str = platform.machine()) -> str:
    """Why updates of memory maps cannot be timed here; empty where nothing is known against it."""
    if machine != "x86_64":
        return f"it is measured on x86-64 only, and this is {machine}"
    return "" if kvm_usable else "it needs KVM, and this machine has no usable /dev/kvm"
