"""The store as its users see it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self
from uuid import UUID

from vmtune.storage import consistency
from vmtune.storage.changes import Changes
from vmtune.storage.database import Database, Lease, make_private, utc_now
from vmtune.storage.failures import masked, parse_url, translated
from vmtune.storage.repositories.applications import ApplicationRepository
from vmtune.storage.repositories.assignments import AssignmentRepository
from vmtune.storage.repositories.audit_log import AuditRepository
from vmtune.storage.repositories.bench.campaigns import CampaignRepository
from vmtune.storage.repositories.bench.runs import RunRepository
from vmtune.storage.repositories.bench.studies import StudyRepository
from vmtune.storage.repositories.bench.trends import FoundChangeRepository, ScheduleRepository
from vmtune.storage.repositories.cluster import ServiceRepository
from vmtune.storage.repositories.counts import Tallies
from vmtune.storage.repositories.drift_scans import DriftScanRepository
from vmtune.storage.repositories.evacuations import EvacuationRepository
from vmtune.storage.repositories.events import EventRepository
from vmtune.storage.repositories.forecasts import ForecastRepository
from vmtune.storage.repositories.idempotency import IdempotencyRepository
from vmtune.storage.repositories.inventory import HostRepository, VmRepository
from vmtune.storage.repositories.known_vms import KnownVms
from vmtune.storage.repositories.migration_queue import SlotRepository
from vmtune.storage.repositories.migrations import MigrationRepository
from vmtune.storage.repositories.overview import OverviewRepository
from vmtune.storage.repositories.profiles import ProfileRepository
from vmtune.storage.repositories.retention import RetentionRepository
from vmtune.storage.repositories.tokens import TokenRepository
from vmtune.storage.repositories.tuning_states import TuningRepository
from vmtune.storage.repositories.webhooks import WebhookRepository
from vmtune.storage.upgrades import check_revision, known_revisions, revision_of


class Store:
    """All of vmtune's records.

    Every call is one short transaction, blocks its thread and may be made from any thread; asyncio
    code calls it by ``asyncio.to_thread``. Calls return the model's frozen objects. In addition to
    its documented errors, any call can raise SetupError: the database is locked, full, read-only or
    gone; nothing was changed then.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.hosts = HostRepository(database)
        self.vms = VmRepository(database)
        self.known_vms = KnownVms(database)
        self.profiles = ProfileRepository(database)
        self.assignments = AssignmentRepository(database)
        self.applications = ApplicationRepository(database)
        self.tunings = TuningRepository(database)
        self.migrations = MigrationRepository(database)
        self.slots = SlotRepository(database)
        self.forecasts = ForecastRepository(database)
        self.evacuations = EvacuationRepository(database)
        self.runs = RunRepository(database)
        self.campaigns = CampaignRepository(database)
        self.studies = StudyRepository(database)
        self.found_changes = FoundChangeRepository(database)
        self.schedules = ScheduleRepository(database)
        self.services = ServiceRepository(database)
        self.drift_scans = DriftScanRepository(database)
        self.retention = RetentionRepository(database)
        self.events = EventRepository(database)
        self.idempotency = IdempotencyRepository(database)
        self.webhooks = WebhookRepository(database)
        self.tokens = TokenRepository(database)
        self.audit = AuditRepository(database)
        self.tallies = Tallies(database)
        self.overview = OverviewRepository(database)
        self.changes = Changes(database)

    @classmethod
    def open(cls, url: str, *, wait_s: float = 5.0, now: Callable[[], datetime] = utc_now) -> Store:
        """Open a database whose schema is the one that this vmtune works with.

        :param url: ``sqlite:////FOLDER/FILE`` or ``postgresql://USER:PASSWORD@HOST/NAME``.
        :param wait_s: how long a call waits for another writer.
        :param now: the clock.
        :raise SchemaMismatch: the schema is missing, older or newer; names the command that fixes
            it.
        :raise SetupError: the database cannot be opened.
        """
        where = parse_url(url)
        database = Database(where, wait_s=wait_s, now=now)
        try:
            known = known_revisions()
            if database.missing:  # do not create it by looking
                check_revision(None, known, masked(where))
            with translated(where):
                make_private(where)
            with database.read() as session:
                check_revision(revision_of(session.connection()), known, masked(where))
        except BaseException:
            database.close()
            raise
        return cls(database)

    @property
    def lease(self) -> Lease | None:
        """In whose name is written; None where one service uses the database."""
        return self._database.lease

    def check_writable(self) -> None:
        """:raise VmtuneError: why nothing can be written."""
        self._database.check_writable()

    def broken(self, most: int) -> list[tuple[str, str]]:
        """Violations of consistency: code and message; of each code the first *most*."""
        return consistency.broken(self._database, most)

    def unmatched(self, unfinished: frozenset[str]) -> tuple[list[tuple[str, UUID]], list[str]]:
        """Records under way without a job, with their kind, and jobs without a record.

        :param unfinished: the ids of the jobs that are under way.
        """
        return consistency.unmatched(self._database, unfinished)

    def close(self) -> None:
        """Close all connections. The store cannot be used afterwards."""
        self.changes.close()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
