"""What a study is asked to do. :mod:`vmtune.bench.model.tune.file` has the TOML form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from annotated_types import Interval, MaxLen

from vmtune.bench.model.campaign.campaign import (
    DEFAULT_BLOCKS,
    DEFAULT_MARGIN_PERCENT,
    MAX_SEED,
    QUICK_BLOCKS,
    HostLoad,
    Name,
)
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.runs.run import Testbed
from vmtune.bench.model.scenario.any_kind import AnyScenario, kind_of
from vmtune.bench.model.scenario.any_kind import from_json as scenario_from_json
from vmtune.bench.model.scenario.any_kind import to_json as scenario_to_json
from vmtune.bench.model.scenario.parts import Text
from vmtune.bench.model.tune.limits import Limits
from vmtune.bench.model.tune.objective import Objective, parse_objective
from vmtune.bench.model.tune.space import Dimension, Space
from vmtune.documents.dataclass_json import Written
from vmtune.documents.strict import Reader, short
from vmtune.errors import InvalidInput, Problem
from vmtune.model.tunables.tunable import Value
from vmtune.units import Unit

DEFAULT_RUNS = 120
MAX_RUNS = 20_000
MAX_SECONDS = 14 * 24 * 3600
MAX_SEEDS = 30
DEFAULT_FINALISTS = 2
MAX_FINALISTS = 6
LEAST_SEARCH_RUNS = 10
"""Runs besides those that confirm: with fewer there is no search."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")


def _read_scenario(reader: Reader, raw: object, where: str) -> AnyScenario | None:
    if isinstance(raw, str):  # no name that is known
        reader.refuse(where, "unknown_scenario", f"there is no scenario {short(raw)}",
                      "`vmtune bench scenarios` lists them; a table describes one")  # fmt: skip
        return None
    return reader.part("", lambda: scenario_from_json(raw, where), None)


Settings = Mapping[str, bool | int | str]
"""Values of tunables, laid over the scenario's own."""


@dataclass(frozen=True, slots=True)
class Seed:
    """Settings that the search begins with.

    :param name: ``current`` for the assigned profile's; else a rival's.
    """

    name: Name
    settings: Settings = field(default_factory=dict)


CURRENT = "current"


@dataclass(frozen=True, slots=True)
class Budget:
    """What a study may use, its confirmation included. None: no limit of this kind."""

    runs: Annotated[int, Interval(ge=1, le=MAX_RUNS)] | None = None
    seconds: Annotated[int, Interval(ge=1, le=MAX_SECONDS), Unit.S] | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """What a study has used of its budget, its confirmation aside."""

    runs: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StudySpec:
    """A study. The scenario's own values are the default that is to be beaten.

    :param space: None for "auto" until the service has derived it from what the QEMUs offer.
    :param objective: as text; see :mod:`vmtune.bench.model.tune.objective`.
    :param budget: the usual one is of 120 runs.
    :param margin_percent: smaller gains are not looked for, and none within it is claimed.
    :param profile: the profile that is in use now: a search begins with its values, and what is
        found has to beat it, too. Empty for none.
    :param rivals: whether the search begins also with the shipped templates that fit.
    :param seeds: settings that the search begins with; the service adds those of *profile* and
        *rivals* when the study is created, so that later changes of them change nothing.
    :param seed: of the search and of the order of runs; None: drawn when the study is created.
    :param confirm_blocks: of the campaign that confirms.
    :param finalists: at most so many are confirmed.
    :param testbed: where migrations run; *qemu* with which QEMU, by its name in the settings.
    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """

    name: Name
    scenario: Annotated[AnyScenario, Written(_read_scenario, scenario_to_json)]
    objective: Text
    space: Mapping[str, Dimension] | None = None
    title: Text = ""
    why: Text = ""
    budget: Budget = Budget(DEFAULT_RUNS)
    margin_percent: Annotated[float, Interval(ge=0, le=100)] = DEFAULT_MARGIN_PERCENT
    limits: Limits = field(default_factory=Limits)
    profile: Name = ""
    rivals: bool = True
    seeds: Annotated[tuple[Seed, ...], MaxLen(MAX_SEEDS)] = ()
    seed: Annotated[int, Interval(ge=0, le=MAX_SEED)] | None = None
    confirm_blocks: Annotated[int, Interval(ge=QUICK_BLOCKS, le=100)] = DEFAULT_BLOCKS
    finalists: Annotated[int, Interval(ge=1, le=MAX_FINALISTS)] = DEFAULT_FINALISTS
    testbed: Testbed = Testbed.DIRECT
    qemu: Name = ""
    host_load: HostLoad = HostLoad.IDLE
    kvm: bool | None = None

    def __post_init__(self) -> None:
        problems = [
            Problem(name, code, message, remedy)
            for name, holds, code, message, remedy in self._rules()
            if not holds
        ]
        try:
            parse_objective(self.objective, self.kind)
        except InvalidInput as error:
            problems += error.problems
        if problems:
            raise InvalidInput(f"the study {self.name[:70]} is not usable", problems=problems)

    def _rules(self) -> list[tuple[str, bool, str, str, str]]:
        """Of each rule: the field, whether it holds, the code, the reason and the remedy."""
        names = [one.name for one in self.seeds]
        runs, needed = self.budget.runs, self.confirm_runs + LEAST_SEARCH_RUNS
        migrates = self.kind is ScenarioKind.MIGRATION
        return [
            ("name", bool(_NAME.fullmatch(self.name)), "invalid_name",
             f"{self.name[:70]!r} is not a valid name of a study",
             "use lower-case letters, digits, dots, dashes and underscores"),
            ("margin_percent", 0 < self.margin_percent < 100, "invalid_value",
             f"a margin of {self.margin_percent:g} % is not above 0 and below 100 %",
             f"{DEFAULT_MARGIN_PERCENT:g} is usual"),
            ("budget", runs is not None or self.budget.seconds is not None, "missing",
             "there is no end to the study", "give runs, seconds or both"),
            ("budget.runs", runs is None or runs >= needed, "too_few",
             f"{runs} runs are too few: the confirmation alone takes {self.confirm_runs}",
             f"give {needed} or more, or fewer confirm_blocks or finalists"),
            ("seeds", len(set(names)) == len(names), "twice",
             "two of the seeds have one name", "rename one"),
            ("limits.bandwidth_bytes_per_s",
             self.limits.bandwidth_bytes_per_s is None or migrates, "not_for_kind",
             f"a {self.kind} sends nothing", "leave it out"),
            ("kvm", self.kvm is None or migrates, "not_for_kind",
             f"a {self.kind} has no choice of its own whether to use KVM", "leave it out"),
        ]  # fmt: skip

    @property
    def kind(self) -> ScenarioKind:
        """What its runs measure."""
        return kind_of(self.scenario)

    @property
    def goal(self) -> Objective:
        """The objective, read."""
        return parse_objective(self.objective, self.kind)

    @property
    def base(self) -> Mapping[str, Value]:
        """What settings are laid over: the scenario's values, within the limits."""
        return self.limits.kept(self.scenario.values)

    @property
    def current(self) -> Settings | None:
        """The settings of the profile that is in use; None without one."""
        return next((one.settings for one in self.seeds if one.name == CURRENT), None)

    @property
    def baselines(self) -> int:
        """How many arms what was found has to beat: the default, and the current profile."""
        return 2 if self.profile or self.current is not None else 1

    @property
    def confirm_runs(self) -> int:
        """The most runs that the confirmation takes."""
        return self.confirm_blocks * (self.baselines + self.finalists)

    def ready(self, space: Space, seeds: tuple[Seed, ...], seed: int) -> StudySpec:
        """With all that the service adds when it is created."""
        return replace(self, space=dict(space), seeds=seeds, seed=seed)
