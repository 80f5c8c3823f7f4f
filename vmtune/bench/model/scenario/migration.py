"""Scenarios: what one measurement of a live migration is to do, all of it.

A scenario is a VM, what its guest does, the tunables, what is done while it migrates, and its
limits. It is written as JSON or TOML::

    [[scenario]]
    name = "mine/busy"
    vm = {memory_bytes = "1536Mi", vcpus = 2}
    workload = {region_bytes = "1Gi", dirty_mb_per_s = 200}
    values = {auto_converge = true, max_bandwidth_bytes_per_s = "1Gbit/s"}
    max_seconds = 60

Everything but the name has a default, that of :class:`Scenario`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

from annotated_types import Interval

from vmtune import units
from vmtune.bench.model.scenario.named import Named
from vmtune.bench.model.scenario.names import NAME, NAME_FORM
from vmtune.bench.model.scenario.parts import (
    GIB,
    MIB,
    MemoryBytes,
    Text,
    Values,
    Vcpus,
    accept_bench_values,
    laid_over,
)
from vmtune.documents import dataclass_json as documents
from vmtune.documents.dataclass_json import Written
from vmtune.documents.strict import Reader, parse_toml, short
from vmtune.errors import InvalidInput, Problem
from vmtune.model.migration.steps import Step, dump_steps, lacking, parse_steps
from vmtune.model.tunables.tunable import Value
from vmtune.model.workload import Workload
from vmtune.units import Unit

MAX_ITERATIONS = 10_000
MAX_SECONDS = 7 * 24 * 3600
MAX_SCENARIOS = 1000
GUEST_NEEDS_BYTES = 16 * MIB
"""Memory that the guest's program and the firmware's tables take besides the region."""

_Seconds = Annotated[int, Interval(ge=0, le=MAX_SECONDS)]


def _steps(reader: Reader, raw: object, where: str) -> tuple[Step, ...]:
    return reader.part("", lambda: parse_steps(raw, where), ())


class Transport(StrEnum):
    """What the two QEMUs migrate over."""

    TCP = "tcp"
    UNIX = "unix"


@dataclass(frozen=True, slots=True)
class VmShape:
    """The VM that is made for a run."""

    memory_bytes: MemoryBytes = 1536 * MIB
    vcpus: Vcpus = 1


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
    :param max_iterations: when QEMU's count exceeds it, the migration is cancelled: it has not
        converged. Not counted in post-copy.
    :param max_seconds: when the migration lasts longer, likewise.
    :param ends_at_limit: it is meant to end at these limits: the run ended as planned then.
    :param count_ring_full: have QEMU trace each exit for a full dirty ring, and count them.
        Costs time where there are many.
    :raise InvalidInput: with a problem for each field that cannot be accepted.
    """

    name: Text
    title: Text = ""
    why: Text = ""
    vm: VmShape = VmShape()
    workload: Workload = field(default_factory=lambda: Workload(region_bytes=GIB))
    values: Values = field(default_factory=dict)
    steps: Annotated[tuple[Step, ...], Written(_steps, dump_steps)] = ()
    transport: Transport = Transport.TCP
    warmup_s: _Seconds = 15
    cooldown_s: _Seconds = 15
    max_iterations: Annotated[int, Interval(ge=1, le=MAX_ITERATIONS)] = 30
    max_seconds: Annotated[int, Interval(ge=1, le=MAX_SECONDS)] = 300
    count_ring_full: bool = False
    ends_at_limit: bool = False

    def __post_init__(self) -> None:
        problems = [
            Problem(name, code, message, remedy)
            for name, holds, code, message, remedy in self._rules()
            if not holds
        ]
        problems += lacking(self.steps, self.values)
        try:
            accept_bench_values(self.values)
        except InvalidInput as error:
            problems += error.problems
        if problems:
            raise InvalidInput(f"the scenario {short(self.name)} is not usable", problems=problems)

    def _rules(self) -> list[tuple[str, bool, str, str, str]]:
        """Of each rule: the field, whether it holds, the code, the reason and the remedy."""
        memory, region = self.vm.memory_bytes, self.workload.region_bytes
        return [
            ("name", bool(NAME.fullmatch(self.name)), "invalid_name",
             f"{short(self.name)} is not a valid scenario name", NAME_FORM),
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
        return self.warmup_s + self.max_seconds + self.cooldown_s

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
    written: dict[str, Any] = documents.to_json(scenario)
    # A release without them refuses them, and runs of it compare as equal.
    for name in ("check", "skew_percent"):
        if not getattr(scenario.workload, name):
            del written["workload"][name]
    return written


def from_json(raw: object, where: str = "", base: Scenario | None = None) -> Scenario:
    """A scenario from JSON or TOML. Sizes and rates may have a unit, as in ``1Gi``.

    :param where: what problems call the document; its parts follow.
    :param base: what is left out is as there; ``values`` are laid over its own, and a null
        takes one away.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    if isinstance(raw, Mapping):
        usual = to_json(base) if base is not None else {"workload": _USUAL_WORKLOAD}
        raw = laid_over(usual, raw)
    return documents.from_json(Scenario, raw, where, "the scenario")


_USUAL_WORKLOAD = {"region_bytes": GIB}


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
        MAX_SCENARIOS,
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
