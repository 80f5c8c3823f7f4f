"""Lists and counts of what the store has, page by page; what a VM runs with."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from vmtune.errors import NotFound, Problem, VmtuneError
from vmtune.forecast.held import HeldForecast, KeptForecast
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.host.facts import Reading, VmFacts
from vmtune.model.migration.controller_record import ReaperRound
from vmtune.model.migration.copy_progress import DiskSample
from vmtune.model.migration.open_migration import OpenMigration
from vmtune.model.migration.record import Migration, MigrationSort, MigrationState
from vmtune.model.plan.outcome import Application, ApplicationState
from vmtune.model.profile import Assignment, Profile, Revision
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Route, Side, Tunable
from vmtune.reference.loading import references
from vmtune.reference.tables import Reference
from vmtune.services.coalescing import Coalescer
from vmtune.services.computed_pages import part_by_key
from vmtune.services.hosts.hosts import HostService
from vmtune.storage import Page, Store, head_revision
from vmtune.storage.paging import make_cursor, read_cursor
from vmtune.storage.repositories.migrations import StoredSamples


class Queries:
    """Read-only queries."""

    def __init__(self, store: Store, hosts: HostService, tunables: TunableRegistry) -> None:
        self._store = store
        self._hosts = hosts
        self._tunables = tunables
        self._schema = head_revision()
        self._writable = Coalescer[Sequence[Problem]](0.1, 1.0)

    @property
    def schema_revision(self) -> str:
        """The revision of the store's schema; it opens with no other."""
        return self._schema

    def tunables(
        self, route: Route | None, side: Side | None, after: str | None, limit: int
    ) -> Page[Tunable]:
        """Rows of the table of tunables, in its order."""
        order = {name: str(index) for index, name in enumerate(self._tunables)}
        rows = self._tunables.on(route, side)
        return part_by_key(rows, "tunables", lambda row: (order[row.name].zfill(4),), after, limit)

    def references(self, after: str | None, limit: int) -> Page[Reference]:
        """Published measurements in the order of their ids."""
        return part_by_key(
            list(references().values()), "references", lambda each: (each.id,), after, limit
        )

    async def why_not_writable(self) -> Sequence[Problem]:
        """Why the database cannot be written; empty where it can. Equal requests are coalesced."""

        async def look() -> Sequence[Problem]:
            try:
                await asyncio.to_thread(self._store.check_writable)
            except VmtuneError as error:
                return error.problems
            return ()

        return await self._writable.run("writable", look)

    async def labels(self, vm: UUID) -> Mapping[str, str]:
        """A VM's labels; none where it was never seen."""
        try:
            return (await asyncio.to_thread(self._store.vms.get, vm)).labels
        except NotFound:
            return {}

    async def effective(self, vm: UUID) -> tuple[str, VmFacts, dict[str, Reading]]:
        """Host, facts and the current value of every tunable, the host's own among them.

        :raise NotFound: no host that answers has it.
        """
        host, _, facts = await self._hosts.locate(vm)
        sysctls = (await self._hosts.facts(host)).sysctls
        of_host = {
            name: Reading(value) for name, value in sysctls.items() if name in self._tunables
        }
        nothing = Reading(None, why_unknown="it cannot be read")
        return (
            host,
            facts,
            {
                name: of_host.get(name) or facts.readings.get(name, nothing)
                for name in self._tunables
            },
        )

    async def migration_forecasts(self, migration: UUID) -> tuple[KeptForecast, ...]:
        """A migration's forecasts, in the order in which they were made.

        :raise NotFound: no such migration.
        """
        return await asyncio.to_thread(self._store.forecasts.of, migration)

    async def held_forecasts(
        self,
        profile: str | None,
        host: str | None,
        since: datetime | None,
        limit: int,
        reach: Reach = EVERYTHING,
    ) -> tuple[HeldForecast, ...]:
        """Forecasts whose migrations have ended, the latest first."""
        return await asyncio.to_thread(
            self._store.forecasts.held, profile, host, since, limit=limit, reach=reach
        )

    async def profiles(self, contains: str, after: str | None, limit: int) -> Page[Profile]:
        """Profiles in the order of their names."""
        return await asyncio.to_thread(self._store.profiles.list, after, limit, contains)

    async def revisions(self, name: str, after: str | None, limit: int) -> Page[Revision]:
        """Revisions of a profile, newest first.

        :raise NotFound: there never was one of that name.
        """
        return await asyncio.to_thread(self._store.profiles.revisions, name, after, limit)

    async def assignments(
        self, profile: str | None, after: str | None, limit: int
    ) -> Page[Assignment]:
        """Assignments in the order in which they were made."""
        return await asyncio.to_thread(self._store.assignments.list, profile, after, limit)

    async def assignment(self, number: int) -> Assignment:
        """:raise NotFound: no such assignment."""
        return await asyncio.to_thread(self._store.assignments.get, number)

    async def applications(
        self,
        vm: UUID | None,
        host: str | None,
        state: ApplicationState | None,
        after: str | None,
        limit: int,
        reach: Reach = EVERYTHING,
    ) -> Page[Application]:
        """Applications, newest first."""
        return await asyncio.to_thread(
            self._store.applications.list,
            vm=vm, host=host, state=state, after=after, limit=limit, reach=reach,
        )  # fmt: skip

    async def application(self, application: UUID) -> Application:
        """:raise NotFound: no such application."""
        return await asyncio.to_thread(self._store.applications.get, application)

    async def migrations(
        self,
        vm: UUID | None,
        host: str | None,
        state: MigrationState | None,
        profile: str | None,
        after: str | None,
        limit: int,
        reach: Reach = EVERYTHING,
        search: str = "",
        downtime_exceeded: bool | None = None,
        intent_broken: bool | None = None,
        sort: MigrationSort = MigrationSort.NEWEST,
    ) -> Page[Migration]:
        """Migrations in the order of *sort*."""
        return await asyncio.to_thread(
            self._store.migrations.list,
            vm=vm, host=host, state=state, profile=profile, after=after, limit=limit,
            reach=reach, search=search, downtime_exceeded=downtime_exceeded,
            intent_broken=intent_broken, sort=sort,
        )  # fmt: skip

    async def migrating(self, vms: Iterable[UUID]) -> Mapping[UUID, OpenMigration]:
        """Of these VMs, the migrations that have not ended, by VM."""
        return await asyncio.to_thread(self._store.migrations.open_of, tuple(vms))

    async def migration(self, migration: UUID) -> Migration:
        """:raise NotFound: no such migration."""
        return await asyncio.to_thread(self._store.migrations.get, migration)

    async def migrations_running(self) -> int:
        """How many migrations have not ended."""
        return sum(count for state, count in (await self._counts()).items() if not state.ended)

    async def migrations_postcopy_paused(self) -> int:
        """Of how many the guest's memory is on two hosts that do not reach each other."""
        return (await self._counts())[MigrationState.POSTCOPY_PAUSED]

    async def _counts(self) -> Mapping[MigrationState, int]:
        return await asyncio.to_thread(self._store.migrations.counts)

    async def samples(
        self,
        migration: UUID,
        after: str | None,
        limit: int,
        later_than_ms: int = -1,
        known: Hashable = None,
    ) -> tuple[StoredSamples, str | None]:
        """A migration and its samples, oldest first, and the cursor of the next page; *limit* is
        exceeded by samples of the last one's millisecond.

        :param later_than_ms: where the list begins; *after* continues it.
        :param known: the version of those that the caller has: if it still is theirs, they are not
            read, and there is no cursor.
        :raise NotFound: no such migration.
        """
        after_ms = later_than_ms
        if after is not None:
            after_ms = int(read_cursor("samples", after, int)[0])
        found = await asyncio.to_thread(
            self._store.migrations.with_samples, migration, after_ms, limit, known
        )
        following = None
        if found.taken is not None and len(found.taken) >= limit:
            following = make_cursor("samples", found.taken[-1].at_ms)
        return found, following

    async def disk_samples(
        self, migration: UUID, after: str | None, limit: int, later_than_ms: int | None = None
    ) -> Page[DiskSample]:
        """Samples of the disks that a migration copies, oldest first; likewise.

        :raise NotFound: no such migration.
        """
        after_ms = later_than_ms
        if after is not None:
            after_ms = int(read_cursor("disk-samples", after, int)[0])
        read = self._store.migrations.disk_samples
        found = await asyncio.to_thread(read, migration, after_ms, limit)
        following = make_cursor("disk-samples", found[-1].at_ms) if len(found) >= limit else None
        return Page(found, following)

    async def rounds(
        self, migration: UUID, after: str | None, limit: int, later_than_ms: int | None = None
    ) -> Page[ReaperRound]:
        """Rounds of a migration's reaper, oldest first; likewise.

        :raise NotFound: no such migration.
        """
        after_ms = later_than_ms
        if after is not None:
            after_ms = int(read_cursor("rounds", after, int)[0])
        found = await asyncio.to_thread(self._store.migrations.rounds, migration, after_ms, limit)
        following = make_cursor("rounds", found[-1].at_ms) if len(found) >= limit else None
        return Page(found, following)
