"""Matrices of the block, the boot and the updates benchmark: what is measured in every combination.

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

or ``[boot]`` with ``guests``, ``firmware``, ``accelerators``, ``vcpus``, ``memory_bytes``,
``acpi``, ``bridges``, ``devices`` and ``remaps``, where
what cannot be started by a firmware is left out, or ``[srcu]`` with ``vcpus``.

It is run as the campaign that it stands for (:func:`campaign_of`), and is taken wherever a
campaign is (:func:`read_campaign`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from annotated_types import Interval, MaxLen

from vmtune.bench.model.campaign import file as campaign_file
from vmtune.bench.model.campaign.campaign import (
    DEFAULT_BLOCKS,
    DEFAULT_MARGIN_PERCENT,
    MAX_ARMS,
    MAX_BLOCKS,
    MAX_RUNS,
    MAX_SEED,
    Arm,
    Campaign,
    Cell,
    PublishedChoice,
)
from vmtune.bench.model.campaign.file import Known
from vmtune.bench.model.campaign.matrix_kinds import BlockMatrix, BootMatrix, SrcuMatrix
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.scenario.any_kind import AloneScenario
from vmtune.bench.model.scenario.block import (
    BlockScenario,
)
from vmtune.bench.model.scenario.boot import BootScenario
from vmtune.bench.model.scenario.matrix_cells import (
    BlockCell,
    BootCell,
    NodeKind,
    SrcuCell,
)
from vmtune.bench.model.scenario.parts import (
    MAX_TEXT,
    accept_bench_values,
)
from vmtune.bench.model.scenario.srcu import SrcuScenario
from vmtune.documents.dataclass_json import Written, decoder, read, to_json
from vmtune.documents.strict import Reader, parse_toml
from vmtune.model.profile import check_name
from vmtune.model.tunables.tunable import Value

_KINDS = tuple(kind.value for kind in ScenarioKind if kind is not ScenarioKind.MIGRATION)
_MAX_NAME = 63


def _read_name(reader: Reader, raw: object, where: str) -> str:
    return reader.part("", lambda: check_name(str(raw), where), "")


def _read_qemu(reader: Reader, raw: object, where: str) -> str:
    qemu = reader.text(raw, where, _MAX_NAME)
    return reader.part("", lambda: check_name(qemu, where), "") if qemu else qemu


def _read_arm_name(reader: Reader, raw: object, where: str) -> str:
    name = reader.text(raw, where, _MAX_NAME)
    if not name.strip():
        reader.refuse(where, "missing", "the name is empty", "give one")
    return name


def _read_values(reader: Reader, raw: object, where: str) -> Mapping[str, Value]:
    nothing: dict[str, Value] = {}
    given = reader.mapping(raw, where)
    return reader.part("", lambda: accept_bench_values(given, where + "."), nothing)


@dataclass(frozen=True, slots=True)
class MatrixArm:
    """One of the QEMUs or settings that are compared.

    :param qemu: the name of a QEMU in the service's settings; empty for the usual one.
    """

    name: Annotated[str, Written(_read_arm_name)]
    qemu: Annotated[str, Written(_read_qemu)] = ""
    values: Annotated[Mapping[str, Value], Written(_read_values)] = field(default_factory=dict)


def _read_arms(reader: Reader, raw: object, where: str) -> tuple[MatrixArm, ...]:
    arms: tuple[MatrixArm | None, ...] = decoder(
        Annotated[tuple[MatrixArm, ...], MaxLen(MAX_ARMS)]
    )(reader, raw, where)
    found = [arm for arm in arms if arm is not None]
    for index, arm in enumerate(found):
        if arm.name in [other.name for other in found[:index]]:
            reader.refuse(
                f"{where}.{index}.name", "duplicate_name", f"there are two arms {arm.name}",
                "rename one",
            )  # fmt: skip
    if not arms:
        reader.refuse(where, "missing", "there are no arms", "give at least one")
    return tuple(found)


def _read_block(reader: Reader, raw: object, where: str) -> object:
    """A running VM's own node is its only one, unless nodes are named."""
    if isinstance(raw, Mapping) and isinstance(raw.get("target"), Mapping):
        if raw["target"].get("node"):
            raw = {"nodes": [NodeKind.VM.value], **raw}
    return decoder(BlockMatrix)(reader, raw, where)


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """A matrix, and how often and in what order it is run: as a campaign.

    :param arms: one alone is measured, and compared with nothing.
    :param primary_metric: empty for the kind's own.
    :param kvm: of guests that load disks; None: by KVM where there is one.
    """

    name: Annotated[str, Written(_read_name)]
    arms: Annotated[tuple[MatrixArm, ...], Written(_read_arms)]
    block: Annotated[BlockMatrix | None, Written(_read_block)] = None
    boot: Annotated[BootMatrix | None, Written(decoder(BootMatrix))] = None
    srcu: Annotated[SrcuMatrix | None, Written(decoder(SrcuMatrix))] = None
    title: Annotated[str, MaxLen(MAX_TEXT)] = ""
    why: Annotated[str, MaxLen(MAX_TEXT)] = ""
    blocks: Annotated[int, Interval(ge=1, le=MAX_BLOCKS)] = DEFAULT_BLOCKS
    seed: Annotated[int, Interval(ge=0, le=MAX_SEED)] | None = None
    primary_metric: Annotated[str, MaxLen(100)] = ""
    margin_percent: Annotated[float, Interval(ge=0.01, le=99.99)] = DEFAULT_MARGIN_PERCENT
    published: PublishedChoice | None = None
    kvm: bool | None = None

    @property
    def matrix(self) -> BlockMatrix | BootMatrix | SrcuMatrix:
        """What is measured: one of the kinds."""
        found = self.block or self.boot or self.srcu
        assert found is not None, "it was checked when it was read"
        return found

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
    base: AloneScenario
    if isinstance(matrix, BlockMatrix):
        first, *_ = matrix.cells
        base = BlockScenario(
            first, plan.title, plan.why, matrix.size_bytes, matrix.runtime_s, matrix.ramp_s,
            matrix.iothread, name=f"{plan.name}/{first.name}", target=matrix.target,
            driver=matrix.driver,
        )  # fmt: skip
    elif isinstance(matrix, SrcuMatrix):
        spinning, *_ = matrix.cells
        base = SrcuScenario(
            spinning, plan.title, plan.why, matrix.updates, matrix.max_seconds,
            name=f"{plan.name}/{spinning.name}",
        )  # fmt: skip
    else:
        boots, *_ = matrix.cells
        base = BootScenario(
            boots, plan.title, plan.why, matrix.count_regions, matrix.max_seconds,
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
        published=plan.published,
        kvm=plan.kvm,
    )


def _cell_name(plan: MatrixPlan, base: AloneScenario, cell: BlockCell | BootCell | SrcuCell) -> str:
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
    kinds = [kind for kind in _KINDS if isinstance(raw, Mapping) and kind in raw]
    if isinstance(raw, Mapping) and len(kinds) != 1:
        reader.refuse(
            "block", "one_of", f"a matrix is of one kind: {', '.join(_KINDS)}", "give one of them"
        )
    plan = read(reader, MatrixPlan, raw, "")
    if plan is not None and not reader.problems:
        _check_cells(reader, plan)
    reader.done("the matrix cannot be accepted")
    assert plan is not None, "there would be a problem"
    return plan


def _check_cells(reader: Reader, plan: MatrixPlan) -> None:
    """There are some, and not too many."""
    if not plan.matrix.cells:
        reader.refuse("boot.firmware", "firmware_cannot_start_guest",
                      "it can start none of the guests", "boot linux with ovmf")  # fmt: skip
    if plan.run_count > MAX_RUNS:
        reader.refuse("blocks", "too_many", f"{plan.run_count:,} measurements are more than "
                      f"{MAX_RUNS:,}", "take fewer combinations or blocks")  # fmt: skip
