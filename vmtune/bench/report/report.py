"""The report of a comparison: one document, complete enough to recompute every number.

It has the arms and what each was, in what the environments differed, every run with its values,
and what came out for each cell and metric. It is JSON (:func:`to_document`), read back to the same
(:func:`from_document`), and what the terminal, Markdown and HTML show is made of it alone
(:mod:`~vmtune.bench.report.render`, :mod:`~vmtune.bench.report.tables`).
:mod:`~vmtune.bench.report.build` makes it of runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from vmtune.bench.model.runs.run import RunState
from vmtune.documents.dataclass_json import check_storable, from_json, to_json
from vmtune.errors import InvalidInput
from vmtune.stats.model import Comparison, Direction, Summary
from vmtune.units import Unit

FORMAT = "vmtune comparison"
VERSION = 1

Document = dict[str, Any]  # any JSON


@dataclass(frozen=True, slots=True)
class ReportArm:
    """One arm as it was run.

    :param facts: what it was, by name: profile, values, QEMU, place; as people read it.
    """

    name: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportMetric:
    """A metric as it was defined when the report was made.

    :param measures: what it is, with what begins and ends it.
    """

    name: str
    title: str
    unit: Unit
    direction: Direction
    measures: str


@dataclass(frozen=True, slots=True)
class ReportRun:
    """One run, with every value that a figure was computed from.

    :param run: which.
    :param cell: under which conditions.
    :param block: None outside of blocks.
    :param number: its place in the order in which the runs ran; 0 where that is not known.
    :param environment: the fingerprint of where it ran; empty where that is not known.
    :param values: by metric. A metric that it does not have is missing.
    :param began: when it began; None where that is not known.
    :param censored: the metrics of which the value is a limit that the true one is above.
    """

    run: str
    cell: str
    arm: str
    block: int | None
    number: int
    state: RunState
    environment: str
    values: Mapping[str, float]
    censored: tuple[str, ...] = ()
    failure: str = ""
    began: datetime | None = None

    @property
    def counts(self) -> bool:
        """It ran to its end: its values are part of the comparison, not its failure alone."""
        return self.state.succeeded or self.state is RunState.NOT_CONVERGED


@dataclass(frozen=True, slots=True)
class ReportEnvironment:
    """Where runs ran.

    :param fingerprint: empty where nothing is known.
    :param runs: of each arm, how many.
    """

    fingerprint: str
    runs: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """One thing in which the environments differ.

    :param field: its path: ``kernel.release``.
    :param values: of each environment, in their order; null if unknown.
    :param expected: the arms differ in it on purpose.
    """

    field: str
    values: tuple[Any, ...]  # any JSON
    expected: bool = False


@dataclass(frozen=True, slots=True)
class Spread:
    """How a metric's values lie, of an arm that is compared with none."""

    metric: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class ReportCell:
    """What came out under one set of conditions.

    :param comparisons: first of how many succeeded, then the primary metric's, then the others'
        in their order.
    :param spreads: of arms that are in no comparison, in the same order.
    """

    name: str
    title: str
    comparisons: tuple[Comparison, ...]
    spreads: tuple[Spread, ...] = ()

    @property
    def primary(self) -> Comparison:
        """The primary metric's comparison of the first pair of arms."""
        return next(each for each in self.comparisons if each.criterion.primary)


@dataclass(frozen=True, slots=True)
class Report:
    """The whole of it.

    :param campaign: its name; empty for runs that were put together afterwards.
    :param seed: of the order of the runs.
    :param blocks: as many were planned; 0 without a plan.
    :param withheld: why there are no verdicts; empty where there are.
    :param notes: what else a reader has to know, in sentences.
    """

    title: str
    made_at: datetime
    primary_metric: str
    arms: tuple[ReportArm, ...]
    environments: tuple[ReportEnvironment, ...]
    differences: tuple[EnvironmentDifference, ...]
    metrics: tuple[ReportMetric, ...]
    cells: tuple[ReportCell, ...]
    runs: tuple[ReportRun, ...]
    campaign: str = ""
    seed: int | None = None
    blocks: int = 0
    withheld: str = ""
    notes: tuple[str, ...] = ()

    def metric(self, name: str) -> ReportMetric:
        """The metric of that name, which is in the report."""
        return next(metric for metric in self.metrics if metric.name == name)

    def runs_of(self, cell: str, arm: str) -> Iterator[ReportRun]:
        """The runs of one arm in one cell, in their order."""
        return (run for run in self.runs if (run.cell, run.arm) == (cell, arm))

    @property
    def lost(self) -> tuple[ReportRun, ...]:
        """The runs that are not part of the comparison by their values: they failed."""
        return tuple(run for run in self.runs if not run.counts)


def to_document(report: Report) -> Document:
    """All of it as JSON."""
    return {"format": FORMAT, "version": VERSION, **to_json(report)}


def from_document(raw: object) -> Report:
    """The report that :func:`to_document` made *raw* of.

    :raise InvalidInput: with a problem for each part that cannot be accepted.
    """
    check_storable(raw, "file")
    given = dict(raw) if isinstance(raw, Mapping) else {}
    if given.pop("format", None) != FORMAT:
        raise InvalidInput(
            f"this is not a {FORMAT}",
            field="format",
            code="unknown_format",
            remedy="give what `vmtune compare --json` printed",
        )
    given.pop("texts", None)  # of the API's answer: made of the rest
    version = given.pop("version", None)
    if version != VERSION:
        raise InvalidInput(
            f"this vmtune reads version {VERSION} of a comparison, not {str(version)[:20]}",
            field="version",
            code="unknown_version",
            remedy="export it anew",
        )
    return from_json(Report, given)
