"""The command line of a run's QEMU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from vmtune.bench.migration.guest_listener import BEAT, SERIAL
from vmtune.bench.model.scenario.migration import Scenario
from vmtune.lab.domain_xml import BEAT_PORT

# A firmware that only starts the guest: seconds faster than SeaBIOS where firmware runs slowly.
QBOOT = "qboot.rom"
_DEBIANS_QBOOT = Path("/usr/share/qemu") / QBOOT
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class QemuFiles:
    """The command line of a run's QEMU.

    :param folder: of the run, with the sockets on which the run listens.
    :param monitor: a socket that QEMU makes, for the driver; *own* one for the run itself.
    """

    program: Path
    data_folder: Path | None
    kernel: Path
    folder: Path
    monitor: Path
    own: Path


def command_line(
    files: QemuFiles, scenario: Scenario, uuid: UUID, *, kvm: bool, incoming: bool
) -> list[str]:
    """Source and destination differ in their monitors and in *incoming* alone."""
    accelerator = "kvm" if kvm else "tcg"
    if scenario.dirty_ring_entries:
        accelerator += f",dirty-ring-size={scenario.dirty_ring_entries}"
    return [
        str(files.program),
        *(("-L", str(files.data_folder)) if files.data_folder else ()),
        *("-name", "guest=bench,debug-threads=on"),  # which gives threads their names
        *("-uuid", str(uuid)),
        *("-machine", "pc", "-accel", accelerator),
        # Not the host's own model: some nested KVMs cannot set all its MSRs.
        *(("-cpu", "qemu64") if kvm else ()),
        *("-m", f"{scenario.vm.memory_bytes // _MIB}M", "-smp", str(scenario.vm.vcpus)),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *_firmware(files.data_folder),
        *("-kernel", str(files.kernel), "-append", scenario.workload.command_line()),
        *("-chardev", f"socket,id=serial,path={_word(files.folder / SERIAL)}"),
        *("-serial", "chardev:serial"),
        *("-chardev", f"socket,id=beat,path={_word(files.folder / BEAT)}"),
        *("-device", f"isa-debugcon,chardev=beat,iobase={BEAT_PORT:#x}"),
        *("-qmp", f"unix:{_word(files.monitor)},server=on,wait=off"),
        *("-qmp", f"unix:{_word(files.own)},server=on,wait=off"),
        *(("-incoming", "defer") if incoming else ()),
    ]


def _word(path: Path) -> str:
    """A path among QEMU's key=value words, which commas end."""
    return str(path).replace(",", ",,")


def _firmware(data_folder: Path | None) -> list[str]:
    own = data_folder / QBOOT if data_folder else _DEBIANS_QBOOT
    there = [path for path in (own, _DEBIANS_QBOOT) if path.exists()]
    return ["-bios", str(there[0])] if there else []
