"""Rounds of a migration's reaper in chunks, packed as samples are (vmtune.storage.series.packing).

A round is a few small numbers and one a vCPU. There can be twenty a second for hours, so only the
newest are kept. Times are stored in tenths of a millisecond, and fill ratios in thousandths.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from vmtune.model.migration.controller_record import ReaperRound
from vmtune.storage.tables.core import ReaperChunkRow

CHUNK = 400
"""Rounds in a full chunk: at least 20 s."""
MOST_CHUNKS = 250
"""Of one migration: 100,000 rounds, 83 minutes at twenty a second and a day at one."""

_FAST = 1  # zlib's level, as for samples
_BEFORE_ALL = -(1 << 62)


def append(session: Session, migration: int, done: Sequence[ReaperRound]) -> None:
    """Add rounds to a migration. The session must be a writing one."""
    last = session.scalar(
        select(ReaperChunkRow)
        .where(ReaperChunkRow.migration == migration)
        .order_by(ReaperChunkRow.position.desc())
        .limit(1)
    )
    fresh = list(_never_back(done, last.last_at_ms if last is not None else _BEFORE_ALL))
    position = 0
    if last is not None:
        position = last.position + 1
        room = CHUNK - last.rounds
        more, fresh = fresh[:room], fresh[room:]
        if more:
            last.packed = pack(more, onto=last.packed)
            last.rounds += len(more)
            last.last_at_ms = more[-1].at_ms
    for start in range(0, len(fresh), CHUNK):
        chunk = fresh[start : start + CHUNK]
        session.add(
            ReaperChunkRow(
                migration=migration,
                position=position + start // CHUNK,
                last_at_ms=chunk[-1].at_ms,
                rounds=len(chunk),
                packed=pack(chunk),
            )
        )
        outlived = position + start // CHUNK - MOST_CHUNKS
        session.execute(
            delete(ReaperChunkRow).where(
                ReaperChunkRow.migration == migration, ReaperChunkRow.position <= outlived
            )
        )


def read(
    session: Session, migration: int, after_ms: int | None, limit: int | None
) -> list[ReaperRound]:
    """Rounds later than *after_ms*; at least *limit* of them if there are so many, and all of
    the last one's millisecond."""
    after_ms = _BEFORE_ALL if after_ms is None else after_ms
    chunks = (
        select(ReaperChunkRow.packed)
        .where(ReaperChunkRow.migration == migration, ReaperChunkRow.last_at_ms > after_ms)
        .order_by(ReaperChunkRow.position)
        .execution_options(yield_per=8)
    )
    found: list[ReaperRound] = []
    with session.scalars(chunks) as packed:  # closed where the page ends before the chunks do
        for each in (each for chunk in packed for each in unpack(chunk)):
            if each.at_ms <= after_ms:
                continue
            if limit is not None and len(found) >= limit and each.at_ms > found[-1].at_ms:
                break
            found.append(each)
    return found


def _never_back(done: Sequence[ReaperRound], at_least_ms: int) -> Iterator[ReaperRound]:
    """*done*, where the order of arrival is the order of time: a clock can be set back."""
    for each in done:
        at_least_ms = max(at_least_ms, each.at_ms)
        yield each if each.at_ms == at_least_ms else replace(each, at_ms=at_least_ms)


def pack(rounds: Sequence[ReaperRound], onto: bytes | None = None) -> bytes:
    """*rounds* as a chunk.

    :param onto: a chunk that they continue; the result has its rounds too.
    """
    stored: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    if onto is not None:
        stored = json.loads(zlib.decompress(onto))
    before = sum(stored["at_ms"])
    for each in rounds:
        stored["at_ms"].append(each.at_ms - before)
        before = each.at_ms
        stored["interval_ms"].append(each.interval_ms)
        stored["elapsed_tenths_ms"].append(round(each.elapsed_ms * 10))
        stored["cost_tenths_ms"].append(round(each.cost_ms * 10))
        stored["fills_per_mille"].append([round(fill * 1000) for fill in each.fills])
    return zlib.compress(json.dumps(stored, separators=(",", ":")).encode(), _FAST)


def unpack(packed: bytes) -> Iterator[ReaperRound]:
    """The rounds of a chunk."""
    stored: dict[str, list[Any]] = json.loads(zlib.decompress(packed))
    stored["at_ms"] = list(accumulate(stored["at_ms"]))
    for at_ms, interval_ms, elapsed, cost, fills in zip(
        *(stored[name] for name in _COLUMNS), strict=True
    ):
        yield ReaperRound(
            at_ms, interval_ms, elapsed / 10, cost / 10, tuple(fill / 1000 for fill in fills)
        )


_COLUMNS = ("at_ms", "interval_ms", "elapsed_tenths_ms", "cost_tenths_ms", "fills_per_mille")
