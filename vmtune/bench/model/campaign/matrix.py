"""Matrices of the block and of the boot benchmark: what is measured in every combination.

Written as TOML or JSON, with what a campaign has (name, arms, blocks, seed, margin) and one table
that says what kind of benchmark it is::

    name = "coroutine-pool"
    blocks = 6
    arms = [{name = "QEMU 7.2", qemu = "qemu-7.2"}, {name = "QEMU 10"}]

    [block]                       # every combination is a cell
    nodes = ["null-co"]
    rw = ["randread"]
    block_size_bytes = ["4Ki", "128Ki"]
    iodepth = [1, 8, 64]
    numjobs = [1]
    runtime_s = 10

or ``[boot]`` with ``guests``, ``firmware``, ``accelerators``, ``vcpus`` and ``memory_bytes``, where
what cannot be started by a firmware is left out.

It is run as the campaign that it stands for (:func:`campaign_of`), and is taken wherever a
campaign is (:func:`read_campaign`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product
from typing import TypeVar

from vmtune.bench.model.campaign import file as campaign_file
from vmtune.bench.model.campaign.campaign import (
    DEFAULT_BLOCKS,
    DEFAULT_MARGIN_PERCENT,
    MOST_ARMS,
    MOST_BLOCKS,
    MOST_RUNS,
    MOST_SEED,
    Arm,
    Beside,
    Campaign,
    Cell,
)
from vmtune.bench.model.campaign.file import Known
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.scenario.block import (
    LEAST_NODE_BYTES,
    MOST_LOAD_S,
    MOST_NODE_BYTES,
    BlockScenario,
)
from vmtune.bench.model.scenario.block_target import LiveTarget
from vmtune.bench.model.scenario.boot import BootScenario, why_not
from vmtune.bench.model.scenario.matrix_cells import (
    LEAST_BLOCK_BYTES,
    MOST_BLOCK_BYTES,
    MOST_IODEPTH,
    MOST_JOBS,
    Accelerator,
    BlockCell,
    BootCell,
    BootGuest,
    Firmware,
    IoPattern,
    NodeKind,
)
from vmtune.bench.model.scenario.parts import GIB, LEAST_MEMORY_BYTES, MIB, MOST_TEXT
from vmtune.documents.dataclass_json import decoder, read, to_json
from vmtune.documents.strict import Reader, join, parse_toml, short
from vmtune.model.profile import check_name
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.model.tunables.rules import accept_values
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

_KINDS = (ScenarioKind.BLOCK.value, ScenarioKind.BOOT.value)
_MOST_CHOICES = 50
_MOST_SECONDS = 3600
_Word = TypeVar("_Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class MatrixArm:
    """One of the QEMUs or settings that are compared.

    :param qemu: the name of a QEMU in the service's settings; empty for the usual one.
    """

    name: str
    qemu: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BlockMatrix:
    """What the block benchmark measures.

    :param iothread: requests are handled by an iothread, else by the main loop.
    :param size_bytes: of the node.
    :param ramp_s: load before the figures count.
    :param target: a VM that runs, which is measured in the place of a QEMU without a guest.
    """

    nodes: tuple[NodeKind, ...] = (NodeKind.NULL,)
    rw: tuple[IoPattern, ...] = (IoPattern.RANDREAD,)
    block_size_bytes: tuple[int, ...] = (4096,)
    iodepth: tuple[int, ...] = (1,)
    numjobs: tuple[int, ...] = (1,)
    size_bytes: int = GIB
    runtime_s: int = 10
    ramp_s: int = 2
    iothread: bool = True
    target: LiveTarget | None = None

    @property
    def cells(self) -> tuple[BlockCell, ...]:
        """Every combination, the first list outermost."""
        return tuple(
            BlockCell(*each)
            for each in product(
                self.nodes, self.rw, self.block_size_bytes, self.iodepth, self.numjobs
            )
        )


@dataclass(frozen=True, slots=True)
class BootMatrix:
    """What the boot benchmark measures.

    :param count_regions: count the updates of KVM's memory regions by QEMU's trace events.
    :param most_seconds: a boot that takes longer is ended, and counts as not converged.
    """

    guests: tuple[BootGuest, ...] = (BootGuest.PROJECT,)
    firmware: tuple[Firmware, ...] = (Firmware.SEABIOS,)
    accelerators: tuple[Accelerator, ...] = (Accelerator.KVM,)
    vcpus: tuple[int, ...] = (1,)
    memory_bytes: tuple[int, ...] = (512 * MIB,)
    count_regions: bool = True
    most_seconds: int = 300

    @property
    def cells(self) -> tuple[BootCell, ...]:
        """Every combination that can be, the first list outermost."""
        return tuple(
            BootCell(*each)
            for each in product(
                self.guests, self.firmware, self.accelerators, self.vcpus, self.memory_bytes
            )
            if not why_not(each[0], each[1])
        )


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """A matrix, and how often and in what order it is run: as a campaign.

    :param arms: one alone is measured, and compared with nothing.
    :param primary_metric: empty for the kind's own.
    """

    name: str
    matrix: BlockMatrix | BootMatrix
    arms: tuple[MatrixArm, ...]
    title: str = ""
    why: str = ""
    blocks: int = DEFAULT_BLOCKS
    seed: int | None = None
    primary_metric: str = ""
    margin_percent: float = DEFAULT_MARGIN_PERCENT
    beside: Beside | None = None

    @property
    def run_count(self) -> int:
        """Measurements in all, those that do not count left out."""
        return self.blocks * len(self.arms) * len(self.matrix.cells)


def is_matrix(raw: object) -> bool:
    """Whether *raw* claims to be a matrix rather than a campaign."""
    return isinstance(raw, Mapping) and any(kind in raw for kind in _KINDS)


def read_campaign(raw: object, known: Known) -> Campaign:
    """A campaign from JSON or TOML, written as such or as a matrix.

    :param known: scenarios that a campaign may call by their names.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    return campaign_of(from_json(raw)) if is_matrix(raw) else campaign_file.from_json(raw, known)


def campaign_of(plan: MatrixPlan) -> Campaign:
    """The campaign that a matrix stands for: each combination is a cell.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    matrix = plan.matrix
    base: BlockScenario | BootScenario
    if isinstance(matrix, BlockMatrix):
        first, *_ = matrix.cells
        base = BlockScenario(
            first, plan.title, plan.why, matrix.size_bytes, matrix.runtime_s, matrix.ramp_s,
            matrix.iothread, name=f"{plan.name}/{first.name}", target=matrix.target,
        )  # fmt: skip
    else:
        boots, *_ = matrix.cells
        base = BootScenario(
            boots, plan.title, plan.why, matrix.count_regions, matrix.most_seconds,
            name=f"{plan.name}/{boots.name}",
        )  # fmt: skip
    return Campaign(
        name=plan.name,
        scenario=base,
        arms=tuple(Arm(arm.name, qemu=arm.qemu, values=arm.values) for arm in plan.arms),
        cells=tuple(
            Cell(_cell_name(plan, base, cell), {"cell": to_json(cell)}) for cell in matrix.cells
        ),
        title=plan.title,
        why=plan.why,
        blocks=plan.blocks,
        seed=plan.seed,
        primary_metric=plan.primary_metric,
        margin_percent=plan.margin_percent,
        beside=plan.beside,
    )


def _cell_name(
    plan: MatrixPlan, base: BlockScenario | BootScenario, cell: BlockCell | BootCell
) -> str:
    """What a combination is called. A matrix that has no more of a name than its kind measures
    what others measure by the same name: there it stands for the rest of the setup, too."""
    if plan.name not in _KINDS:
        return cell.name
    return replace(base, cell=cell, name="").variant  # type: ignore[arg-type]  # of one kind


def read_toml(text: str) -> MatrixPlan:
    """The matrix of a TOML file.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    return from_json(parse_toml(text, "matrix"))


def from_json(raw: object) -> MatrixPlan:
    """A matrix from JSON or TOML.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    reader = Reader()
    given = reader.mapping(
        raw,
        "",
        (
            "title",
            "why",
            "blocks",
            "seed",
            "primary_metric",
            "margin_percent",
            "beside",
            *_KINDS,
        ),
        ("name", "arms"),
    )
    name = reader.part("", lambda: check_name(str(given.get("name", "")), "name"), "")
    matrix = _matrix(reader, given)
    arms = reader.sequence(
        given.get("arms", []), "arms", lambda each, where: _arm(reader, each, where), MOST_ARMS
    )
    for index, arm in enumerate(arms):
        if arm.name in [other.name for other in arms[:index]]:
            reader.refuse(f"arms.{index}.name", "duplicate_name",
                          f"there are two arms {arm.name}", "rename one")  # fmt: skip
    if "arms" in given and not arms:
        reader.refuse("arms", "missing", "there are no arms", "give at least one")
    seed = given.get("seed")
    plan = MatrixPlan(
        name,
        matrix,
        arms,
        title=reader.text(given.get("title", ""), "title", MOST_TEXT),
        why=reader.text(given.get("why", ""), "why", MOST_TEXT),
        blocks=reader.integer(given.get("blocks", DEFAULT_BLOCKS), "blocks", 1, MOST_BLOCKS, 1),
        seed=None if seed is None else reader.integer(seed, "seed", 0, MOST_SEED),
        primary_metric=reader.text(given.get("primary_metric", ""), "primary_metric", 100),
        margin_percent=reader.number(
            given.get("margin_percent", DEFAULT_MARGIN_PERCENT), "margin_percent", 0.01, 100
        ),
        beside=decoder(Beside | None)(reader, given.get("beside"), "beside"),
    )
    if not reader.problems and not matrix.cells:
        reader.refuse("boot.firmware", "firmware_cannot_start_guest",
                      "it can start none of the guests", "boot linux with ovmf")  # fmt: skip
    if plan.run_count > MOST_RUNS:
        reader.refuse("blocks", "too_many", f"{plan.run_count:,} measurements are more than "
                      f"{MOST_RUNS:,}", "take fewer combinations or blocks")  # fmt: skip
    reader.done("the matrix cannot be accepted")
    return plan


def _matrix(reader: Reader, given: Mapping[str, object]) -> BlockMatrix | BootMatrix:
    kinds = [kind for kind in _KINDS if kind in given]
    if len(kinds) != 1:
        reader.refuse("block", "one_of", "a matrix has either block or boot", "give one of them")
        return BlockMatrix()
    return _block(reader, given["block"]) if kinds == ["block"] else _boot(reader, given["boot"])


def _block(reader: Reader, raw: object) -> BlockMatrix:
    usual = BlockMatrix()
    parts = reader.mapping(raw, "block", BlockMatrix.__slots__)

    def numbers(name: str, most: int, least: int = 1, unit: Unit = Unit.NONE) -> tuple[int, ...]:
        given = parts.get(name, getattr(usual, name))
        return _numbers(reader, given, f"block.{name}", least, most, unit)

    wanted = parts.get("target")
    target = read(reader, LiveTarget, wanted, "block.target") if wanted is not None else None
    usual_nodes = (NodeKind.VM,) if target is not None and target.own else usual.nodes
    return BlockMatrix(
        nodes=_words(reader, parts.get("nodes", usual_nodes), "block.nodes", NodeKind),
        rw=_words(reader, parts.get("rw", usual.rw), "block.rw", IoPattern),
        block_size_bytes=numbers(
            "block_size_bytes", MOST_BLOCK_BYTES, LEAST_BLOCK_BYTES, Unit.BYTES
        ),
        iodepth=numbers("iodepth", MOST_IODEPTH),
        numjobs=numbers("numjobs", MOST_JOBS),
        size_bytes=reader.integer(
            parts.get("size_bytes", GIB),
            "block.size_bytes",
            LEAST_NODE_BYTES,
            MOST_NODE_BYTES,
            GIB,
            Unit.BYTES,
        ),
        runtime_s=reader.integer(parts.get("runtime_s", 10), "block.runtime_s", 1, MOST_LOAD_S),
        ramp_s=reader.integer(parts.get("ramp_s", 2), "block.ramp_s", 0, MOST_LOAD_S),
        iothread=reader.boolean(parts.get("iothread", True), "block.iothread"),
        target=target,
    )


def _boot(reader: Reader, raw: object) -> BootMatrix:
    usual = BootMatrix()
    parts = reader.mapping(raw, "boot", BootMatrix.__slots__)

    def numbers(name: str, most: int, least: int = 1, unit: Unit = Unit.NONE) -> tuple[int, ...]:
        given = parts.get(name, getattr(usual, name))
        return _numbers(reader, given, f"boot.{name}", least, most, unit)

    return BootMatrix(
        guests=_words(reader, parts.get("guests", usual.guests), "boot.guests", BootGuest),
        firmware=_words(reader, parts.get("firmware", usual.firmware), "boot.firmware", Firmware),
        accelerators=_words(
            reader, parts.get("accelerators", usual.accelerators), "boot.accelerators", Accelerator
        ),
        vcpus=numbers("vcpus", 1024),
        memory_bytes=numbers("memory_bytes", 1 << 44, LEAST_MEMORY_BYTES, Unit.BYTES),
        count_regions=reader.boolean(parts.get("count_regions", True), "boot.count_regions"),
        most_seconds=reader.integer(
            parts.get("most_seconds", 300), "boot.most_seconds", 1, _MOST_SECONDS
        ),
    )


def _words(reader: Reader, raw: object, where: str, words: type[_Word]) -> tuple[_Word, ...]:
    first = next(iter(words))
    return _choices(
        reader, raw, where, lambda each, field: reader.choice(each, field, words, first)
    )


def _numbers(
    reader: Reader, raw: object, where: str, least: int, most: int, unit: Unit
) -> tuple[int, ...]:
    return _choices(
        reader,
        raw,
        where,
        lambda each, field: reader.integer(each, field, least, most, least, unit),
    )


_Choice = TypeVar("_Choice")


def _choices(
    reader: Reader, raw: object, where: str, read: Callable[[object, str], _Choice]
) -> tuple[_Choice, ...]:
    """At least one, each once."""
    before = len(reader.problems)
    found = reader.sequence(raw, where, read, _MOST_CHOICES)
    if len(reader.problems) == before:
        if not found:
            reader.refuse(where, "missing", "the list is empty", "give at least one")
        elif len(set(found)) < len(found):
            reader.refuse(where, "duplicate", f"{short(raw)} has one twice", "leave one out")
    return found


def _arm(reader: Reader, raw: object, where: str) -> MatrixArm:
    parts = reader.mapping(raw, where, ("qemu", "values"), ("name",))
    name = reader.text(parts.get("name", ""), join(where, "name"), 63)
    if not name.strip():
        reader.refuse(join(where, "name"), "missing", "the name is empty", "give one")
    qemu = reader.text(parts.get("qemu", ""), join(where, "qemu"), 63)
    if qemu:
        reader.part("", lambda: check_name(qemu, join(where, "qemu")), "")
    given = reader.mapping(parts.get("values", {}), join(where, "values"))
    nothing: dict[str, Value] = {}
    values = reader.part(
        "", lambda: accept_values(given, BUILT_IN, join(where, "values") + "."), nothing
    )
    return MatrixArm(name, qemu, values)
