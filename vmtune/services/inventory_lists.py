"""Lists of hosts and VMs, page by page: hosts, and the VMs that they have now or had last."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from vmtune.errors import HostUnreachable, InvalidInput, Problem
from vmtune.model.access.scopes import EVERYTHING, Reach
from vmtune.model.host.contact import Contact, HostState
from vmtune.model.host.facts import VmState, VmSummary
from vmtune.model.host.inventory import Host, HostSort, VmSort
from vmtune.model.plan.tuning_state import WORST_FIRST, Tuning, TuningState
from vmtune.services.computed_pages import part_by_key
from vmtune.services.hosts.hosts import HostService, SeenVm, VmListing, as_last_seen
from vmtune.storage import Page, Store
from vmtune.storage.paging import MOST
from vmtune.storage.repositories.searching import hex_of

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


class InventoryLists:
    """Lists of hosts and VMs, and counts of them."""

    def __init__(self, store: Store, hosts: HostService) -> None:
        self._store = store
        self._hosts = hosts

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

        return part_by_key(chosen, "sorted_hosts", key, after, limit, sort.backwards, sort), vms

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
        tunings: Mapping[UUID, Tuning] | None = None
        if wanted.host is None:
            tunings = await asyncio.to_thread(self._tunings, wanted.state is None)
            if tunings is None:
                return await self._of_many_hosts(wanted, after, limit, reach, sort)
        listing = await self._listing(wanted.host, reach)
        if wanted.host is None and wanted.state is None:
            listing = replace(listing, vms=await asyncio.to_thread(self._each_once, listing.vms))
        found = [vm for vm in listing.vms if wanted.lets(vm) and reach.has_vm(vm.host, vm.labels)]
        if tunings is None:  # a host's VMs are few among all
            uuids = {vm.summary.uuid for vm in found}
            tunings = await asyncio.to_thread(self._store.tunings.of, uuids)

        known = tunings

        def stands(vm: UUID) -> TuningState:
            return known[vm].state if vm in known else TuningState.UNTUNED

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

        listed = part_by_key(found, "live_vms", key, after, limit, sort.backwards, sort)
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

    def _each_once(self, vms: Sequence[SeenVm]) -> tuple[SeenVm, ...]:
        """Without the second place of a VM that migrates, which two hosts list meanwhile: it is
        where it runs, or else where it is paused, or on the host that is silent."""
        listed = Counter(vm.summary.uuid for vm in vms)
        twice = {uuid for uuid, times in listed.items() if times > 1}
        if not twice:
            return tuple(vms)
        migrating = self._store.migrations.open_of(tuple(twice))
        at = {
            vm.summary.uuid: vm.host
            for state in (VmState.UNKNOWN, VmState.PAUSED, VmState.RUNNING)
            for vm in vms
            if vm.summary.uuid in twice and vm.summary.state is state
        }

        def elsewhere(vm: SeenVm) -> bool:
            uuid, state = vm.summary.uuid, vm.summary.state
            if at.get(uuid, vm.host) == vm.host:
                return False
            # One that is paused on a second host without a migration was left behind there.
            return state is VmState.INCOMING or (state is VmState.PAUSED and uuid in migrating)

        return tuple(vm for vm in vms if not elsewhere(vm))

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
        tunings = await asyncio.to_thread(self._store.tunings.of, {vm.summary.uuid for vm in seen})
        return VmPage(Page(tuple(seen), after), tuple(problems), tunings, counts)

    async def tuning(self, vm: UUID) -> Tuning | None:
        """A VM's tuning state as last seen; None if unknown."""
        return await asyncio.to_thread(self._store.tunings.get, vm)


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
