"""Lists and counts: what the store and the hosts have, page by page."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from vmtune.errors import HostUnreachable, InvalidInput, NotFound, Problem, VmtuneError
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.host.contact import Contact, HostState
from vmtune.model.host.facts import Reading, VmFacts, VmState, VmSummary
from vmtune.model.host.inventory import Host, HostSort, VmSort
from vmtune.model.migration.controller_record import ReaperRound
from vmtune.model.migration.record import Migration, MigrationSort, MigrationState
from vmtune.model.plan.outcome import Application, ApplicationState
from vmtune.model.plan.tuning_state import WORST_FIRST, Tuning, TuningState
from vmtune.model.profile import Assignment, Profile, Revision
from vmtune.model.tunables.registry import TunableRegistry
from vmtune.model.tunables.tunable import Route, Side, Tunable
from vmtune.reference.loading import references
from vmtune.reference.tables import Reference
from vmtune.services.coalescing import Coalescer
from vmtune.services.hosts.hosts import HostService, SeenVm, VmListing, as_last_seen
from vmtune.storage import Page, Store, head_revision
from vmtune.storage.paging import MOST, make_cursor, page, read_cursor
from vmtune.storage.repositories.migrations import StoredSamples
from vmtune.storage.repositories.searching import hex_of

_T = TypeVar("_T")
_MAX_READS = 20
"""Of the VMs as last seen for one page, where many of them are gone."""
_ALL_HOSTS = 200
_LISTED_WITHIN_S = 0.2
"""How old a host's list of VMs may be: many pages that are open at once ask each host and its QEMUs
five times a second."""
_LARGE_FLEET_VMS = 2000
"""With more, to ask every host for each page would take longer than anybody waits."""


@dataclass(frozen=True, slots=True)
class VmFilter:
    """Which VMs to list; None and empty match all.

    :param name: the whole name.
    :param search: a part of its name, whatever the case, or the beginning of its UUID.
    :param labels: ``key=value`` that a VM must have, all of them.
    :param tuning: its tuning state, as last seen.
    """

    host: str | None = None
    name: str | None = None
    state: VmState | None = None
    labels: tuple[tuple[str, str], ...] = ()
    tuning: TuningState | None = None
    search: str = ""

    def lets(self, vm: SeenVm) -> bool:
        """Whether *vm* matches, without its tuning state."""
        return (
            (self.name is None or vm.summary.name == self.name)
            and (not self.search or self._finds(vm.summary))
            and (self.state is None or vm.summary.state is self.state)
            and all(vm.labels.get(key) == value for key, value in self.labels)
        )

    def _finds(self, vm: VmSummary) -> bool:
        digits = hex_of(self.search)
        return self.search.lower() in vm.name.lower() or (
            bool(digits) and vm.uuid.hex.startswith(digits)
        )


@dataclass(frozen=True, slots=True)
class VmPage:
    """A page of VMs, and why hosts are missing from it.
    :param tunings: the known tuning states of those VMs.
    :param counts: of all pages, before the filter by tuning: number of VMs by state; one that two
        hosts list counts once.
    """

    page: Page[SeenVm]
    problems: tuple[Problem, ...]
    tunings: Mapping[UUID, Tuning]
    counts: Mapping[TuningState, int]


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
        return _part(rows, "tunables", lambda row: (order[row.name].zfill(4),), after, limit)

    def references(self, after: str | None, limit: int) -> Page[Reference]:
        """Published measurements in the order of their ids."""
        return _part(
            list(references().values()), "references", lambda each: (each.id,), after, limit
        )

    async def hosts(
        self,
        after: str | None,
        limit: int,
        reach: Reach = EVERYTHING,
        search: str = "",
        state: HostState | None = None,
        maintenance: bool | None = None,
        sort: HostSort = HostSort.NAME,
    ) -> tuple[Page[Host], Mapping[str, int]]:
        """Hosts in the order of *sort*, and how many VMs each was seen to have.

        :param search: a part of their names or URIs.
        :param state: as of the last contact.
        """
        if sort is HostSort.NAME and state is None and maintenance is None:

            def read() -> tuple[Page[Host], Mapping[str, int]]:
                found = self._store.hosts.list(after, limit, reach, search)
                return found, self._store.known_vms.counts([host.name for host in found.items])

            return await asyncio.to_thread(read)
        hosts, vms = await asyncio.to_thread(self._all_hosts, reach, search)
        contacts = self._hosts.contacts
        chosen = [
            host
            for host in hosts
            if (state is None or contacts.of(host.name).state is state)
            and (maintenance is None or (host.maintenance_since is not None) is maintenance)
        ]

        def key(host: Host) -> tuple[str, ...]:
            rank = _host_rank(sort.by, contacts.of(host.name), vms.get(host.name, 0))
            return (rank, host.name)

        return _part(chosen, "sorted_hosts", key, after, limit, sort.backwards, sort), vms

    def _all_hosts(self, reach: Reach, search: str) -> tuple[list[Host], Mapping[str, int]]:
        found: list[Host] = []
        after = None
        while True:
            hosts = self._store.hosts.list(after, MOST, reach, search)
            found += hosts.items
            after = hosts.next
            if after is None:
                return found, self._store.known_vms.counts([host.name for host in found])

    async def vm_counts(self, hosts: Sequence[str]) -> Mapping[str, int]:
        """How many VMs were last seen on each of these hosts."""
        return await asyncio.to_thread(self._store.known_vms.counts, hosts)

    async def why_not_writable(self) -> Sequence[Problem]:
        """Why the database cannot be written; empty where it can. Equal requests are coalesced."""

        async def look() -> Sequence[Problem]:
            try:
                await asyncio.to_thread(self._store.check_writable)
            except VmtuneError as error:
                return error.problems
            return ()

        return await self._writable.run("writable", look)

    async def host_count(self) -> int:
        """How many hosts there are."""

        def count() -> int:
            found, after = 0, None
            while True:
                hosts = self._store.hosts.list(after, _ALL_HOSTS)
                found, after = found + len(hosts.items), hosts.next
                if after is None:
                    return found

        return await asyncio.to_thread(count)

    async def vms(
        self,
        wanted: VmFilter,
        after: str | None,
        limit: int,
        reach: Reach = EVERYTHING,
        sort: VmSort = VmSort.NAME,
    ) -> VmPage:
        """VMs as the hosts list them now, with their tuning states as last seen: no QEMU is
        queried. Those of hosts that do not answer are as last seen, their state unknown.

        In a large installation only the hosts of the VMs on the page are queried; the VMs are taken
        from earlier listings. A filter by state needs all hosts' answers all the same.

        :raise NotFound: no such host.
        """
        may_be_large = wanted.host is None and wanted.state is None
        tunings = await asyncio.to_thread(self._tunings, may_be_large)
        if tunings is None:
            return await self._of_many_hosts(wanted, after, limit, reach, sort)
        listing = await self._listing(wanted.host, reach)
        found = [vm for vm in listing.vms if wanted.lets(vm) and reach.has_vm(vm.host, vm.labels)]

        def stands(vm: UUID) -> TuningState:
            return tunings[vm].state if vm in tunings else TuningState.UNTUNED

        counted = Counter(stands(vm) for vm in {vm.summary.uuid for vm in found})
        if wanted.tuning is not None:
            found = [vm for vm in found if stands(vm.summary.uuid) is wanted.tuning]

        def key(vm: SeenVm) -> tuple[str, ...]:
            rank = ""
            if sort.by is VmSort.HOST:
                rank = vm.host
            elif sort.by is VmSort.TUNING:
                rank = str(WORST_FIRST.index(stands(vm.summary.uuid)))
            return (rank, vm.summary.name, str(vm.summary.uuid), vm.host)

        listed = _part(found, "live_vms", key, after, limit, sort.backwards, sort)
        shown = {vm.summary.uuid for vm in listed.items} & tunings.keys()
        counts = {state: counted[state] for state in TuningState}
        return VmPage(listed, listing.problems, {vm: tunings[vm] for vm in shown}, counts)

    def _tunings(self, may_be_large: bool) -> Mapping[UUID, Tuning] | None:
        """The tuning states of all VMs; None if there are too many to read at once. One call, since
        each call waits for a worker thread."""
        if may_be_large and self._store.known_vms.count() > _LARGE_FLEET_VMS:
            return None
        return self._store.tunings.all()

    async def _listing(self, host: str | None, reach: Reach) -> VmListing:
        try:
            listing = await self._hosts.list_vms(host, reach.hosts, _LISTED_WITHIN_S)
        except HostUnreachable as error:
            assert host is not None, "of all hosts, those that are silent are problems"
            listing = VmListing(
                (), tuple(replace(p, field=f"hosts.{host}") for p in error.problems)
            )
        silent = {problem.field.removeprefix("hosts.") for problem in listing.problems}
        if not silent:
            return listing
        arrives = VmState.INCOMING  # it may run on a host that is silent
        there = {vm.summary.uuid for vm in listing.vms if vm.summary.state is not arrives}
        missing = [vm for vm in await self._hosts.last_seen(silent) if vm.summary.uuid not in there]
        return replace(listing, vms=(*listing.vms, *missing))

    async def _of_many_hosts(
        self, wanted: VmFilter, after: str | None, limit: int, reach: Reach, sort: VmSort
    ) -> VmPage:
        seen: list[SeenVm] = []
        there: dict[str, Mapping[UUID, VmSummary]] = {}
        silent: set[str] = set()
        problems: list[Problem] = []
        for _ in range(_MAX_READS):
            known, counts = await asyncio.to_thread(
                self._store.known_vms.page, f"live_vms {sort}", after, limit - len(seen),
                name=wanted.name, search=wanted.search, sort=sort, labels=wanted.labels,
                tuning=wanted.tuning, reach=reach,
            )  # fmt: skip
            unasked = sorted({vm.host for vm in known.items} - there.keys())
            answered, why = await self._hosts.ask_each(unasked)
            there |= {name: answered.get(name, {}) for name in unasked}
            silent |= set(unasked) - answered.keys()
            problems += why
            for vm in known.items:
                if vm.host in silent:
                    seen.append(as_last_seen(vm))
                elif vm.uuid in there[vm.host]:
                    seen.append(SeenVm(vm.host, there[vm.host][vm.uuid], vm.labels))
            after = known.next
            # VMs that are gone must not make pages empty.
            if after is None or len(seen) >= limit:
                break
        uuids = [vm.summary.uuid for vm in seen]
        tunings = await asyncio.gather(*(self.tuning(uuid) for uuid in uuids))
        found = {uuid: tuning for uuid, tuning in zip(uuids, tunings, strict=True) if tuning}
        return VmPage(Page(tuple(seen), after), tuple(problems), found, counts)

    async def tuning(self, vm: UUID) -> Tuning | None:
        """A VM's tuning state as last seen; None if unknown."""
        return await asyncio.to_thread(self._store.tunings.get, vm)

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
        sort: MigrationSort = MigrationSort.NEWEST,
    ) -> Page[Migration]:
        """Migrations in the order of *sort*."""
        return await asyncio.to_thread(
            self._store.migrations.list,
            vm=vm, host=host, state=state, profile=profile, after=after, limit=limit,
            reach=reach, search=search, downtime_exceeded=downtime_exceeded, sort=sort,
        )  # fmt: skip

    async def migrating(self, vms: Iterable[UUID]) -> Mapping[UUID, UUID]:
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


def _host_rank(by: HostSort, contact: Contact, vms: int) -> str:
    """What hosts are sorted by before their names, as text that sorts like it."""
    facts = contact.facts
    match by:
        case HostSort.STATE:
            return contact.state.value
        case HostSort.VMS:
            return f"{vms:012}"
        case HostSort.MEMORY:
            free = facts.memory_available_bytes if facts else None
            return "" if free is None else f"{free:020}"
        case HostSort.FINDINGS:
            return "" if contact.findings is None else f"{contact.findings:012}"
        case HostSort.ANSWERED:
            return contact.answered_at.isoformat() if contact.answered_at else ""
        case _:
            return ""


def parse_labels(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """``key=value`` each.

    :raise InvalidInput: naming the first that is none.
    """
    pairs = [text.partition("=") for text in texts]
    for text, (key, equals, _) in zip(texts, pairs, strict=True):
        if not key or not equals:
            raise InvalidInput(
                f"{text[:80]!r} is not a label", field="label", remedy="write key=value"
            )
    return tuple((key, value) for key, _, value in pairs)


def _part(
    items: Sequence[_T],
    listing: str,
    key: Callable[[_T], tuple[str, ...]],
    after: str | None,
    limit: int,
    backwards: bool = False,
    order: str = "",
) -> Page[_T]:
    """A page of a list that is recomputed each time, in the order of *key*, which *order* names
    where there are several."""
    rest = sorted(items, key=key, reverse=backwards)
    kinds = _KEYS[listing]
    listing = f"{listing} {order}".rstrip()
    if after is not None:
        seen = tuple(map(str, read_cursor(listing, after, *kinds)))
        rest = [item for item in rest if (key(item) < seen if backwards else key(item) > seen)]
    return page(
        rest[: limit + 1], limit, lambda item: item, lambda item: make_cursor(listing, *key(item))
    )


def part_in_order(
    items: Sequence[_T], listing: str, name: Callable[[_T], str], after: str | None, limit: int
) -> Page[_T]:
    """A page of a list that is recomputed each time, in its order.

    :param name: an item's unique name.
    :raise InvalidInput: *after* continues another list.
    """
    start = 0
    if after is not None:
        last = str(read_cursor(listing, after, str)[0])
        names = [name(item) for item in items]
        start = names.index(last) + 1 if last in names else len(names)
    rest = items[start : start + limit + 1]
    return page(rest, limit, lambda item: item, lambda item: make_cursor(listing, name(item)))


_KEYS: Mapping[str, tuple[type[str], ...]] = {
    "tunables": (str,),
    "references": (str,),
    "live_vms": (str, str, str, str),
    "sorted_hosts": (str, str),
}
