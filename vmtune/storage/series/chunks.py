"""Samples, samples of disks and reapers' rounds of migrations in chunks: each row of a table holds
some hundred of them, packed.

Adding rewrites the last chunk while it has room, in one transaction: one at a time is as safe as
many at once, and takes no more room in the end.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from sqlalchemy import bindparam, delete, func, select, update
from sqlalchemy.orm import Session

from vmtune.model.migration.controller_record import ReaperRound
from vmtune.model.migration.copy_progress import DiskSample
from vmtune.model.migration.record import Sample
from vmtune.storage.series.packing import pack, unpack
from vmtune.storage.tables.core import ChunkRow, DiskChunkRow, ReaperChunkRow, SampleChunkRow

_AT_ONCE = 8
_TABLES: tuple[type[ChunkRow], ...] = (SampleChunkRow, ReaperChunkRow, DiskChunkRow)
_LAST = {
    table: select(table.position, table.last_at_ms, table.rows.label("rows"), table.packed)
    .where(table.migration == bindparam("migration"))
    .order_by(table.position.desc())
    .limit(1)
    for table in _TABLES
}
_LONGER = {
    table: update(table)
    .where(table.migration == bindparam("of"), table.position == bindparam("at"))
    .values(
        {
            table.rows: bindparam("now"),
            table.last_at_ms: bindparam("until_ms"),
            table.packed: bindparam("longer"),
        }
    )
    for table in _TABLES
}
_T = TypeVar("_T", Sample, ReaperRound, DiskSample)


def _in_tenths(each: ReaperRound) -> ReaperRound:
    """*each* without insignificant digits, which would take most of the space."""
    return replace(
        each,
        elapsed_ms=round(each.elapsed_ms, 1),
        cost_ms=round(each.cost_ms, 1),
        fills=tuple(round(fill, 3) for fill in each.fills),
    )


@dataclass(slots=True)
class Chunks(Generic[_T]):
    """A series of a migration's rows, in the order of time.

    :param size: rows of a full chunk.
    :param first_ms: no row is earlier.
    :param most: chunks of one migration; of more, the newest are kept. None for all.
    :param rounded: a row as it is stored.
    """

    kind: type[_T]
    table: type[ChunkRow]
    size: int
    first_ms: int
    most: int | None = None
    rounded: Callable[[_T], _T] = lambda each: each

    def append(self, session: Session, migration: int, taken: Sequence[_T]) -> None:
        """Add rows to a migration. The session must be a writing one. Past the ORM, which takes
        twice as long: a service does this for each migration, every few seconds."""
        table, connection = self.table, session.connection()
        last = connection.execute(_LAST[table], {"migration": migration}).first()
        fresh = list(
            self._never_back(taken, last.last_at_ms if last is not None else self.first_ms)
        )
        position = 0
        if last is not None:
            position = last.position + 1
            room = self.size - last.rows
            more, fresh = fresh[:room], fresh[room:]
            if more:
                longer = {
                    "of": migration,
                    "at": last.position,
                    "longer": pack(self.kind, more, onto=last.packed),
                    "now": last.rows + len(more),
                    "until_ms": more[-1].at_ms,
                }
                connection.execute(_LONGER[table], longer)
        chunks = list(self.of(migration, fresh, position))
        session.add_all(chunks)
        session.flush()
        if self.most is not None and chunks:
            outlived = table.position <= chunks[-1].position - self.most
            session.execute(delete(table).where(table.migration == migration, outlived))

    def of(self, migration: int, taken: Iterable[_T], position: int = 0) -> Iterator[ChunkRow]:
        """Rows as chunks of a migration.

        :param position: the first chunk's.
        """
        rest = iter(taken)
        while chunk := list(itertools.islice(rest, self.size)):
            yield self.table(
                migration=migration,
                position=position,
                last_at_ms=chunk[-1].at_ms,
                rows=len(chunk),
                packed=pack(self.kind, chunk),
            )
            position += 1

    def each(self, session: Session, migration: int) -> Iterator[_T]:
        """All rows of a migration, a few chunks at a time."""
        for chunk in self._later(session, migration, None):
            yield from unpack(self.kind, chunk)

    def read(
        self, session: Session, migration: int, after_ms: int | None, limit: int | None
    ) -> list[_T]:
        """Rows later than *after_ms*; at least *limit* of them if there are so many, and all of
        the last one's millisecond."""
        found: list[_T] = []
        for chunk in self._later(session, migration, after_ms):
            found += unpack(self.kind, chunk, after_ms)
            if limit is not None and len(found) > limit:
                end = bisect_right(found, found[limit - 1].at_ms, limit, key=lambda one: one.at_ms)
                if end < len(found):
                    return found[:end]
        return found

    def extent(self, session: Session, migration: int) -> tuple[int, int | None]:
        """How many rows a migration has, and the last one's time."""
        table = self.table
        query = select(func.sum(table.rows), func.max(table.last_at_ms))
        rows, last_at_ms = session.execute(query.where(table.migration == migration)).one()
        return rows or 0, last_at_ms

    def count(self, session: Session, migration: int) -> int:
        """How many rows a migration has."""
        return self.extent(session, migration)[0]

    def _later(self, session: Session, migration: int, after_ms: int | None) -> Iterator[bytes]:
        """The chunks that have later rows, a few at a time: a page may end before they do. Most
        take one query, where a cursor on the server would take five."""
        table, position = self.table, -1
        query = select(table.position, table.packed).where(table.migration == migration)
        if after_ms is not None:
            query = query.where(table.last_at_ms > after_ms)
        while True:
            later = query.where(table.position > position).order_by(table.position)
            rows = session.execute(later.limit(_AT_ONCE)).all()
            for row in rows:
                yield row.packed
            if len(rows) < _AT_ONCE:
                return
            position = rows[-1].position

    def _never_back(self, taken: Sequence[_T], at_least_ms: int) -> Iterator[_T]:
        """*taken*, where the order of arrival is the order of time: a clock can be set back."""
        for each in map(self.rounded, taken):
            at_least_ms = max(at_least_ms, each.at_ms)
            yield each if each.at_ms == at_least_ms else replace(each, at_ms=at_least_ms)


SAMPLES = Chunks(Sample, SampleChunkRow, size=200, first_ms=0)
"""A full chunk is 20 s at 10 Hz."""
ROUNDS = Chunks(
    ReaperRound, ReaperChunkRow, size=400, first_ms=-(1 << 62), most=250, rounded=_in_tenths
)
"""There can be twenty a second for hours: a full chunk is at least 20 s, and those of one
migration 83 minutes at twenty a second, and a day at one."""
DISK_SAMPLES = Chunks(DiskSample, DiskChunkRow, size=400, first_ms=0, most=250)
"""There is one of each disk a second: those of one migration are a day of the copy of one."""
