"""The block benchmark: what one measurement is to do, and what it recorded. Pure.

A QEMU without a guest exports a block node by NBD, and fio loads it. Each request of fio is a
coroutine of QEMU's block layer, as each request of a guest's disk is. Or the project's guest loads
virtio-blk disks (:mod:`vmtune.bench.model.scenario.guest_driver`), or it is a VM that runs
(:mod:`vmtune.bench.model.scenario.block_target`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Annotated, Any

from annotated_types import Interval

from vmtune import units
from vmtune.bench.model.scenario import block_target, guest_driver
from vmtune.bench.model.scenario.block_target import LiveTarget
from vmtune.bench.model.scenario.guest_driver import GuestDriver
from vmtune.bench.model.scenario.matrix_cells import BlockCell, NodeKind
from vmtune.bench.model.scenario.named import Named
from vmtune.bench.model.scenario.names import NAME, NAME_FORM, usual_name
from vmtune.bench.model.scenario.parts import (
    GIB,
    MIB,
    Text,
    Values,
    accept_bench_values,
    without_kind,
)
from vmtune.bench.model.settable import settable as all_settable
from vmtune.documents import dataclass_json as documents
from vmtune.documents.strict import Reader, short
from vmtune.errors import InvalidInput, Problem
from vmtune.model.guest_io import GuestIo
from vmtune.model.tunables.tunable import Route, Value
from vmtune.units import Unit

KIND = "block"
"""What says in JSON that a scenario is one of these, and the family of their names."""
LEAST_NODE_BYTES, MAX_NODE_BYTES = MIB, 1 << 44
MAX_LOAD_S = 3600
USUAL_RUNTIME_S, USUAL_RAMP_S = 10, 2
AROUND_S = 2
"""The time that sampling QEMU before and after the load takes."""

VIRTIO_QUEUES, VIRTIO_QUEUE_SIZE = "virtio_blk_queues", "virtio_blk_queue_size"
"""With either, QEMU has a virtio disk with such queues. Nothing uses it, but its queues define
the size of QEMU's pool of coroutines."""


def settable(tunable: str) -> bool:
    """Whether a QEMU of this benchmark can be tuned with it."""
    row = all_settable().get(tunable)
    disk = tunable in (VIRTIO_QUEUES, VIRTIO_QUEUE_SIZE)
    return disk or (row is not None and row.route is Route.LIVE)


@dataclass(frozen=True, slots=True)
class BlockScenario(Named):
    """What a measurement is to do.

    :param size_bytes: of the node.
    :param runtime_s: the load that counts; *ramp_s* is the load before it.
    :param iothread: requests are handled by an iothread, else by the main loop; on a running VM by
        the node's own thread.
    :param values: the tunables of the QEMU; an arm's may be laid over them
        (:meth:`with_values`).
    :param name: ``family/variant``; left out, it follows from the other parts but the values.
    :param target: a VM that runs; None for a QEMU that is started for the measurement.
    :param driver: the project's guest loads virtio-blk disks on the nodes; None: fio loads one node
        by NBD.
    :raise InvalidInput: with a problem for each field that cannot be accepted.
    """

    cell: BlockCell
    title: Text = ""
    why: Text = ""
    size_bytes: Annotated[int, Interval(ge=LEAST_NODE_BYTES, le=MAX_NODE_BYTES), Unit.BYTES] = GIB
    runtime_s: Annotated[int, Interval(ge=1, le=MAX_LOAD_S)] = USUAL_RUNTIME_S
    ramp_s: Annotated[int, Interval(ge=0, le=MAX_LOAD_S)] = USUAL_RAMP_S
    iothread: bool = True
    values: Values = field(default_factory=dict)
    name: Text = ""
    target: LiveTarget | None = None
    driver: GuestDriver | None = None

    def __post_init__(self) -> None:
        if not self.name:
            parts = {name: getattr(self, name) for name in _SETUP}
            if self.target is not None:
                parts["target"] = block_target.to_json(self.target)
            if self.driver is not None:
                parts["driver"] = documents.to_json(self.driver)
            name = usual_name(KIND, self.cell.name, parts, _USUAL)
            object.__setattr__(self, "name", name)
        problems = list(self._problems())
        try:
            accept_bench_values(self.values)
        except InvalidInput as error:
            problems += error.problems
        if problems:
            raise InvalidInput(f"the scenario {self.name} is not usable", problems=problems)

    def _problems(self) -> list[Problem]:
        found = []
        if not NAME.fullmatch(self.name):
            found.append(
                Problem(
                    "name",
                    "invalid_name",
                    f"{short(self.name)} is not a valid scenario name",
                    NAME_FORM,
                )
            )
        if self.cell.block_size_bytes > self.size_bytes:
            block = units.render(self.cell.block_size_bytes, Unit.BYTES)
            size = units.render(self.size_bytes, Unit.BYTES)
            found.append(Problem("cell.block_size_bytes", "larger_than_node",
                                 f"a request of {block} does not fit a node of {size}",
                                 "enlarge size_bytes"))  # fmt: skip
        found += block_target.problems_of(self.target, self.cell, self.values)
        found += guest_driver.problems_of(
            self.driver,
            self.cell,
            iothread=self.iothread,
            has_target=self.target is not None,
            values=self.values,
        )
        for name in self.values if self.target is None else ():
            if name in all_settable() and not settable(name):
                found.append(Problem(f"values.{name}", "not_settable",
                                     f"{name} has no meaning for a QEMU that only serves blocks",
                                     "leave it out"))  # fmt: skip
            elif name.startswith("iothread_") and not self.iothread:
                found.append(Problem(f"values.{name}", "needs_iothread",
                                     f"{name} is an iothread's, and the main loop does the work",
                                     "set iothread to true, or leave it out"))  # fmt: skip
        return found

    @property
    def needs_kvm(self) -> bool:
        """Never: a guest that loads disks runs by TCG, too."""
        return False

    @property
    def longest_s(self) -> int:
        """The most that a measurement takes, QEMU's start and end aside."""
        return self.ramp_s + self.runtime_s + AROUND_S

    def with_values(self, values: Mapping[str, Value]) -> BlockScenario:
        """With *values* laid over its own: an arm.

        :raise InvalidInput: the two contradict each other.
        """
        return replace(self, values={**self.values, **values})


_SETUP = ("size_bytes", "runtime_s", "ramp_s", "iothread", "target", "driver")
_USUAL = {each.name: each.default for each in fields(BlockScenario) if each.name in _SETUP}
"""What makes a name, besides the combination, where it is not as usual."""


def to_json(scenario: BlockScenario) -> dict[str, Any]:  # any JSON
    """All of *scenario*, so that :func:`from_json` reads back the same."""
    written: dict[str, Any] = {"kind": KIND, **documents.to_json(scenario)}
    if scenario.target is None:
        del written["target"]
    else:
        written["target"] = block_target.to_json(scenario.target)
    if scenario.driver is None:
        del written["driver"]
    return written


def from_json(raw: object, where: str = "") -> BlockScenario:
    """A scenario from JSON or TOML. Sizes may have a unit, as in ``4Ki``. A target says which kind
    of node there is.

    :param where: what problems call the document; its parts follow.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    given: Any = without_kind(raw, where, KIND, reader)
    match given:
        case {"target": {"node": str()} | {"device": str()}, "cell": dict() as cell}:
            given = {**given, "cell": {"node": NodeKind.VM.value, **cell}}
    made = documents.read(reader, BlockScenario, given, where)
    reader.done("the scenario cannot be accepted")
    assert made is not None
    return made


class LoadPhase(StrEnum):
    """The part of the measurement to which a sample of QEMU belongs."""

    BEFORE = "before"
    DURING = "during"
    """The load runs, its ramp included."""
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """What a QEMU uses of its host, read from /proc.

    :param at_ms: on the measurement's timeline.
    :param maps: its memory maps, of which *stacks* are coroutines' stacks.
    :param vsz_bytes: its address space; *rss_bytes* what of it is in memory.
    """

    at_ms: float
    phase: LoadPhase
    maps: int
    stacks: int
    vsz_bytes: int
    rss_bytes: int


@dataclass(frozen=True, slots=True)
class CpuMark:
    """CPU time that all threads of a QEMU have used so far, user and system together."""

    at_ms: float
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class PoolForecast:
    """What the pool model (:mod:`vmtune.model.host.pools`) says before the load.

    :param requests: that QEMU handles at once, at most.
    :param hard_limit: None; earlier records have what QEMU's source means it to be.
    :param max_pooled: coroutines that are kept when nothing is in flight.
    :param max_maps: of the process, in the worst case.
    :param limit: vm.max_map_count; None where it cannot be read.
    """

    design: str
    requests: int
    soft_limit: int
    hard_limit: int | None
    max_pooled: int
    max_maps: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """Everything that was recorded. Times are milliseconds on the measurement's timeline, which
    begins (0 ms) when QEMU is up and tuned, and its node is exported.

    :param qemu: its version.
    :param load_ms: when fio, or the guest, was started; None if it never was. *load_ended_ms* when
        it had ended, or QEMU had.
    :param measured_ms: when what counts began and ended, the ramp left out; None if nothing was
        reported.
    :param fio: fio's JSON, whole; None where it wrote none.
    :param fio_output: its other output.
    :param fio_status: its exit status, below 0 for a signal; None where it never ran.
    :param guest_io: what the guest measured, where its driver made the requests.
    :param qemu_output: the last that QEMU wrote to its standard error.
    :param qemu_ended: how it ended by itself (``died of SIGABRT``); empty where it did not.
    """

    qemu: str = ""
    load_ms: float | None = None
    load_ended_ms: float | None = None
    measured_ms: tuple[float, ...] | None = None
    ended_ms: float = 0
    fio: Mapping[str, Any] | None = None  # any JSON: fio's
    fio_output: str = ""
    fio_status: int | None = None
    processes: tuple[ProcessSample, ...] = ()
    cpu: tuple[CpuMark, ...] = ()
    pool_forecast: PoolForecast | None = None
    qemu_output: str = ""
    qemu_ended: str = ""
    guest_io: GuestIo | None = None
