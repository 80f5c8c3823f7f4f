"""Benchmark runs as rows, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, insert, select
from sqlalchemy.orm import Session

from vmtune.bench.model.runs.run import Run, RunRecord, RunState, Slot
from vmtune.bench.model.runs.series import KINDS, Head, apart
from vmtune.documents.dataclass_json import from_json, to_json
from vmtune.errors import Conflict, DuplicateName, NotFound
from vmtune.storage.mapping import Mapper, Stored
from vmtune.storage.repositories.searching import has_part
from vmtune.storage.series.packing import pack
from vmtune.storage.tables.core import (
    EnvironmentRow,
    JsonObject,
    RunChunkRow,
    RunHeadRow,
    RunMetricRow,
    RunRow,
)

CHUNK = 1000
"""Rows of a series in a full chunk: one chunk is one read."""

_S = RunState
_ENDS = frozenset(state for state in RunState if state.ended)
TRANSITIONS: Mapping[RunState, frozenset[RunState]] = {
    _S.QUEUED: _ENDS | {_S.RUNNING},
    _S.RUNNING: _ENDS,
    **dict.fromkeys(_ENDS, frozenset()),
}
"""Which state may follow which."""
assert set(TRANSITIONS) == set(RunState), "a state without its followers"

Environment = Mapping[str, Any]  # any JSON: vmtune.bench.machine.environment


def _slot(
    campaign: UUID | None, arm: str | None, block: int | None, position: int | None
) -> Slot | None:
    return Slot(campaign, arm or "", block or 0, position or 0) if campaign is not None else None


RUNS = Mapper(
    Run,
    RunRow,
    slot=Stored(
        lambda slot: astuple(slot) if slot is not None else (None,) * 4,
        _slot,
        ("campaign", "arm", "block", "position"),
    ),
    fingerprint=Stored(lambda text: text or None, lambda stored: stored or ""),
)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list; None and empty match all.
    :param since: requested then or later.
    :param search: a part of the scenario's name, the arm's or the profile's, or the beginning of
        the run's UUID.
    """

    scenario: str | None = None
    family: str | None = None
    profile: str | None = None
    states: Collection[RunState] = ()
    fingerprint: str | None = None
    host: str | None = None
    campaign: UUID | None = None
    arm: str | None = None
    since: datetime | None = None
    study: UUID | None = None
    search: str = ""


ALL = RunFilter()


@dataclass(frozen=True, slots=True)
class MeasuredScenario:
    """A scenario that runs were made of.

    :param runs: how many.
    :param newest: the run that was requested last.
    """

    name: str
    runs: int
    newest: UUID
    newest_at: datetime


def filtered(query: Select[RunRow], wanted: RunFilter) -> Select[RunRow]:
    """*query* for the runs that the filter lets through."""
    equal = {
        RunRow.scenario: wanted.scenario,
        RunRow.profile: wanted.profile,
        RunRow.fingerprint: wanted.fingerprint,
        RunRow.host: wanted.host,
        RunRow.campaign: wanted.campaign,
        RunRow.arm: wanted.arm,
        RunRow.study: wanted.study,
    }
    for column, value in equal.items():
        if value is not None:
            query = query.where(column == value)
    if wanted.family is not None:
        # From "family/" to before what follows the slash, so that the index is of use.
        least, beyond = f"{wanted.family}/", f"{wanted.family}{chr(ord('/') + 1)}"
        query = query.where(RunRow.scenario >= least, RunRow.scenario < beyond)
    if wanted.since is not None:
        query = query.where(RunRow.created_at >= wanted.since)
    if wanted.states:
        query = query.where(RunRow.state.in_(wanted.states))
    if wanted.search:
        found = has_part(wanted.search, (RunRow.scenario, RunRow.arm, RunRow.profile), RunRow.id)
        query = query.where(found)
    return query


def add(session: Session, run: Run) -> RunRow:
    """Add a run's own row, without environment and record.

    :raise DuplicateName: there is a run of that id.
    """
    if session.scalar(select(RunRow.number).where(RunRow.id == run.id)) is not None:
        raise DuplicateName(
            f"there is a run {run.id} already",
            field="id",
            remedy="it is the same run: counted twice it would mislead",
        )
    row = RUNS.row(replace(run, fingerprint=""))
    session.add(row)
    session.flush()
    return row


def remember_environment(
    session: Session, environment: Environment, fingerprint: str
) -> str | None:
    """Store an environment, once."""
    if not fingerprint:
        return None
    if session.get(EnvironmentRow, fingerprint) is None:
        session.add(EnvironmentRow(fingerprint=fingerprint, description=dict(environment)))
        session.flush()
    return fingerprint


@dataclass(frozen=True, slots=True)
class PackedRecord:
    """A record ready to be stored: packing is work that no other writer should wait for.

    :param chunks: columns of chunks, all but whose run they are.
    """

    head: JsonObject
    chunks: tuple[JsonObject, ...]


def pack_record(record: RunRecord | None) -> PackedRecord | None:
    """*record* ready to be stored."""
    if record is None:
        return None
    head, series = apart(record)
    chunks = [
        {"series": name, "first": first, "rows": len(part), "packed": pack(KINDS[name], part)}
        for name, rows in series.items()
        for first in range(0, len(rows), CHUNK)
        for part in (rows[first : first + CHUNK],)
    ]
    return PackedRecord(to_json(head), tuple(chunks))


def write_record(
    session: Session, number: int, record: PackedRecord | None, metrics: Mapping[str, float]
) -> None:
    """Add what a run recorded, and its metrics."""
    if metrics:
        figures = [{"run": number, "metric": m, "value": float(v)} for m, v in metrics.items()]
        session.execute(insert(RunMetricRow), figures)
    if record is None:
        return
    session.add(RunHeadRow(run=number, head=record.head))
    if record.chunks:
        session.execute(insert(RunChunkRow), [{"run": number, **c} for c in record.chunks])


def read_head(session: Session, number: int) -> Head | None:
    """The record without its series; None if there is none."""
    row = session.get(RunHeadRow, number)
    return from_json(Head, row.head) if row is not None else None


def metrics_of(session: Session, numbers: Sequence[int]) -> dict[int, dict[str, float]]:
    """The metrics of runs by their numbers."""
    query = select(RunMetricRow.run, RunMetricRow.metric, RunMetricRow.value)
    found: dict[int, dict[str, float]] = {}
    for number, metric, value in session.execute(query.where(RunMetricRow.run.in_(numbers))):
        found.setdefault(number, {})[metric] = value
    return found


def enter(row: RunRow, state: RunState) -> None:
    """Set a run's state.

    :raise Conflict: it cannot follow the present one.
    """
    if state not in TRANSITIONS[RunState(row.state)]:
        raise Conflict(
            f"run {row.id} is {row.state} and cannot become {state.value}",
            field="state",
            code="illegal_transition",
            remedy="read it again: it has changed in the meantime",
        )
    row.state = state


def find(session: Session, id: UUID) -> RunRow:
    """The row of a run.

    :raise NotFound: there is no such run.
    """
    row = session.scalar(select(RunRow).where(RunRow.id == id))
    if row is None:
        raise NotFound(f"there is no run {id}", field="run")
    return row


def number_of(session: Session, id: UUID) -> int:
    """Its number.

    :raise NotFound: there is no such run.
    """
    number = session.scalar(select(RunRow.number).where(RunRow.id == id))
    if number is None:
        raise NotFound(f"there is no run {id}", field="run")
    return number


def as_run(
    row: RunRow, metrics: Mapping[str, float] | None = None, environment: Environment | None = None
) -> Run:
    """The run of a row."""
    return RUNS.record(row, environment=environment or {}, metrics=metrics or {})
