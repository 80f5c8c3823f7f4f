"""Boots: what one measurement of a boot is to do, and what it recorded.

A boot's timeline begins (0 ms) just before QEMU's process is started. On it are the marks: when
each part of the boot was reached. docs/how-to/measure-boot.md says from what to what.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from annotated_types import Interval

from vmtune import units
from vmtune.bench.model.scenario.matrix_cells import (
    DEVICES_ON_BRIDGE,
    DEVICES_ON_ROOT,
    Accelerator,
    BootCell,
    BootGuest,
    Firmware,
)
from vmtune.bench.model.scenario.named import Named
from vmtune.bench.model.scenario.names import NAME, NAME_FORM, usual_name
from vmtune.bench.model.scenario.parts import (
    LEAST_MEMORY_BYTES,
    MIB,
    Text,
    Values,
    accept_bench_values,
    without_kind,
)
from vmtune.documents import dataclass_json as documents
from vmtune.documents.strict import Reader, short
from vmtune.errors import InvalidInput, Problem
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

KIND = "boot"
"""What the JSON of a boot's scenario says in ``kind``."""
MAX_BOOT_SECONDS = 3600
LEAST_LINUX_BYTES = 192 * MIB
"""What a distribution's kernel, its initramfs and OVMF need to start."""
RING = "dirty_ring_size_entries"
SETTABLE = frozenset({RING})
"""The tunables that a boot can be measured with: KVM allocates the ring with each vCPU."""


def why_not(guest: BootGuest, firmware: Firmware) -> str:
    """Why that firmware cannot start that guest; empty where it can."""
    if guest is BootGuest.PROJECT and firmware is Firmware.OVMF:
        return "the project's guest is a PVH kernel, and OVMF starts EFI programs alone"
    return ""


def why_no_remaps(cell: BootCell) -> str:
    """Why its guest cannot map memory of devices again; empty where it can, or is not to."""
    if cell.remaps and cell.guest is not BootGuest.PROJECT:
        return "only the project's guest maps devices again and again"
    if cell.remaps and not cell.devices:
        return "there is no device whose memory the guest could map"
    return ""


@dataclass(frozen=True, slots=True)
class BootScenario(Named):
    """What one boot is to do.

    :param count_regions: count the updates of KVM's memory regions by QEMU's trace events.
    :param max_seconds: when the guest has not reached user space by then, counted from the
        start of QEMU's process, the boot is ended: it has not converged.
    :param values: the tunables of :data:`SETTABLE` that QEMU is started with.
    :param name: ``family/variant``; left out, it follows from the other parts but the values.
    :raise InvalidInput: with a problem for each field that cannot be accepted.
    """

    cell: BootCell
    title: Text = ""
    why: Text = ""
    count_regions: bool = True
    max_seconds: Annotated[int, Interval(ge=1, le=MAX_BOOT_SECONDS)] = 300
    values: Values = field(default_factory=dict)
    name: Text = ""

    def __post_init__(self) -> None:
        if not self.name:
            parts = {name: getattr(self, name) for name in _SETUP}
            name = usual_name(KIND, self.cell.name, parts, _USUAL_SETUP)
            object.__setattr__(self, "name", name)
        problems = [
            Problem(name, code, message, remedy)
            for name, holds, code, message, remedy in self._rules()
            if not holds
        ]
        problems += [
            Problem(f"values.{name}", "not_for_boots", f"{name} changes nothing about a boot",
                    f"known are {', '.join(sorted(SETTABLE))}")
            for name in self.values if name not in SETTABLE
        ]  # fmt: skip
        try:
            accept_bench_values(self.values)
        except InvalidInput as error:
            problems += error.problems
        if problems:
            raise InvalidInput(f"the scenario {self.name} is not usable", problems=problems)

    def _rules(self) -> list[tuple[str, bool, str, str, str]]:
        """Of each rule: the field, whether it holds, the code, the reason and the remedy."""
        cell = self.cell
        impossible = why_not(cell.guest, cell.firmware)
        room = DEVICES_ON_ROOT + DEVICES_ON_BRIDGE * cell.bridges
        least = LEAST_LINUX_BYTES if cell.guest is BootGuest.LINUX else LEAST_MEMORY_BYTES
        return [
            ("name", bool(NAME.fullmatch(self.name)), "invalid_name",
             f"{short(self.name)} is not a valid scenario name", NAME_FORM),
            ("cell.firmware", not impossible, "firmware_cannot_start_guest", impossible,
             f"boot {BootGuest.LINUX} with {Firmware.OVMF}, or use {Firmware.SEABIOS}"),
            ("cell.memory_bytes", cell.memory_bytes % MIB == 0, "not_whole_mib",
             f"{cell.memory_bytes} bytes are not whole MiB", "QEMU takes memory in MiB: round it"),
            ("cell.memory_bytes", cell.memory_bytes >= least, "too_little_memory",
             f"{units.render(cell.memory_bytes, Unit.BYTES)} are too few for the guest "
             f"{cell.guest}", f"give at least {units.render(least, Unit.BYTES)}"),
            ("cell.devices", cell.devices <= room, "too_many_devices",
             f"{cell.devices} devices do not fit on the root bus and {cell.bridges} bridges",
             f"give at most {room}, or more bridges: each has room for {DEVICES_ON_BRIDGE}"),
            ("cell.remaps", not why_no_remaps(cell), "nothing_to_remap", why_no_remaps(cell),
             f"boot the guest {BootGuest.PROJECT} with at least one device"),
            (f"values.{RING}", not self.dirty_ring_entries or self.needs_kvm, "needs_kvm",
             "the dirty ring is KVM's", f"leave it out, or use {Accelerator.KVM}"),
        ]  # fmt: skip

    @property
    def needs_kvm(self) -> bool:
        """It cannot be measured without KVM."""
        return self.cell.accelerator is Accelerator.KVM

    @property
    def dirty_ring_entries(self) -> int:
        """Entries of each vCPU's dirty ring; 0: there is none."""
        return int(self.values.get(RING, 0))

    @property
    def longest_s(self) -> int:
        """The most that a run can take, its QEMU's end aside."""
        return self.max_seconds

    def with_values(self, values: Mapping[str, Value]) -> BootScenario:
        """With *values* laid over its own: an arm's.

        :raise InvalidInput: they cannot be had for a boot.
        """
        return replace(self, values={**self.values, **values})


_SETUP = ("count_regions", "max_seconds")
_USUAL_SETUP = {each.name: each.default for each in fields(BootScenario) if each.name in _SETUP}
"""What makes a name, besides the combination, where it is not as usual."""


def to_json(scenario: BootScenario) -> dict[str, Any]:  # any JSON
    """All of *scenario*, so that :func:`from_json` reads back the same."""
    return {"kind": KIND, **documents.to_json(scenario)}


def from_json(raw: object, where: str = "") -> BootScenario:
    """A scenario from JSON or TOML. Sizes may have a unit, as in ``1Gi``.

    :param where: what problems call the document; its parts follow.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    made = documents.read(reader, BootScenario, without_kind(raw, where, KIND, reader), where)
    reader.done("the scenario cannot be accepted")
    assert made is not None
    return made
