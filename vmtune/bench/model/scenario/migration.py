"""Scenarios: what one measurement of a live migration is to do, all of it.

A scenario is a VM, what its guest does, the tunables, what is done while it migrates, and when to
give up. It is written as JSON or TOML::

    [[scenario]]
    name = "mine/busy"
    vm = {memory_bytes = "1536Mi", vcpus = 2}
    workload = {region_bytes = "1Gi", dirty_mb_per_s = 200}
    values = {auto_converge = true, max_bandwidth_bytes_per_s = "1Gbit/s"}
    most_seconds = 60

Everything but the name has a default, that of :class:`Scenario`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from vmtune import units
from vmtune.bench.model.scenario.named import Named
from vmtune.bench.model.scenario.names import NAME, NAME_FORM
from vmtune.documents.strict import Reader, join, parse_toml, short
from vmtune.errors import InvalidInput, Problem
from vmtune.model.migration.steps import Step, dump_steps, lacking, parse_steps
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Value
from vmtune.model.workload import Workload
from vmtune.units import Unit

MIB = 1 << 20
GIB = 1 << 30
LEAST_MEMORY_BYTES = 32 * MIB
MOST_MEMORY_BYTES = 1 << 44
MOST_VCPUS = 1024
MOST_ITERATIONS = 10_000
MOST_SECONDS = 7 * 24 * 3600
MOST_SCENARIOS = 1000
MOST_TEXT = 2000
GUEST_NEEDS_BYTES = 16 * MIB
"""Memory that the guest's program and the firmware's tables take beside the region."""


class Transport(StrEnum):
    """What the two QEMUs migrate over."""

    TCP = "tcp"
    UNIX = "unix"


@dataclass(frozen=True, slots=True)
class VmShape:
    """The VM that is made for a run."""

    memory_bytes: int = 1536 * MIB
    vcpus: int = 1


@dataclass(frozen=True, slots=True)
class Scenario(Named):
    """What a run is to do. The defaults are guestperf's, but for the transport.

    :param name: ``family/variant``, unique and stable.
    :param values: the tunables that make the scenario what it is; a profile's may be laid over
        them (:meth:`with_values`). With ``dirty_ring_size_entries`` above 0 the VM has a dirty
        ring; without it, dirty pages are tracked with a bitmap.
    :param steps: what is done while it migrates: convergence steps, pausing, post-copy.
    :param warmup_s: how long the guest works before the migration, its own baseline.
    :param cooldown_s: how long it works after it.
    :param most_iterations: when QEMU's count exceeds it, the migration is cancelled: it has not
        converged. Not counted in post-copy.
    :param most_seconds: when the migration lasts longer, likewise.
    :param count_ring_full: have QEMU trace each exit for a full dirty ring, and count them.
        Costs time where there are many.
    :raise InvalidInput: with a problem for each field that cannot be accepted.
    """

    name: str
    title: str = ""
    why: str = ""
    vm: VmShape = VmShape()
    workload: Workload = field(default_factory=lambda: Workload(region_bytes=GIB))
    values: Mapping[str, Value] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    transport: Transport = Transport.TCP
    warmup_s: int = 15
    cooldown_s: int = 15
    most_iterations: int = 30
    most_seconds: int = 300
    count_ring_full: bool = False

    def __post_init__(self) -> None:
        problems = [
            Problem(name, code, message, remedy)
            for name, holds, code, message, remedy in self._rules()
            if not holds
        ]
        problems += lacking(self.steps, self.values)
        try:
            accept_values(self.values, BUILT_IN)
        except InvalidInput as error:
            problems += error.problems
        if problems:
            raise InvalidInput(f"the scenario {short(self.name)} is not usable", problems=problems)

    def _rules(self) -> list[tuple[str, bool, str, str, str]]:
        """Of each rule: the field, whether it holds, the code, the reason and the remedy."""
        memory, region = self.vm.memory_bytes, self.workload.region_bytes
        return [
            ("name", bool(NAME.fullmatch(self.name)), "invalid_name",
             f"{short(self.name)} is no name of a scenario", NAME_FORM),
            ("vm.memory_bytes", memory % MIB == 0, "not_whole_mib",
             f"{memory} bytes are not whole MiB", "QEMU takes memory in MiB: round it"),
            ("workload.region_bytes", region + GUEST_NEEDS_BYTES <= memory, "region_too_large",
             f"a region of {units.render(region, Unit.BYTES)} does not fit a VM of "
             f"{units.render(memory, Unit.BYTES)}",
             f"leave {units.render(GUEST_NEEDS_BYTES, Unit.BYTES)} for the guest's program"),
            ("count_ring_full", bool(self.dirty_ring_entries) or not self.count_ring_full,
             "needs_dirty_ring", "there is no dirty ring whose exits could be counted",
             "set values.dirty_ring_size_entries, or count_ring_full to false"),
        ]  # fmt: skip

    @property
    def dirty_ring_entries(self) -> int:
        """Entries of each vCPU's dirty ring; 0 tracks dirty pages with a bitmap."""
        return int(self.values.get("dirty_ring_size_entries", 0))

    @property
    def needs_kvm(self) -> bool:
        """There is nothing to measure without KVM: the dirty ring is KVM's."""
        return bool(self.dirty_ring_entries) or self.values.get("dirty_limit") is True

    @property
    def longest_s(self) -> int:
        """The most that a run can take, its VMs' start and end aside."""
        return self.warmup_s + self.most_seconds + self.cooldown_s

    def with_values(self, values: Mapping[str, Value]) -> Scenario:
        """With *values* laid over its own: the arm of a profile.

        :raise InvalidInput: the two contradict each other.
        """
        return replace(self, values={**self.values, **values})

    def scaled(self, memory_bytes: int) -> Scenario:
        """For a VM of *memory_bytes*: the region and the XBZRLE cache keep their shares.

        :raise InvalidInput: the VM is too small for it.
        """
        old = self.vm.memory_bytes
        workload = self.workload
        region = workload.region_bytes * memory_bytes // old
        region -= region % workload.stride_bytes if region >= workload.stride_bytes else 0
        values = dict(self.values)
        cache = values.get("xbzrle_cache_size_bytes")
        if isinstance(cache, int):
            values["xbzrle_cache_size_bytes"] = nearest_power_of_two(cache * memory_bytes // old)
        return replace(
            self,
            vm=replace(self.vm, memory_bytes=memory_bytes),
            workload=replace(workload, region_bytes=region),
            values=values,
        )


def nearest_power_of_two(size: int) -> int:
    """By ratio, as XBZRLE's cache has to be one: 205 becomes 256; at least a page's 4096."""
    below = 1 << (max(size, 4096).bit_length() - 1)
    return below * 2 if max(size, 4096) ** 2 > 2 * below**2 else below


def to_json(scenario: Scenario) -> dict[str, Any]:  # any JSON
    """All of *scenario*, so that :func:`from_json` reads back the same."""
    return {
        **{each.name: getattr(scenario, each.name) for each in fields(Scenario)},
        "vm": {each.name: getattr(scenario.vm, each.name) for each in fields(VmShape)},
        "workload": {each.name: getattr(scenario.workload, each.name) for each in fields(Workload)},
        "values": dict(scenario.values),
        "steps": dump_steps(scenario.steps),
        "transport": scenario.transport.value,
    }


def from_json(raw: object, where: str = "", base: Scenario | None = None) -> Scenario:
    """A scenario from JSON or TOML. Sizes and rates may have a unit, as in ``1Gi``.

    :param where: what problems call the document; its parts follow.
    :param base: what is left out is as there; ``values`` are laid over its own, and a null
        takes one away.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    names = [each.name for each in fields(Scenario)]
    given = reader.mapping(raw, where, names, () if base else ("name",))
    parts = {
        name: _READERS[name](reader, given[name], join(where, name), base)
        for name in names
        if name in given
    }
    reader.done("the scenario cannot be accepted")
    made = reader.part(where, lambda: _made(base, parts), None)
    reader.done("the scenario cannot be accepted")
    assert made is not None
    return made


def _made(base: Scenario | None, parts: dict[str, Any]) -> Scenario | None:
    return replace(base, **parts) if base else Scenario(**parts)


def read_toml(text: str) -> tuple[Scenario, ...]:
    """The scenarios of a TOML file, its ``[[scenario]]`` tables.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    document = parse_toml(text, "scenario")
    reader = Reader()
    tables = reader.mapping(document, "", (), ("scenario",)).get("scenario", ())
    read = reader.sequence(
        tables,
        "scenario",
        lambda raw, where: reader.part("", lambda: from_json(raw, where), None),
        MOST_SCENARIOS,
    )
    scenarios = tuple(scenario for scenario in read if scenario is not None)
    seen: set[str] = set()
    for index, scenario in enumerate(scenarios):
        if scenario.name in seen and not reader.problems:
            reader.refuse(f"scenario.{index}.name", "duplicate_name",
                          f"there are two scenarios {scenario.name}", "rename one")  # fmt: skip
        seen.add(scenario.name)
    reader.done("the scenarios cannot be accepted")
    return scenarios


def _text(reader: Reader, raw: object, where: str, base: Scenario | None) -> str:
    return reader.text(raw, where, MOST_TEXT)


def _vm(reader: Reader, raw: object, where: str, base: Scenario | None) -> VmShape:
    old = base.vm if base else VmShape()
    parts = reader.mapping(raw, where, [each.name for each in fields(VmShape)])
    return VmShape(
        reader.integer(parts.get("memory_bytes", old.memory_bytes), f"{where}.memory_bytes",
                       LEAST_MEMORY_BYTES, MOST_MEMORY_BYTES, unit=Unit.BYTES),
        reader.integer(parts.get("vcpus", old.vcpus), f"{where}.vcpus", 1, MOST_VCPUS),
    )  # fmt: skip


def _workload(reader: Reader, raw: object, where: str, base: Scenario | None) -> Workload:
    old = base.workload if base else Workload(region_bytes=GIB)
    parts = reader.mapping(raw, where, [each.name for each in fields(Workload)])
    before = len(reader.problems)
    numbers = {
        each.name: reader.integer(
            parts.get(each.name, getattr(old, each.name)),
            f"{where}.{each.name}",
            0,
            1 << 32,
            unit=Unit.BYTES if each.name.endswith("_bytes") else Unit.NONE,
        )
        for each in fields(Workload)
    }
    if len(reader.problems) > before:
        return old
    return reader.part(where, lambda: Workload(**numbers), old)


def _values(reader: Reader, raw: object, where: str, base: Scenario | None) -> Mapping[str, Value]:
    given = reader.mapping(raw, where)
    laid_over = {**(base.values if base else {}), **given}
    before = len(reader.problems)
    try:
        return accept_values(laid_over, BUILT_IN, f"{where}.")
    except InvalidInput as error:
        reader.problems += error.problems
    assert len(reader.problems) > before
    return {}


def _steps(reader: Reader, raw: object, where: str, base: Scenario | None) -> tuple[Step, ...]:
    return reader.part("", lambda: parse_steps(raw, where), ())


def _transport(reader: Reader, raw: object, where: str, base: Scenario | None) -> Transport:
    return reader.choice(raw, where, Transport, Transport.TCP)


def _seconds(reader: Reader, raw: object, where: str, base: Scenario | None) -> int:
    return reader.integer(raw, where, 0, MOST_SECONDS)


def _most(reader: Reader, raw: object, where: str, base: Scenario | None) -> int:
    most = MOST_SECONDS if where.endswith("_seconds") else MOST_ITERATIONS
    return reader.integer(raw, where, 1, most)


def _boolean(reader: Reader, raw: object, where: str, base: Scenario | None) -> bool:
    return reader.boolean(raw, where)


_READERS = {
    "name": _text,
    "title": _text,
    "why": _text,
    "vm": _vm,
    "workload": _workload,
    "values": _values,
    "steps": _steps,
    "transport": _transport,
    "warmup_s": _seconds,
    "cooldown_s": _seconds,
    "most_iterations": _most,
    "most_seconds": _most,
    "count_ring_full": _boolean,
}
assert list(_READERS) == [each.name for each in fields(Scenario)], "a field without its reader"
