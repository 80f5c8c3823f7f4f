"""Hosts and VMs: what vmtune knows of them, and what they say right now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TypeVar
from uuid import UUID

from vmtune.errors import HostUnreachable, NotFound, Problem, VmtuneError
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import HostFacts, VmFacts, VmState, VmSummary
from vmtune.model.host.inventory import EventTopic, Host, Vm
from vmtune.model.host.uri import check_address, check_uri
from vmtune.model.migration.record import Migration
from vmtune.model.profile import check_labels, check_name
from vmtune.services.coalescing import Together
from vmtune.services.events import EventBus
from vmtune.services.hosts.search import Found, Search
from vmtune.storage import Store

DriverFactory = Callable[[Host], Driver]
OnHost = Callable[[str], None]
_T = TypeVar("_T")
_LIST_TIMEOUT_S = 10.0
_FIND_TIMEOUT_S = 2.0
_PAGE = 200
_PRESENT = (VmState.RUNNING, VmState.PAUSED)


@dataclass(frozen=True, slots=True)
class SeenVm:
    """A VM as its host lists it right now."""

    host: str
    summary: VmSummary
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class VmListing:
    """The VMs of the hosts that answered, and why others did not."""

    vms: tuple[SeenVm, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where this service is, and what it is called, where several share the work."""

    service: str
    machine: str


class HostElsewhere(HostUnreachable):
    """Another service reaches the host, and this one does not."""

    code = "host_elsewhere"


class HostService:
    """Keeps the hosts and one driver for each.

    :param place: None where this service drives every host.
    :param keys_dir: below which addresses of hosts may name files of keys; None for nowhere.
    """

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        factory: DriverFactory,
        place: Place | None = None,
        keys_dir: PurePath | None = None,
    ) -> None:
        self._keys_dir = keys_dir
        self._place = place
        self._driven: frozenset[str] = frozenset()
        self._store = store
        self._bus = bus
        self._factory = factory
        self._drivers: dict[str, tuple[Host, Driver]] = {}
        self._last_host: dict[UUID, str] = {}
        self._lists = Together[VmListing]()
        self._on_added: list[OnHost] = []
        self._on_removed: list[OnHost] = []

    def follow(self, added: OnHost, removed: OnHost) -> None:
        """Tell each host that is added or removed from now on, by its name."""
        self._on_added.append(added)
        self._on_removed.append(removed)

    def drives(self, host: str) -> bool:
        """Whether a host is this service's to look after."""
        return self._place is None or host in self._driven

    def drive(self, hosts: Collection[str]) -> None:
        """Look after these hosts from now on, and no others: tell those who follow."""
        before, self._driven = self._driven, frozenset(hosts)
        for name in self._driven - before:
            for tell in self._on_added:
                tell(name)
        for name in before - self._driven:
            for tell in self._on_removed:
                tell(name)

    async def forget_driver(self, name: str) -> None:
        """Connect anew when the host is needed next: it was removed, or changed elsewhere."""
        known = self._drivers.pop(name, None)
        if known is not None:
            await known[1].close()

    async def close(self) -> None:
        """Give up all connections."""
        drivers = [driver for _, driver in self._drivers.values()]
        self._drivers.clear()
        await asyncio.gather(*(driver.close() for driver in drivers), return_exceptions=True)

    async def add(
        self, name: str, uri: str, peer_uri: str = "", migration_address: str = ""
    ) -> Host:
        """Remember a host, after talking to it once.

        :raise InvalidInput: a name or an address that cannot be one.
        :raise DuplicateName: the name is taken.
        :raise HostUnreachable: it does not answer; nothing is remembered.
        """
        host = Host(
            check_name(name),
            check_uri(uri, keys_dir=self._keys_dir),
            check_uri(peer_uri, "peer_uri", self._keys_dir) if peer_uri else "",
            check_address(migration_address),
            datetime.now(UTC),
        )
        if self._place is not None:
            machine = self._place.machine if host.names_no_machine else ""
            host = replace(host, owner=self._place.service, machine=machine)
        driver = self._factory(host)
        try:
            await driver.host_facts()
            added = await asyncio.to_thread(self._store.hosts.add, host)
        except BaseException:
            await driver.close()
            raise
        self._drivers[name] = (added, driver)
        self._driven |= {name}
        for tell in self._on_added:
            tell(name)
        await self._bus.tell(EventTopic.HOST, name, {"change": "added", "uri": uri})
        return added

    async def remove(self, name: str) -> None:
        """Forget a host. Its VMs, their history and the host itself are left alone.

        :raise Conflict: an application or migration on it is still open.
        """
        await asyncio.to_thread(self._store.hosts.remove, name)
        self._driven -= {name}
        for tell in self._on_removed:
            tell(name)
        if name in self._drivers:
            await self._drivers.pop(name)[1].close()
        await self._bus.tell(EventTopic.HOST, name, {"change": "removed"})

    async def get(self, name: str) -> Host:
        """:raise NotFound: no such host."""
        return await asyncio.to_thread(self._store.hosts.get, name)

    async def driver(self, name: str) -> Driver:
        """The host's driver, kept from call to call.

        :raise NotFound: no such host.
        """
        if name not in self._drivers:
            host = await self.get(name)
            self._check_here(host)
            check_uri(host.uri, keys_dir=self._keys_dir)  # it may be from before there were rules
            if name not in self._drivers:  # another task may have come first
                self._drivers[name] = (host, self._factory(host))
        return self._drivers[name][1]

    @asynccontextmanager
    async def driver_at(self, uri: str) -> AsyncIterator[Driver]:
        """A driver for an address: the host's that has it, or else one for the block alone, as of
        a host that was removed."""
        for host in await self.all():
            if host.uri == uri and self.means_here(host):
                yield await self.driver(host.name)
                return
        check_uri(uri, keys_dir=self._keys_dir)
        driver = self._factory(Host("", uri, "", "", datetime.now(UTC)))
        try:
            yield driver
        finally:
            await driver.close()

    def means_here(self, host: Host) -> bool:
        """Whether a host's address means the same here as where it was added."""
        return self._place is None or host.machine in ("", self._place.machine)

    def _check_here(self, host: Host) -> None:
        """:raise HostUnreachable: its address means another machine than this one."""
        if self._place is not None and not self.means_here(host):
            raise HostElsewhere(
                f"{host.uri} means the machine {host.machine}, and this service runs on "
                f"{self._place.machine}",
                field="host",
                remedy=f"ask the service {host.owner} there",
            )

    async def facts(self, name: str) -> HostFacts:
        """Probe a host; its peer URI and migration address are the operator's where given."""
        driver = await self.driver(name)
        facts = await driver.host_facts()
        host = self._drivers[name][0]
        return replace(
            facts,
            peer_uri=host.peer_uri or facts.peer_uri,
            migration_address=host.migration_address or facts.migration_address,
        )

    async def list_vms(
        self, host: str | None = None, among: Collection[str] | None = None
    ) -> VmListing:
        """Ask one host, or all at once. Those who ask while an answer is on its way share the
        next one.

        :param among: of all, only those of these names; None for all.

        :raise HostUnreachable: the one host that was named does not answer. Of all hosts,
            those that do not answer are told as problems.
        """
        only = None if among is None else frozenset(among)
        return await self._lists.ask((host, only), lambda: self._list(host, only))

    async def _list(self, host: str | None, among: frozenset[str] | None) -> VmListing:
        names = [host] if host else [h.name for h in await self.all()]
        if among is not None:
            names = [name for name in names if name in among]
        answers = await asyncio.gather(*map(self._ask, names), return_exceptions=True)
        listed: dict[str, list[VmSummary]] = {}
        problems: list[Problem] = []
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, list):
                listed[name] = answer
            elif isinstance(answer, VmtuneError) and host is None:
                problems += [replace(p, field=f"hosts.{name}") for p in answer.problems]
            else:
                raise answer
        labels = await asyncio.to_thread(self._remember, listed)
        seen = tuple(
            SeenVm(name, vm, labels.get(vm.uuid, {})) for name in listed for vm in listed[name]
        )
        return VmListing(seen, tuple(problems))

    async def ask_each(
        self, names: Collection[str]
    ) -> tuple[Mapping[str, Mapping[UUID, VmSummary]], Sequence[Problem]]:
        """What these hosts list right now, by UUID, and why some do not answer."""
        answers = await asyncio.gather(*map(self._ask, names), return_exceptions=True)
        listed: dict[str, Mapping[UUID, VmSummary]] = {}
        problems: list[Problem] = []
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, list):
                listed[name] = {vm.uuid: vm for vm in answer}
            elif isinstance(answer, VmtuneError):
                problems += [replace(p, field=f"hosts.{name}") for p in answer.problems]
            else:
                raise answer
        return listed, problems

    async def _ask(self, name: str) -> list[VmSummary]:
        driver = await self.driver(name)
        try:
            async with asyncio.timeout(_LIST_TIMEOUT_S):
                return list(await driver.list_vms())
        except TimeoutError:
            raise HostUnreachable(
                f"{name} did not answer within {_LIST_TIMEOUT_S:g} s",
                field="host",
                remedy="look at its libvirtd or its QEMU processes",
            ) from None

    async def all(self) -> list[Host]:
        """Every host, by name."""
        hosts: list[Host] = []
        after: str | None = None
        while True:
            page = await asyncio.to_thread(self._store.hosts.list, after, _PAGE)
            hosts += page.items
            if page.next is None:
                return hosts
            after = page.next

    def _remember(self, listed: Mapping[str, list[VmSummary]]) -> dict[UUID, Mapping[str, str]]:
        """Note what was seen where; the labels of all that is known on those hosts."""
        now = datetime.now(UTC)
        labels: dict[UUID, Mapping[str, str]] = {}
        known = self._store.vms.on_hosts(listed)
        runs = {vm.uuid for vms in listed.values() for vm in vms if vm.state is VmState.RUNNING}
        seen = {uuid for vms in known.values() for uuid in vms}
        for host, vms in listed.items():
            names = {vm.uuid: vm.name for vm in vms}
            passing = {
                vm.uuid
                for vm in vms
                if vm.state is VmState.INCOMING
                or (vm.state is not VmState.RUNNING and vm.uuid in runs)
            }
            told = {(vm.uuid, vm.name) for vm in known[host].values()}
            # Who lists VMs does not wait for those who write, where there is nothing new.
            if any(
                (uuid, name) not in told and not (uuid in passing and uuid in seen)
                for uuid, name in names.items()
            ):
                self._store.vms.remember_all(host, names, now, passing)
                known |= self._store.vms.on_hosts([host])
            labels |= {uuid: vm.labels for uuid, vm in known[host].items()}
        return labels

    async def locate(self, vm: UUID, host: str | None = None) -> tuple[str, Driver, VmFacts]:
        """The host where a VM runs, and its facts; where none runs it, one that defines it.

        :raise NotFound: no host that answers has it.
        :raise HostUnreachable: none has it, and some did not answer.
        """
        return await self._search(vm, host, lambda driver: driver.vm_facts(vm), _state_of)

    async def where(self, vm: UUID) -> str:
        """The host that :meth:`locate` finds, without probing the VM there: one call instead of
        dozens.

        :raise NotFound: no host that answers has it.
        :raise HostUnreachable: none has it, and some did not answer.
        """
        host, _, _ = await self._search(
            vm, None, lambda driver: driver.vm_state(vm), lambda state: state
        )
        return host

    async def _search(
        self,
        vm: UUID,
        host: str | None,
        ask: Callable[[Driver], Awaitable[_T]],
        state: Callable[[_T], VmState],
    ) -> tuple[str, Driver, _T]:
        """Ask hosts about a VM until one says that it runs there, first the one where it ran
        last. One that is paused may be what a migration has left behind: the hosts that it went
        between are asked too."""
        search = Search(self.driver, ask, state)
        found = await self._found(vm, host, search)
        if found is not None:
            self._last_host[vm] = found.host
        found = found or search.resting
        if found is not None:
            return found.host, found.driver, found.answer
        if search.silent is not None:
            raise search.silent
        raise NotFound(
            f"no VM {vm} on {host or 'any host'}",
            field="vm",
            remedy="`vmtune vm list` shows the VMs of all hosts",
        )

    async def _found(self, vm: UUID, host: str | None, search: Search[_T]) -> Found[_T] | None:
        """Where it runs, else where it is paused."""
        if host is not None:
            return await search.among([host]) or search.paused
        last = self._last_host.get(vm) or await asyncio.to_thread(self._seen_on, vm)
        if last is not None:  # else a fleet is asked host by host
            found = await search.among([last])
            if found is not None:
                return found
        if search.paused is not None:
            names = await asyncio.to_thread(self._went_between, vm)
        else:
            names = [known.name for known in await self.all()]
        return await search.among(name for name in names if name != last) or search.paused

    async def find_other(self, record: Migration) -> str:
        """The host, other than its source, where a migration's VM arrives or runs; empty where
        no host that answers soon has it."""
        others = [h.name for h in await self.all() if h.name != record.source]
        states = await asyncio.gather(*(self._state_on(name, record.vm) for name in others))
        found = dict(zip(others, states, strict=True))
        for wanted in (VmState.INCOMING, *_PRESENT):
            for name, state in found.items():
                if state is wanted:
                    return name
        return ""

    async def _state_on(self, host: str, vm: UUID) -> VmState | None:
        """What the VM is doing there; None where it is not there, or the host is silent."""
        try:
            async with asyncio.timeout(_FIND_TIMEOUT_S):
                return await (await self.driver(host)).vm_state(vm)
        except (VmtuneError, TimeoutError):
            return None

    def _seen_on(self, vm: UUID) -> str | None:
        """The host where the VM was listed last; None where it never was."""
        try:
            return self._store.vms.get(vm).host
        except NotFound:
            return None

    def _went_between(self, vm: UUID) -> list[str]:
        """The hosts of a VM's newest migration."""
        newest = self._store.migrations.list(vm=vm, limit=1).items
        return [host for each in newest for host in (each.source, each.destination) if host]

    async def label(self, vm: UUID, labels: Mapping[str, str]) -> Vm:
        """Replace a VM's labels.

        :raise NotFound: the VM was never seen.
        :raise InvalidInput: a key or value that cannot be a label.
        """
        checked = check_labels(labels)
        known = await asyncio.to_thread(self._store.vms.set_labels, vm, checked)
        await self._bus.tell(EventTopic.VM, vm, {"change": "labels", "labels": checked})
        return known


def _state_of(facts: VmFacts) -> VmState:
    return facts.state
