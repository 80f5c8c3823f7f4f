"""Benchmark runs: the order, the record of its end, and the figures it was reduced to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func, select

from vmtune.bench.model.runs.run import Run, RunRecord, RunState, Slot, Testbed
from vmtune.bench.model.runs.series import KINDS, Head, Series, joined
from vmtune.bench.model.scenario.block_target import vm_of_setup
from vmtune.errors import NotFound
from vmtune.model.tunables.tunable import Value
from vmtune.storage.columns import storable
from vmtune.storage.database import Database
from vmtune.storage.paging import Page, check_limit, make_cursor, page, read_cursor
from vmtune.storage.repositories import operations
from vmtune.storage.repositories.bench.run_rows import (
    ALL,
    CHUNK,
    Environment,
    MeasuredScenario,
    PackedRecord,
    RunFilter,
    add,
    as_run,
    enter,
    filtered,
    find,
    metrics_of,
    number_of,
    pack_record,
    read_head,
    remember_environment,
    write_record,
)
from vmtune.storage.repositories.bench.run_values import Measured, measured
from vmtune.storage.repositories.operations import Operation
from vmtune.storage.series.packing import unpack
from vmtune.storage.tables.core import EnvironmentRow, RunChunkRow, RunMetricRow, RunRow


class RunRepository:
    """The runs, by UUID; lists give the newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self,
        *,
        scenario: str,
        setup: Mapping[str, Any],  # any JSON: the scenario
        values: Mapping[str, Value],
        profile: str = "",
        revision: int = 0,
        testbed: Testbed = Testbed.DIRECT,
        qemu: str = "",
        options: Mapping[str, Any] | None = None,  # any JSON
        host: str = "",
        slot: Slot | None = None,
        id: UUID | None = None,
        study: UUID | None = None,
    ) -> Run:
        """Record an order before anything is done for it; it is queued.

        A run of a running VM takes it.

        :param id: where the caller has to know it beforehand; else a new one.
        :raise DuplicateName: there is a run with that *id*.
        :raise OperationInProgress: its VM has an open application, migration or benchmark.
        """
        made = Run(
            id=id or uuid4(),
            scenario=scenario,
            setup=setup,
            values=values,
            state=RunState.QUEUED,
            created_at=self._database.now(),
            profile=profile,
            revision=revision,
            testbed=testbed,
            qemu=qemu,
            options=options or {},
            host=host,
            slot=slot,
        )
        vm = vm_of_setup(setup)
        with self._database.write() as session:
            row = add(session, made)
            row.study = study
            if vm is not None:
                now, service = made.created_at, self._database.service
                operations.take(session, vm, Operation.BENCHMARK, made.id, now, service)
            return as_run(row)

    def start(
        self,
        id: UUID,
        environment: Environment,
        fingerprint: str,
        conditions: Mapping[str, float],
    ) -> Run:
        """Record that it runs now, where, and what the machine was doing.

        :raise NotFound: there is no such run.
        :raise Conflict: it is not queued.
        """
        with self._database.write() as session:
            row = find(session, id)
            enter(row, RunState.RUNNING)
            row.started_at = self._database.now()
            row.conditions = dict(conditions)
            row.fingerprint = remember_environment(session, environment, fingerprint)
            session.flush()
            return as_run(row)

    def finish(
        self,
        id: UUID,
        state: RunState,
        record: RunRecord | None = None,
        metrics: Mapping[str, float] | None = None,
        failure: str = "",
    ) -> Run:
        """Record its end, with all that was recorded, in one step.

        :raise NotFound: there is no such run.
        :raise Conflict: it has ended already: nothing is changed, so that none counts twice.
        """
        assert state.ended, "it goes on"
        packed = pack_record(record)
        with self._database.write() as session:
            row = find(session, id)
            enter(row, state)
            row.ended_at = self._database.now()
            row.failure = storable(failure)
            vm = vm_of_setup(row.setup)
            if vm is not None:
                operations.release(session, vm, row.id)
            write_record(session, row.number, packed, metrics or {})
            session.flush()
            return as_run(row, metrics or {})

    def add(self, run: Run) -> Run:
        """Add a run that ended elsewhere, or here before: as it is, with all that it recorded.

        :raise DuplicateName: there is a run of that id: it would count twice.
        """
        return self.add_packed(run, pack_record(run.record))

    def add_packed(self, run: Run, packed: PackedRecord | None) -> Run:
        """The same for a run whose record is packed already.

        :raise DuplicateName: there is a run of that id: it would count twice.
        """
        assert run.state.ended, "only what has ended can be taken over"
        with self._database.write() as session:
            row = add(session, run)
            row.fingerprint = remember_environment(session, run.environment, run.fingerprint)
            write_record(session, row.number, packed, run.metrics)
            session.flush()
            return as_run(row, run.metrics)

    def get(self, id: UUID) -> Run:
        """The run of that UUID with its environment, without its record.

        :raise NotFound: there is none.
        """
        with self._database.read() as session:
            row = find(session, id)
            found = session.get(EnvironmentRow, row.fingerprint or "")
            metrics = metrics_of(session, [row.number]).get(row.number, {})
            return as_run(row, metrics, found.description if found else {})

    def head(self, id: UUID) -> tuple[Head | None, Mapping[Series, int]]:
        """The record without its series, and their lengths; None before its end, or without a
        record.

        :raise NotFound: there is no such run.
        """
        with self._database.read() as session:
            number = number_of(session, id)
            counted = select(RunChunkRow.series, func.sum(RunChunkRow.rows)).where(
                RunChunkRow.run == number
            )
            lengths = {
                Series(series): int(rows)
                for series, rows in session.execute(counted.group_by(RunChunkRow.series))
            }
            return read_head(session, number), {each: lengths.get(each, 0) for each in Series}

    def record(self, id: UUID) -> RunRecord | None:
        """The full record; None before its end, or without a record.

        :raise NotFound: there is no such run.
        """
        with self._database.read() as session:
            number = number_of(session, id)
            head = read_head(session, number)
            if head is None:
                return None
            chunks = select(RunChunkRow).where(RunChunkRow.run == number)
            rows: dict[Series, list[Any]] = {}
            for chunk in session.scalars(chunks.order_by(RunChunkRow.series, RunChunkRow.first)):
                series = Series(chunk.series)
                rows.setdefault(series, []).extend(unpack(KINDS[series], chunk.packed))
            return joined(head, {series: tuple(found) for series, found in rows.items()})

    def series(
        self, id: UUID, series: Series, after: str | None = None, limit: int = CHUNK
    ) -> Page[Any]:  # any: of the kind of the series
        """Rows of one of its series, in the order of time; at most 1000.

        :raise NotFound: there is no such run.
        """
        limit = check_limit(limit)
        first = int(read_cursor("series", after, int)[0]) if after is not None else 0
        with self._database.read() as session:
            of_it = (RunChunkRow.run == number_of(session, id), RunChunkRow.series == series)
            length = session.scalar(select(func.sum(RunChunkRow.rows)).where(*of_it)) or 0
            chunks = (
                select(RunChunkRow.first, RunChunkRow.packed)
                .where(
                    *of_it,
                    RunChunkRow.first + RunChunkRow.rows > first,
                    RunChunkRow.first < first + limit,
                )
                .order_by(RunChunkRow.first)
            )
            found: list[Any] = []
            for begins, packed in session.execute(chunks):
                found += unpack(KINDS[series], packed)[max(0, first - begins) :]
        following = make_cursor("series", first + limit) if first + limit < length else None
        return Page(tuple(found[:limit]), following)

    def list(
        self, wanted: RunFilter = ALL, after: str | None = None, limit: int = 100
    ) -> Page[Run]:
        """Runs with their metrics, newest first; without environment and record."""
        query = filtered(select(RunRow), wanted)
        query = query.order_by(RunRow.number.desc()).limit(check_limit(limit) + 1)
        if after is not None:
            (number,) = read_cursor("runs", after, int)
            query = query.where(RunRow.number < number)
        with self._database.read() as session:
            rows = session.scalars(query).all()
            metrics = metrics_of(session, [row.number for row in rows[:limit]])
            return page(
                rows,
                limit,
                lambda row: as_run(row, metrics.get(row.number, {})),
                lambda row: make_cursor("runs", row.number),
            )

    def measured(
        self, metric: str, wanted: RunFilter = ALL, up_to: int | None = None, limit: int = 100
    ) -> tuple[Measured, ...]:
        """The newest runs that have *metric*, newest first; warm-ups of campaigns are left out.
        Read without the parts that a value over time does not need, which are most of a run.
        :param up_to: the number of the newest run to consider.
        """
        with self._database.read() as session:
            return measured(session, metric, wanted, up_to, limit)

    def scenarios(self, after: str | None = None, limit: int = 100) -> Page[MeasuredScenario]:
        """The scenarios that runs were made of, by their names."""
        each = select(
            RunRow.scenario, func.count().label("runs"), func.max(RunRow.number).label("number")
        ).group_by(RunRow.scenario)
        if after is not None:
            (name,) = read_cursor("measured", after, str)
            each = each.where(RunRow.scenario > name)
        found = each.order_by(RunRow.scenario).limit(check_limit(limit) + 1).subquery()
        query = (
            select(found.c.scenario, found.c.runs, RunRow.id, RunRow.created_at)
            .join(RunRow, RunRow.number == found.c.number)
            .order_by(found.c.scenario)
        )
        with self._database.read() as session:
            return page(
                session.execute(query).all(),
                limit,
                lambda row: MeasuredScenario(*row),
                lambda row: make_cursor("measured", row.scenario),
            )

    def metrics(
        self, ids: Collection[UUID], names: Collection[str] | None = None
    ) -> dict[UUID, dict[str, float]]:
        """The metrics of many runs at once; all if none is named."""
        found: dict[UUID, dict[str, float]] = {id: {} for id in ids}
        wanted = list(found)
        with self._database.read() as session:
            for start in range(0, len(wanted), 500):
                query = (
                    select(RunRow.id, RunMetricRow.metric, RunMetricRow.value)
                    .join(RunMetricRow, RunMetricRow.run == RunRow.number)
                    .where(RunRow.id.in_(wanted[start : start + 500]))
                )
                if names is not None:
                    query = query.where(RunMetricRow.metric.in_(names))
                for id, metric, value in session.execute(query):
                    found[id][metric] = value
        return found

    def environment(self, fingerprint: str) -> Environment:
        """The environment of a fingerprint.
        :raise NotFound: no run has it.
        """
        with self._database.read() as session:
            found = session.get(EnvironmentRow, fingerprint)
            if found is None:
                raise NotFound(
                    f"no run had that environment: {fingerprint[:40]}", field="fingerprint"
                )
            return found.description

    def unfinished(self) -> tuple[Run, ...]:
        """Those that have not ended, oldest first: the queue, after the one that runs."""
        query = select(RunRow).where(RunRow.state.in_([s for s in RunState if not s.ended]))
        with self._database.read() as session:
            return tuple(map(as_run, session.scalars(query.order_by(RunRow.number))))

    def have(self, vm: UUID) -> bool:
        """Whether a run has the VM to itself."""
        with self._database.read() as session:
            return operations.holder(session, vm) is Operation.BENCHMARK

    def counts(self) -> Mapping[RunState, int]:
        """How many runs are in each state."""
        query = select(RunRow.state, func.count()).group_by(RunRow.state)
        with self._database.read() as session:
            found = {state: number for state, number in session.execute(query)}
        return {state: found.get(state, 0) for state in RunState}
