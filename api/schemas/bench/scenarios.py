"""Scenarios, the metrics of runs, and the QEMUs that can be measured."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from vmtune.api.schemas.common import Model, Page, Texts, Values, texts_of
from vmtune.bench.model.kinds import ScenarioKind
from vmtune.bench.model.metrics.metric import Direction, Group, Metric
from vmtune.bench.model.metrics.table import HEADLINE, METRICS_OF, SUCCESS
from vmtune.bench.model.scenario.any_kind import kind_of, to_json
from vmtune.bench.model.settable import settable
from vmtune.bench.services.runs.scenarios import OfferedScenario
from vmtune.config.settings import BenchQemu
from vmtune.storage.repositories.bench.run_rows import MeasuredScenario
from vmtune.units import Unit


class ScenarioView(Model):
    """A scenario, and whether it can run here."""

    name: str
    kind: ScenarioKind
    family: str
    family_title: str
    title: str
    why: str = Field(description="Purpose of its family, and when to run it.")
    applicable: bool
    reason: str = Field(description="Why it cannot run here; empty if it can.")
    values: Values
    texts: Texts
    longest_s: int = Field(description="Maximum duration of a run.")
    setup: dict[str, Any] = Field(
        description="The full scenario; `changes` override parts of it. Without `kind` it is a "
        "migration."
    )

    @classmethod
    def of(cls, offered: OfferedScenario) -> ScenarioView:
        scenario = offered.scenario
        return cls.from_record(
            scenario,
            kind=kind_of(scenario),
            family_title=offered.family.title,
            applicable=not offered.why_not,
            reason=offered.why_not,
            texts=texts_of(scenario.values, settable()),
            setup=to_json(scenario),
        )


class ScenarioPage(Page[ScenarioView]):
    """Scenarios, in order of execution."""


class MeasuredScenarioView(Model):
    """A scenario that has runs."""

    name: str
    runs: int
    newest: UUID = Field(description="The newest run; its `setup` can be run again.")
    newest_at: datetime
    shipped: bool = Field(description="It is a predefined scenario, else a custom one.")

    @classmethod
    def of(cls, measured: MeasuredScenario, shipped: bool) -> MeasuredScenarioView:
        return cls.from_record(measured, shipped=shipped)


class MeasuredScenarioPage(Page[MeasuredScenarioView]):
    """Scenarios that have runs, sorted by name."""


class MetricView(Model):
    """One metric of runs."""

    name: str
    kind: ScenarioKind = Field(description="Kind of runs that have it.")
    title: str
    unit: Unit
    better: Direction
    group: Group
    headline: bool = Field(
        description="It is one of the most important metrics, which tables show first."
    )
    success: bool = Field(description="It says whether a run succeeded: 1, or 0.")
    description: str = Field(description="What it measures, and what starts and ends it.")

    @classmethod
    def of(cls, metric: Metric) -> MetricView:
        return cls.from_record(
            metric,
            kind=next(kind for kind, table in METRICS_OF.items() if metric.name in table),
            better=metric.direction,
            headline=metric.name in HEADLINE,
            success=metric.name in SUCCESS.values(),
        )


class MetricPage(Page[MetricView]):
    """Metrics, most important first."""


class QemuView(Model):
    """A QEMU that runs can use."""

    name: str
    binary: str
    data_folder: str | None = Field(description="Null for its default.")

    @classmethod
    def of(cls, qemu: BenchQemu) -> QemuView:
        folder = str(qemu.data_folder) if qemu.data_folder else None
        return cls(name=qemu.name, binary=str(qemu.binary), data_folder=folder)


class QemuPage(Page[QemuView]):
    """The QEMUs of the settings; the installed one is called system."""
