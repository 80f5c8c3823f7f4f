"""The words in which published and own measurements say under what conditions they were made.

Each fact is described once: its name (that of the tunable or of the guest's workload where there
is one), its unit, what kind of value it takes, and what it means for setting two measurements
side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from vmtune import units
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.units import Unit

FactValue = bool | int | str
Facts = Mapping[str, FactValue]
"""Values by the names of :data:`FACTS`. A fact that was not recorded is missing, never 0."""

_MBIT_S = 125_000


class Role(StrEnum):
    """What a fact means where two measurements are set side by side."""

    WHAT = "what"
    """Says what was measured: measurements that differ in it have nothing to do with each other."""
    SCALE = "scale"
    """A size: the nearest is taken, and the factor between the two is reported."""
    CONTEXT = "context"
    """Reported, and otherwise without consequence."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One condition of a measurement.

    :param choices: the words it takes; empty where it is a number, a switch or free text.
    :param switch: it is true or false.
    """

    name: str
    title: str
    role: Role
    unit: Unit = Unit.NONE
    choices: tuple[str, ...] = ()
    switch: bool = False

    @property
    def number(self) -> bool:
        """It is a number, in its unit."""
        return self.unit is not Unit.NONE

    def accept(self, raw: object) -> FactValue:
        """*raw* as this fact's value.

        :raise ValueError: it is of another type, negative, or none of the words.
        """
        if self.switch:
            if not isinstance(raw, bool):
                raise ValueError(f"expects true or false, not {raw!r}")
            return raw
        if self.number:
            if type(raw) is not int or raw < 0:
                raise ValueError(f"expects a number of {self.unit.value}, not {raw!r}")
            return raw
        if not isinstance(raw, str) or not raw.strip():
            raise ValueError(f"expects a word, not {raw!r}")
        if self.choices and raw not in self.choices:
            raise ValueError(f"{raw!r} is not one of {', '.join(self.choices)}")
        return raw

    def render(self, value: FactValue) -> str:
        """*value* as people read it: ``on``, ``64 MiB``, ``randread``."""
        if isinstance(value, bool):
            return "on" if value else "off"
        if self.unit is Unit.BYTES_PER_S and isinstance(value, int) and value % _MBIT_S == 0:
            mbit = value // _MBIT_S
            return f"{mbit / 1000:g} Gbit/s" if mbit >= 1000 else f"{mbit} Mbit/s"
        return units.render(value, self.unit) if isinstance(value, int) else value


def _what(name: str, title: str, *choices: str) -> Fact:
    return Fact(name, title, Role.WHAT, choices=choices, switch=not choices)


def _scale(name: str, title: str, unit: Unit = Unit.COUNT) -> Fact:
    return Fact(name, title, Role.SCALE, unit)


def _number(name: str, title: str, unit: Unit = Unit.COUNT) -> Fact:
    return Fact(name, title, Role.CONTEXT, unit)


def _text(name: str, title: str, *choices: str) -> Fact:
    return Fact(name, title, Role.CONTEXT, choices=choices)


_ROWS = (
    _what("reaping", "Ring reaping", "none", "stock", "adaptive"),
    _what("zero_copy_send", "Zero copy"),
    _what("multifd_compression", "Compression", *BUILT_IN["multifd_compression"].choices),
    _what("convergence", "Convergence", "none", "auto_converge", "dirty_limit"),
    _what("host_load", "Host load", "idle", "busy", "busy_pinned", "synthetic"),
    _what("rw", "I/O", "read", "write", "rw", "randread", "randwrite", "randrw"),
    _what("coroutine_pool", "Coroutine pool", "limited", "per_thread", "global_batches"),
    _what("phase", "Phase", "before", "during", "after"),
    _what("srcu", "SRCU grace periods", "5.18", "5.19-rc1", "fixed"),
    _scale("vcpus", "vCPUs"),
    _scale("memory_bytes", "VM memory", Unit.BYTES),
    _scale("region_bytes", "Memory written", Unit.BYTES),
    _scale("dirty_mb_per_s", "Dirty rate, MB/s"),
    _scale("dirty_ring_size_entries", "Dirty ring", Unit.ENTRIES),
    _scale("multifd_channels", "Channels"),
    _scale("link_bytes_per_s", "Bandwidth", Unit.BYTES_PER_S),
    _scale("block_size_bytes", "Block size", Unit.BYTES),
    _scale("iodepth", "I/O depth"),
    _scale("numjobs", "Jobs"),
    _scale("srcu_calls", "Grace periods so far"),
    _text("tool", "Measured with"),
    _text("guest_content", "Memory content"),
    _text("reaper_policy", "Reaper policy", "levels", "aimd", "predict"),
    _text("reaper_place", "Reaper runs", "inside QEMU", "outside QEMU"),
    _text("device", "Device"),
    _text("node", "Block node"),
    _text("ioengine", "I/O engine"),
    Fact("direct", "Direct I/O", Role.CONTEXT, switch=True),
    _number("runtime_ms", "Runtime", Unit.MS),
    _number("host_cpus", "Host CPUs"),
    _number("host_memory_bytes", "Host memory", Unit.BYTES),
    _text("host_cpu_model", "Host CPU"),
    _text("nic", "Network card"),
    _text("accelerator", "Accelerator"),
    _text("vmm", "VMM"),
    _text("qemu", "QEMU"),
    _text("kernel", "Linux"),
    _text("architecture", "Architecture"),
    _text("firmware", "Firmware"),
    _number("config_hz", "CONFIG_HZ"),
    Fact("preemption", "CONFIG_PREEMPTION", Role.CONTEXT, switch=True),
)


def _complete(rows: Iterable[Fact]) -> Mapping[str, Fact]:
    """The table by name, after proving that it agrees with the table of tunables.

    :raise AssertionError: naming the row.
    """
    table: dict[str, Fact] = {}
    for row in rows:
        assert row.name not in table and row.title, row.name
        tunable = BUILT_IN.get(row.name)
        assert tunable is None or tunable.unit is row.unit, f"{row.name}: another unit"
        suffix = row.unit.value
        named = suffix in ("", "count") or row.name.endswith("_" + suffix)
        assert named, f"{row.name}: must end with {suffix}"
        table[row.name] = row
    return MappingProxyType(table)


FACTS: Mapping[str, Fact] = _complete(_ROWS)
"""Every fact by name, in the order in which people should read them."""


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """*names* in the order in which people should read them."""
    wanted = set(names)
    return tuple(name for name in FACTS if name in wanted)
