"""Samples of migrations in chunks: each row holds up to CHUNK of them, packed.

Adding rewrites the last chunk while it has room, in one transaction: one sample at a time
is as safe as many at once, and takes no more room in the end.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from vmtune.model.migration.record import Sample
from vmtune.storage.series.packing import pack, unpack
from vmtune.storage.tables.core import SampleChunkRow

_AT_ONCE = 8
CHUNK = 200
"""Samples in a full chunk: 20 s at 10 Hz."""
_LATER = (
    select(SampleChunkRow.position, SampleChunkRow.packed)
    .where(
        SampleChunkRow.migration == bindparam("migration"),
        SampleChunkRow.last_at_ms > bindparam("after_ms"),
        SampleChunkRow.position > bindparam("position"),
    )
    .order_by(SampleChunkRow.position)
    .limit(_AT_ONCE)
)


def append(session: Session, migration: int, taken: Sequence[Sample]) -> None:
    """Add samples to a migration. The session must be a writing one."""
    last = session.scalar(
        select(SampleChunkRow)
        .where(SampleChunkRow.migration == migration)
        .order_by(SampleChunkRow.position.desc())
        .limit(1)
    )
    fresh = list(_never_back(taken, last.last_at_ms if last is not None else 0))
    position = 0
    if last is not None:
        position = last.position + 1
        room = CHUNK - last.samples
        more, fresh = fresh[:room], fresh[room:]
        if more:
            last.packed = pack(more, onto=last.packed)
            last.samples += len(more)
            last.last_at_ms = more[-1].at_ms
    session.add_all(chunks_of(migration, fresh, position))


def chunks_of(
    migration: int, taken: Iterable[Sample], position: int = 0
) -> Iterator[SampleChunkRow]:
    """Samples as chunks of a migration.

    :param position: the first chunk's.
    """
    rest = iter(taken)
    while chunk := list(itertools.islice(rest, CHUNK)):
        yield SampleChunkRow(
            migration=migration,
            position=position,
            last_at_ms=chunk[-1].at_ms,
            samples=len(chunk),
            packed=pack(chunk),
        )
        position += 1


def each(session: Session, migration: int) -> Iterator[Sample]:
    """All samples of a migration, a few chunks at a time."""
    chunks = (
        select(SampleChunkRow.packed)
        .where(SampleChunkRow.migration == migration)
        .order_by(SampleChunkRow.position)
        .execution_options(yield_per=8)
    )
    with session.scalars(chunks) as packed:
        for chunk in packed:
            yield from unpack(chunk)


def read(session: Session, migration: int, after_ms: int, limit: int | None) -> list[Sample]:
    """Samples later than *after_ms*; at least *limit* of them if there are so many, and
    all of the last one's millisecond."""
    found: list[Sample] = []
    for chunk in _later(session, migration, after_ms):
        found += unpack(chunk, after_ms)
        if limit is not None and len(found) > limit:
            end = bisect_right(found, found[limit - 1].at_ms, limit, key=lambda one: one.at_ms)
            if end < len(found):
                return found[:end]
    return found


def _later(session: Session, migration: int, after_ms: int) -> Iterator[bytes]:
    """The chunks that have later samples, a few at a time: a page may end before they do. Most
    take one query, where a cursor on the server would take five."""
    position = -1
    while True:
        where = {"migration": migration, "after_ms": after_ms, "position": position}
        rows = session.execute(_LATER, where).all()
        for row in rows:
            yield row.packed
        if len(rows) < _AT_ONCE:
            return
        position = rows[-1].position


def count(session: Session, migration: int) -> int:
    """How many samples a migration has."""
    query = select(func.sum(SampleChunkRow.samples)).where(SampleChunkRow.migration == migration)
    return session.scalar(query) or 0


def _never_back(taken: Sequence[Sample], at_least_ms: int) -> Iterator[Sample]:
    for sample in taken:
        if sample.at_ms < at_least_ms:
            yield replace(sample, at_ms=at_least_ms)
        else:
            at_least_ms = sample.at_ms
            yield sample
