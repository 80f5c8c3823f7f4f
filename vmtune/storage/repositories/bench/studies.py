"""Studies and their trials."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from vmtune.bench.model.runs.run import Run, RunState
from vmtune.bench.model.tune.kept import NEXT, KeptStudy, StudyState
from vmtune.errors import Conflict, NotFound
from vmtune.storage.columns import storable
from vmtune.storage.database import Database
from vmtune.storage.mapping import Mapper
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories.bench.run_rows import as_run, metrics_of
from vmtune.storage.repositories.searching import has_part
from vmtune.storage.tables.core import RunRow
from vmtune.storage.tables.studies import StudyRow, TrialRow

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MAP = Mapper(KeptStudy, StudyRow)
Json = Any  # any JSON


@dataclass(frozen=True, slots=True)
class RunSpan:
    """A run of a study, as far as its budget depends on it."""

    state: RunState
    started_at: datetime | None
    ended_at: datetime | None


class StudyRepository:
    """The studies, by UUID; lists give the newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self, name: str, spec: Mapping[str, Json], host: str, id: UUID | None = None
    ) -> KeptStudy:
        """Record a study before its first run; it waits for its turn."""
        with self._database.write() as session:
            made = KeptStudy(
                id=id or uuid4(),
                name=name,
                spec=spec,
                state=StudyState.QUEUED,
                host=host,
                created_at=self._database.now(),
            )
            row = _MAP.row(made)
            session.add(row)
            session.flush()
            return _MAP.record(row)

    def enter(
        self,
        id: UUID,
        state: StudyState,
        reason: str = "",
        result: Mapping[str, Json] | None = None,
    ) -> KeptStudy:
        """Set its state.

        :param result: what it found; None leaves what there is.
        :raise NotFound: there is no such study.
        :raise Conflict: that state cannot follow its present one.
        """
        with self._database.write() as session:
            row = _find(session, id)
            if state not in NEXT[StudyState(row.state)]:
                raise Conflict(
                    f"the study is {row.state} and cannot become {state.value}",
                    field="study",
                    code="illegal_transition",
                    remedy="read it again: it has changed in the meantime",
                )
            row.state, row.reason = state, storable(reason)
            if result is not None:
                row.result = dict(result)
            if state is StudyState.SEARCHING and row.started_at is None:
                row.started_at = self._database.now()
            if state.ended:
                row.ended_at = self._database.now()
            session.flush()
            return _MAP.record(row)

    def keep_trial(
        self,
        id: UUID,
        number: int,
        trial: Mapping[str, Json],
        breaches: Sequence[Mapping[str, Json]] = (),
    ) -> KeptStudy:
        """Store what is new of a trial, and which limits its newest run broke, in one step."""
        with self._database.write() as session:
            row = _find(session, id)
            session.merge(TrialRow(study=row.number, number=number, trial=dict(trial)))
            if breaches:
                row.breaches = [*row.breaches, *map(dict, breaches)]
            session.flush()
            return _MAP.record(row)

    def confirm(self, id: UUID, campaign: UUID, finalists: Sequence[int]) -> KeptStudy:
        """Note which campaign confirms which trials, before it is begun."""
        with self._database.write() as session:
            row = _find(session, id)
            row.campaign, row.finalists = campaign, list(finalists)
            session.flush()
            return _MAP.record(row)

    def get(self, id: UUID) -> KeptStudy:
        """:raise NotFound: there is no such study."""
        with self._database.read() as session:
            return _MAP.record(_find(session, id))

    def named(self, name: str) -> KeptStudy:
        """The study of that id, or the newest of that name.

        :raise NotFound: there is none.
        """
        if _ID.fullmatch(name):
            return self.get(UUID(name))
        query = select(StudyRow).where(StudyRow.name == name)
        with self._database.read() as session:
            row = session.scalar(query.order_by(StudyRow.number.desc()).limit(1))
            if row is None:
                raise _none(f"{name[:70]!r}")
            return _MAP.record(row)

    def list(
        self,
        name: str | None = None,
        states: Collection[StudyState] = (),
        after: str | None = None,
        limit: int = 100,
        search: str = "",
    ) -> Page[KeptStudy]:
        """Studies, newest first.

        :param states: filter; empty for all.
        :param search: a part of the name, or the beginning of the UUID.
        """
        query = select(StudyRow).order_by(StudyRow.number.desc()).limit(check_limit(limit) + 1)
        if name is not None:
            query = query.where(StudyRow.name == name)
        if states:
            query = query.where(StudyRow.state.in_(states))
        if search:
            query = query.where(has_part(search, (StudyRow.name,), StudyRow.id))
        if after is not None:
            (number,) = read_cursor("studies", after, int)
            query = query.where(StudyRow.number < number)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            return page(rows, limit, _MAP.record, lambda row: make_cursor("studies", row.number))

    def unfinished(self) -> tuple[KeptStudy, ...]:
        """Those that have not ended, oldest first."""
        states = [state for state in StudyState if not state.ended]
        query = select(StudyRow).where(StudyRow.state.in_(states)).order_by(StudyRow.number)
        with self._database.read() as session:
            return tuple(map(_MAP.record, session.scalars(query)))

    def trials(self, id: UUID) -> tuple[Mapping[str, Json], ...]:
        """Its trials in the order of their numbers."""
        query = (
            select(TrialRow.trial)
            .join(StudyRow, StudyRow.number == TrialRow.study)
            .where(StudyRow.id == id)
            .order_by(TrialRow.number)
        )
        with self._database.read() as session:
            return tuple(session.scalars(query))

    def spans(self, id: UUID) -> tuple[RunSpan, ...]:
        """How long each of its runs took, in the order in which they were requested."""
        query = select(RunRow.state, RunRow.started_at, RunRow.ended_at)
        query = query.where(RunRow.study == id).order_by(RunRow.number)
        with self._database.read() as session:
            return tuple(
                RunSpan(RunState(row.state), row.started_at, row.ended_at)
                for row in session.execute(query)
            )

    def runs(self, id: UUID) -> tuple[Run, ...]:
        """All its runs, with their metrics, in the order in which they were requested."""
        query = select(RunRow).where(RunRow.study == id).order_by(RunRow.number)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            metrics = metrics_of(session, [row.number for row in rows])
            return tuple(as_run(row, metrics.get(row.number)) for row in rows)


def _find(session: Session, id: UUID) -> StudyRow:
    row = session.scalar(select(StudyRow).where(StudyRow.id == id))
    if row is None:
        raise _none(str(id))
    return row


def _none(which: str) -> NotFound:
    return NotFound(
        f"there is no study {which}", field="study", remedy="`vmtune tune list` lists them"
    )
