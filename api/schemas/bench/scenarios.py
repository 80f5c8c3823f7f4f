"""Scenarios, the metrics of runs, and the QEMUs that can be measured."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model, Page, Texts, Values, texts_of
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.metric import Direction, Group, Metric
from vmtune.bench.model.metrics.table import HEADLINE, METRICS_OF
from vmtune.bench.model.scenario.any_kind import kind_of, to_json
from vmtune.bench.services.runs.scenarios import OfferedScenario
from vmtune.config.settings import BenchQemu
from vmtune.model.tunables.built_in import BUILT_IN
from vmtune.storage.repositories.run_rows import MeasuredScenario
from vmtune.units import Unit


class ScenarioView(Model):
    """What a run is to do, and whether it can be done here."""

    name: str
    kind: ScenarioKind
    family: str
    family_title: str
    title: str
    why: str = Field(description="What is learnt from its family, and when to run it.")
    applicable: bool
    reason: str = Field(description="Why it cannot be run here; empty where nothing is known.")
    values: Values
    texts: Texts
    longest_s: int = Field(description="The most that a run can take.")
    setup: dict[str, Any] = Field(
        description="All of it; parts of this are what changes name. Without `kind` it is a "
        "migration's."
    )

    @classmethod
    def of(cls, offered: OfferedScenario) -> ScenarioView:
        scenario = offered.scenario
        return cls(
            name=scenario.name,
            kind=kind_of(scenario),
            family=scenario.family,
            family_title=offered.family.title,
            title=scenario.title,
            why=scenario.why,
            applicable=not offered.why_not,
            reason=offered.why_not,
            values=dict(scenario.values),
            texts=texts_of(scenario.values, BUILT_IN),
            longest_s=scenario.longest_s,
            setup=to_json(scenario),
        )


class ScenarioPage(Page[ScenarioView]):
    """Scenarios, in the order in which they are run."""


class MeasuredScenarioView(Model):
    """A scenario that runs were made of."""

    name: str
    runs: int
    newest: UUID = Field(description="The run that was ordered last; its `setup` can be run again.")
    newest_at: datetime
    shipped: bool = Field(description="It is one of the table; else it is somebody's own.")

    @classmethod
    def of(cls, measured: MeasuredScenario, shipped: bool) -> MeasuredScenarioView:
        return cls(
            name=measured.name,
            runs=measured.runs,
            newest=measured.newest,
            newest_at=measured.newest_at,
            shipped=shipped,
        )


class MeasuredScenarioPage(Page[MeasuredScenarioView]):
    """Scenarios that runs were made of, by their names."""


class MetricView(Model):
    """One figure that runs are reduced to."""

    name: str
    kind: ScenarioKind = Field(description="Of which kind of runs.")
    title: str
    unit: Unit
    better: Direction
    group: Group
    headline: bool = Field(description="One of the few that a table shows first.")
    description: str = Field(description="What it measures, what begins and what ends it.")

    @classmethod
    def of(cls, metric: Metric) -> MetricView:
        return cls(
            name=metric.name,
            kind=next(kind for kind, table in METRICS_OF.items() if metric.name in table),
            title=metric.title,
            unit=metric.unit,
            better=metric.direction,
            group=metric.group,
            headline=metric.name in HEADLINE,
            description=metric.description,
        )


class MetricPage(Page[MetricView]):
    """Metrics, in the order in which people should read them."""


class QemuView(Model):
    """A QEMU that runs can be made with."""

    name: str
    binary: str
    data_folder: str | None = Field(description="Null where it finds its own.")

    @classmethod
    def of(cls, qemu: BenchQemu) -> QemuView:
        folder = str(qemu.data_folder) if qemu.data_folder else None
        return cls(name=qemu.name, binary=str(qemu.binary), data_folder=folder)


class QemuPage(Page[QemuView]):
    """The QEMUs of the settings; the installed one is called system."""
