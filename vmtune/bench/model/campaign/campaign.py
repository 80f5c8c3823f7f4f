"""Campaigns: which arms are compared, under which conditions, in how many randomised blocks.

What decides about the verdict is fixed here before the first run: blocks, primary metric, margin.
Each block runs every arm of every cell once, in an order drawn anew for each block; the unit is
one migration of a fresh pair of VMs, one load of a fresh QEMU, or one boot.
:mod:`vmtune.bench.model.campaign.file` has the TOML form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

from annotated_types import Interval, MaxLen

from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.table import METRICS, METRICS_OF, PRIMARY, judged_metrics
from vmtune.bench.model.runs.run import Testbed
from vmtune.bench.model.scenario.any_kind import (
    OVERRIDABLE,
    AnyScenario,
    from_json,
    has_guest,
    kind_of,
)
from vmtune.bench.model.scenario.any_kind import to_json as scenario_to_json
from vmtune.bench.model.scenario.parts import NO_PACKS, Text
from vmtune.bench.model.settable import settable
from vmtune.documents.dataclass_json import Written
from vmtune.documents.strict import Reader, join, short
from vmtune.errors import InvalidInput, Problem
from vmtune.model.migration.steps import dump_steps
from vmtune.model.profile import Revision
from vmtune.model.tunables.rules import unknown_tunable
from vmtune.model.tunables.tunable import Value

DEFAULT_BLOCKS = 10
QUICK_BLOCKS = 6
"""The fewest from which a paired test can find anything, two-sided at 5 %."""
DEFAULT_MARGIN_PERCENT = 5.0
MAX_BLOCKS = 1000
MAX_ARMS = 16
MAX_CELLS = 200
MAX_RUNS = 20_000
MAX_SEED = (1 << 63) - 1

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_ARM = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 .,_+-]{0,61}[A-Za-z0-9.+])?")
_CELL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_QEMU = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def _read_overrides(reader: Reader, raw: object, where: str) -> Mapping[str, Any]:
    return dict(reader.mapping(raw, where, OVERRIDABLE))


def _read_tunables(reader: Reader, raw: object, where: str) -> Mapping[str, Value]:
    """Values of known tunables, each acceptable by itself: what they lack or contradict shows
    once they are laid over the scenario's."""
    values: dict[str, Value] = {}
    for name, value in reader.mapping(raw, where).items():
        tunable = settable().get(name)
        if tunable is None:
            place = join(where, name)
            reader.report(partial(unknown_tunable, name, place, settable(), NO_PACKS))
            continue
        try:
            values[name] = tunable.accept(value)
        except ValueError as error:
            reader.refuse(
                join(where, name), "invalid_value", str(error), f"allowed: {tunable.allowed()}"
            )
    return values


def _read_scenario(reader: Reader, raw: object, where: str) -> AnyScenario | None:
    if isinstance(raw, str):  # no name that is known
        reader.refuse(
            where,
            "unknown_scenario",
            f"there is no scenario {short(raw)}",
            "`vmtune bench scenarios` lists them; a table describes one of your own",
        )
        return None
    return reader.part("", lambda: from_json(raw, where), None)


Name = Annotated[str, MaxLen(200)]
Overrides = Annotated[Mapping[str, Any], Written(_read_overrides)]
"""Parts of a scenario as JSON, laid over it; never its name nor its values. Of ``vm`` and
``workload`` only what is given changes."""
Tunables = Annotated[Mapping[str, Value], Written(_read_tunables)]
Runs = Annotated[int, Interval(ge=0, le=MAX_BLOCKS)]


class HostLoad(StrEnum):
    """What else the machine does while a run runs."""

    IDLE = "idle"
    BUSY = "busy"
    """One spinning process for each CPU."""
    BUSY_PINNED = "busy_pinned"
    """Likewise, each bound to its CPU."""


class OtherEnvironment(StrEnum):
    """What becomes of the verdict when the runs were made in environments that differ."""

    REFUSE = "refuse"
    """There is none: the difference is reported instead."""
    ALLOW = "allow"
    """There is one, and the difference is reported with it."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the things that are compared.

    :param profile: its values, and steps if it has any, are laid over the scenario's.
    :param revision: of the profile; None: the current one when the campaign is created.
    :param values: tunables, laid over the scenario's, the cell's and the profile's.
    :param qemu: the name of a QEMU in the service's settings; empty for the usual one.
    :param against: the arms that it is compared with.
    """

    name: Name
    profile: Name = ""
    revision: Annotated[int, Interval(ge=1, le=2**31 - 1)] | None = None
    values: Tunables = field(default_factory=dict)
    scenario: Overrides = field(default_factory=dict)
    qemu: Name = ""
    testbed: Testbed = Testbed.DIRECT
    against: Annotated[tuple[Name, ...], MaxLen(MAX_ARMS)] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One set of conditions under which all arms are compared with each other.

    :param name: also the variant of its scenario's name.
    """

    name: Name
    scenario: Overrides = field(default_factory=dict)
    values: Tunables = field(default_factory=dict)
    host_load: HostLoad = HostLoad.IDLE


@dataclass(frozen=True, slots=True)
class PublishedChoice:
    """The published table that a report shows next to the results.

    :param scale: by how many times the sizes here are smaller than the source's, if a matrix is
        repeated at a smaller size: ``{"region_bytes": 8}``.
    """

    reference: Name
    table: Name = ""
    scale: Mapping[str, Annotated[int, Interval(ge=1, le=1_000_000)]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is to be run and judged. The first arm is the one that others are compared with,
    unless they say otherwise.

    :param cells: none: the scenario as it is, once.
    :param seed: of the order of the runs; None: drawn when the campaign is created.
    :param primary_metric: the one that the verdict is about; empty for the scenario's kind's own.
    :param margin_percent: a ratio within it of 1 counts as no difference.
    :param warmup_runs: runs before the first block, of the arms in turn, that are discarded.
    :param kvm: whether to use KVM; None: where the machine has a usable one. For migrations
        and guests that load disks: the scenario of a boot says it.
    :param overrides: codes of preflight findings that are to stop nothing.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """

    name: Name
    scenario: Annotated[AnyScenario, Written(_read_scenario, scenario_to_json)]
    arms: Annotated[tuple[Arm, ...], MaxLen(MAX_ARMS)]
    cells: Annotated[tuple[Cell, ...], MaxLen(MAX_CELLS)] = ()
    title: Text = ""
    why: Text = ""
    blocks: Runs = DEFAULT_BLOCKS
    seed: Annotated[int, Interval(ge=0, le=MAX_SEED)] | None = None
    primary_metric: Name = ""
    margin_percent: Annotated[float, Interval(ge=0, le=100)] = DEFAULT_MARGIN_PERCENT
    warmup_runs: Runs = 1
    other_environment: OtherEnvironment = OtherEnvironment.REFUSE
    kvm: bool | None = None
    overrides: Annotated[frozenset[Name], MaxLen(100)] = frozenset()
    published: PublishedChoice | None = None

    def __post_init__(self) -> None:
        if not self.primary_metric:
            object.__setattr__(self, "primary_metric", PRIMARY[self.kind])
        problems = [
            Problem(name, code, message, remedy)
            for name, holds, code, message, remedy in self._rules()
            if not holds
        ]
        if not problems:
            problems = self._unusable()
        if problems:
            raise InvalidInput(f"the campaign {self.name[:70]} is not usable", problems=problems)

    def _rules(self) -> list[tuple[str, bool, str, str, str]]:
        """Of each rule: the field, whether it holds, the code, the reason and the remedy."""
        judged = judged_metrics(self.kind)
        fewest = 2 if self.kind is ScenarioKind.MIGRATION else 1
        return [
            ("name", bool(_NAME.fullmatch(self.name)), "invalid_name",
             f"{self.name[:70]!r} is not a valid campaign name",
             "use lower-case letters, digits, dots, dashes and underscores"),
            ("arms", fewest <= len(self.arms) <= MAX_ARMS, "number_of_arms",
             f"a campaign has {fewest} to {MAX_ARMS} arms, not {len(self.arms)}",
             "give two arms of the same values to see the noise of the machine"),
            ("cells", len(self.cells) <= MAX_CELLS, "too_many",
             f"a campaign has at most {MAX_CELLS} cells, not {len(self.cells)}", "split it"),
            ("blocks", 1 <= self.blocks <= MAX_BLOCKS, "invalid_value",
             f"{self.blocks} blocks are not from 1 to {MAX_BLOCKS}",
             f"{QUICK_BLOCKS} are the fewest for a verdict, {DEFAULT_BLOCKS} are usual"),
            ("blocks", self.run_count <= MAX_RUNS, "too_many",
             f"{self.run_count:,} runs are more than {MAX_RUNS:,}", "take fewer cells or blocks"),
            ("seed", self.seed is None or 0 <= self.seed <= MAX_SEED, "invalid_value",
             f"the seed {self.seed} is not from 0 to 2^63 - 1", "leave it out to have one drawn"),
            ("primary_metric", self.primary_metric in judged, "invalid_metric",
             self._no_metric(), "use one of " + ", ".join(judged)),
            ("kvm", self.kvm is None or has_guest(self.scenario), "not_for_kind",
             f"a {self.kind} has no choice of its own whether to use KVM",
             "leave it out: a boot's scenario says its accelerator, and blocks without a driver "
             "need none"),
            ("margin_percent", 0 < self.margin_percent < 100, "invalid_value",
             f"a margin of {self.margin_percent:g} % is not above 0 and below 100 %",
             f"{DEFAULT_MARGIN_PERCENT:g} is usual"),
            ("warmup_runs", 0 <= self.warmup_runs <= MAX_BLOCKS, "invalid_value",
             f"{self.warmup_runs} warm-up runs are not from 0 to {MAX_BLOCKS}", "1 is usual"),
            *self._rules_of_arms(),
            *(
                (f"cells.{index}.name", bool(_CELL.fullmatch(cell.name)), "invalid_name",
                 f"{cell.name[:70]!r} is not a valid cell name",
                 "use letters, digits, dots, dashes and underscores")
                for index, cell in enumerate(self.cells)
            ),
            *_unique("cells", [cell.name for cell in self.cells]),
            *_unique("arms", [arm.name for arm in self.arms]),
        ]  # fmt: skip

    def _no_metric(self) -> str:
        """Why the primary metric cannot be it."""
        name = f"{self.primary_metric[:60]!r}"
        if self.primary_metric in METRICS and self.primary_metric not in METRICS_OF[self.kind]:
            return f"{name} is not a metric of a {self.kind}"
        return f"{name} is not a metric that has a better and a worse"

    def _rules_of_arms(self) -> list[tuple[str, bool, str, str, str]]:
        names = {arm.name for arm in self.arms}
        rules = []
        for index, arm in enumerate(self.arms):
            where = f"arms.{index}"
            others = sorted(names - {arm.name})
            rules += [
                (f"{where}.name", bool(_ARM.fullmatch(arm.name)), "invalid_name",
                 f"{arm.name[:70]!r} is not a valid arm name",
                 "use letters, digits, spaces and ., _ + -, with a letter or digit at both ends"),
                (f"{where}.revision", arm.revision is None or bool(arm.profile), "needs_profile",
                 "a revision is that of a profile", "give profile, or leave revision out"),
                (f"{where}.qemu", not arm.qemu or bool(_QEMU.fullmatch(arm.qemu)), "invalid_name",
                 f"{arm.qemu[:70]!r} is not a valid QEMU name",
                 "name one of the service's settings; a path cannot be given here"),
                (f"{where}.testbed",
                 arm.testbed is Testbed.DIRECT or self.kind is ScenarioKind.MIGRATION,
                 "not_for_kind", f"a {self.kind} is measured on one QEMU of this machine",
                 f"use {Testbed.DIRECT}"),
                (f"{where}.against", set(arm.against) <= set(others), "unknown_arm",
                 f"{', '.join(arm.against)[:70]} are not all other arms",
                 f"the others are {', '.join(others)}"),
            ]  # fmt: skip
        return rules

    def _unusable(self) -> list[Problem]:
        """The problems of the arms' scenarios. A profile's values come later, and may complete
        what is not complete yet, so an arm with one is judged when the campaign is created."""
        problems: list[Problem] = []
        for index, arm in enumerate(self.arms):
            if arm.profile:
                continue
            for cell in self.all_cells:
                try:
                    self.scenario_of(cell, arm)
                except InvalidInput as error:
                    problems += [
                        self._blame(problem, f"arms.{index}", arm, cell)
                        for problem in error.problems
                    ]
                    break  # the arm's other cells have the same problems, or are next
        return problems

    def _blame(self, problem: Problem, where: str, arm: Arm, cell: Cell) -> Problem:
        """*problem* with the part of the campaign that has the field it is about."""
        top, _, below = problem.field.partition(".")
        own = below.partition(".")[0] in arm.values if top == "values" else top in arm.scenario
        its = below.partition(".")[0] in cell.values if top == "values" else top in cell.scenario
        part = "" if top == "values" else "scenario."
        if own:
            path = f"{where}.{part}{problem.field}"
        elif its:
            path = f"cells.{self.cells.index(cell)}.{part}{problem.field}"
        else:
            path = f"scenario.{problem.field}"
        condition = f" (arm {arm.name}" + (f", cell {cell.name})" if self.cells else ")")
        return Problem(path, problem.code, problem.message + condition, problem.remedy)

    @property
    def kind(self) -> ScenarioKind:
        """What is measured."""
        return kind_of(self.scenario)

    @property
    def all_cells(self) -> tuple[Cell, ...]:
        """Its cells, or the one that stands for the scenario as it is."""
        return self.cells or (Cell(self.scenario.variant),)

    @property
    def run_count(self) -> int:
        """How many runs there are, warm-up included."""
        return self.warmup_runs + self.blocks * len(self.arms) * len(self.all_cells)

    @property
    def same_arms(self) -> bool:
        """There are several arms, all the same but for their names: what differs is noise."""
        first, *others = map(_content, self.arms)
        return bool(others) and all(other == first for other in others)

    def against(self, arm: Arm) -> tuple[str, ...]:
        """The arms that *arm* is compared with: those it names, else the first."""
        first = self.arms[0].name
        return arm.against or (() if arm.name == first else (first,))

    def scenario_of(self, cell: Cell, arm: Arm, profile: Revision | None = None) -> AnyScenario:
        """What a run of *arm* in *cell* does. Later wins: the scenario, the cell, the profile,
        the arm.

        :raise InvalidInput: the parts contradict each other; fields are those of a scenario.
        """
        parts: dict[str, Any] = {}
        if profile is not None and profile.steps:
            parts["steps"] = dump_steps(profile.steps)
        for overrides in (cell.scenario, arm.scenario):
            for name, value in overrides.items():
                both = isinstance(value, Mapping) and isinstance(parts.get(name), Mapping)
                parts[name] = {**parts[name], **value} if both else value
        parts["values"] = {
            **cell.values,
            **(profile.values if profile is not None else {}),
            **arm.values,
        }
        if self.cells:
            parts["name"] = f"{self.scenario.family}/{cell.name}"
        return from_json(parts, base=self.scenario)


def _content(arm: Arm) -> tuple[object, ...]:
    return (
        arm.profile, arm.revision, dict(arm.values), dict(arm.scenario), arm.qemu, arm.testbed,
    )  # fmt: skip


def _unique(part: str, names: Sequence[str]) -> list[tuple[str, bool, str, str, str]]:
    return [
        (f"{part}.{index}.name", name not in names[:index], "duplicate_name",
         f"there are two called {name[:70]}", "rename one")
        for index, name in enumerate(names)
    ]  # fmt: skip
