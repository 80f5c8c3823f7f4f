"""What is recorded of a migration over time: samples, rounds of the reaper, copied disks."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from vmtune.errors import NotFound
from vmtune.model.migration.controller_record import ReaperRound
from vmtune.model.migration.copy_progress import DiskSample
from vmtune.model.migration.record import Sample
from vmtune.storage.database import Database
from vmtune.storage.series.chunks import DISK_SAMPLES, ROUNDS, SAMPLES
from vmtune.storage.tables.core import MigrationRow

_NUMBER = select(MigrationRow.number).where(MigrationRow.id == bindparam("id"))


class MigrationSeries:
    """The series of migrations, by their UUID; each in the order of time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add_samples(self, id: UUID, taken: Sequence[Sample]) -> None:
        """Add samples, in the order in which they were taken.

        One that claims to be earlier than the one before it (a clock was set back) is
        stored with the time of that one: the order of arrival is the order of time.

        :raise NotFound: there is no such migration.
        """
        with self._database.write(durable=False, progress=True) as session:
            SAMPLES.append(session, number_of(session, id), taken)

    def samples(self, id: UUID, after_ms: int = -1, limit: int | None = None) -> tuple[Sample, ...]:
        """Samples in the order of time.

        :param after_ms: only those taken later. Pass the last one's *at_ms* to continue.
        :param limit: about how many: samples of the same millisecond are never separated.
        :raise NotFound: there is no such migration.
        """
        with self._database.read() as session:
            return tuple(SAMPLES.read(session, number_of(session, id), after_ms, limit))

    def sample_count(self, id: UUID) -> int:
        """How many samples there are.

        :raise NotFound: there is no such migration.
        """
        with self._database.read() as session:
            return SAMPLES.count(session, number_of(session, id))

    def rounds(
        self, id: UUID, after_ms: int | None = None, limit: int | None = None
    ) -> tuple[ReaperRound, ...]:
        """Rounds of the reaper in the order of time; see :meth:`samples`.

        :raise NotFound: there is no such migration.
        """
        with self._database.read() as session:
            return tuple(ROUNDS.read(session, number_of(session, id), after_ms, limit))

    def add_disk_samples(self, id: UUID, taken: Sequence[DiskSample]) -> None:
        """Add samples of copied disks, in the order in which they were taken.

        :raise NotFound: there is no such migration.
        """
        with self._database.write(durable=False, progress=True) as session:
            DISK_SAMPLES.append(session, number_of(session, id), taken)

    def disk_samples(
        self, id: UUID, after_ms: int | None = None, limit: int | None = None
    ) -> tuple[DiskSample, ...]:
        """Samples of copied disks in the order of time; see :meth:`samples`.

        :raise NotFound: there is no such migration.
        """
        with self._database.read() as session:
            return tuple(DISK_SAMPLES.read(session, number_of(session, id), after_ms, limit))


def number_of(session: Session, id: UUID) -> int:
    """The migration's number in the tables.

    :raise NotFound: there is no such migration.
    """
    number = session.scalar(_NUMBER, {"id": id})
    if number is None:
        raise no_migration(id)
    return number


def no_migration(id: UUID) -> NotFound:
    """The error for it."""
    return NotFound(f"there is no migration {id}", field="migration")
