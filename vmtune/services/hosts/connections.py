"""Hosts: added, removed, and one connection to each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath

from vmtune.errors import HostUnreachable, InvalidInput
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import HostFacts
from vmtune.model.host.inventory import EventTopic, Host
from vmtune.model.host.network import check_network
from vmtune.model.host.uri import check_address, check_uri
from vmtune.model.profile import check_name
from vmtune.model.tunables.rows.network import NETWORK_NAMES
from vmtune.services.events import EventBus
from vmtune.services.hosts.contacts import Contacts
from vmtune.storage import Store

DriverFactory = Callable[[Host], Driver]
OnHost = Callable[[str], None]
_PAGE = 200


@dataclass(frozen=True, slots=True)
class ServiceIdentity:
    """This service's name and its machine, where several services share the hosts."""

    service: str
    machine: str


class HostElsewhere(HostUnreachable):
    """Another service reaches the host, and this one does not."""

    code = "host_elsewhere"


class HostConnections:
    """The hosts, and one driver for each.

    :param identity: None where this service manages every host.
    :param keys_dir: below which addresses of hosts may name files of keys; None for nowhere.
    """

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        factory: DriverFactory,
        identity: ServiceIdentity | None = None,
        keys_dir: PurePath | None = None,
    ) -> None:
        self._keys_dir = keys_dir
        self._identity = identity
        self._driven: frozenset[str] = frozenset()
        self._store = store
        self._bus = bus
        self._factory = factory
        self._drivers: dict[str, tuple[Host, Driver]] = {}
        self.contacts = Contacts(bus)
        self._on_added: list[OnHost] = []
        self._on_removed: list[OnHost] = []

    def follow(self, added: OnHost, removed: OnHost) -> None:
        """Call *added* and *removed* for each host, by its name, from now on."""
        self._on_added.append(added)
        self._on_removed.append(removed)

    def drives(self, host: str) -> bool:
        """Whether this service manages a host."""
        return self._identity is None or host in self._driven

    def drive(self, hosts: Collection[str]) -> None:
        """Manage exactly these hosts from now on; notify watchers."""
        before, self._driven = self._driven, frozenset(hosts)
        for name in self._driven - before:
            for notify in self._on_added:
                notify(name)
        for name in before - self._driven:
            for notify in self._on_removed:
                notify(name)

    async def forget_driver(self, name: str) -> None:
        """Close the host's driver; the next call connects again."""
        known = self._drivers.pop(name, None)
        if known is not None:
            await known[1].close()

    async def close(self) -> None:
        """Close all connections."""
        drivers = [driver for _, driver in self._drivers.values()]
        self._drivers.clear()
        await asyncio.gather(*(driver.close() for driver in drivers), return_exceptions=True)

    async def add(
        self,
        name: str,
        uri: str,
        peer_uri: str = "",
        migration_address: str = "",
        network: Mapping[str, str] | None = None,
    ) -> Host:
        """Add a host, after contacting it once.

        :param network: addresses of its migration network, by the tunables' names.

        :raise InvalidInput: an invalid name or address.
        :raise DuplicateName: the name is taken.
        :raise HostUnreachable: it does not answer; it is not added.
        """
        host = Host(
            check_name(name),
            check_uri(uri, keys_dir=self._keys_dir),
            check_uri(peer_uri, "peer_uri", self._keys_dir) if peer_uri else "",
            check_address(migration_address),
            datetime.now(UTC),
        )
        host = host.on_network(check_network(network or {}, host.connection))
        if self._identity is not None:
            machine = self._identity.machine if host.names_no_machine else ""
            host = replace(host, owner=self._identity.service, machine=machine)
        driver = self._factory(host)
        try:
            await driver.host_facts()
            added = await asyncio.to_thread(self._store.hosts.add, host)
        except BaseException:
            await driver.close()
            raise
        self._drivers[name] = (added, driver)
        self._driven |= {name}
        for notify in self._on_added:
            notify(name)
        await self._bus.publish(EventTopic.HOST, name, {"change": "added", "uri": uri})
        return added

    async def change_network(self, name: str, network: Mapping[str, str]) -> Host:
        """Change addresses of a host's migration network; those that are not named stay. Migrations
        that have been requested keep theirs.

        :param network: by the tunables' names; an empty one is unset.
        :raise NotFound: no such host.
        :raise InvalidInput: an address that cannot be, or none at all.
        """
        if not network:
            raise InvalidInput(
                "no change is given",
                field="migrate_uri",
                remedy=f"name at least one of {', '.join(NETWORK_NAMES)}",
            )
        host = await self.get(name)
        accepted = check_network(network, host.connection)
        changed = await asyncio.to_thread(self._store.hosts.update, name, network=accepted)
        await self._bus.publish(EventTopic.HOST, name, {"change": "network"})
        return changed

    async def set_maintenance(self, name: str, on: bool) -> Host:
        """Begin a host's maintenance, or end it.

        :raise NotFound: no such host.
        """
        changed = await asyncio.to_thread(self._store.hosts.set_maintenance, name, on)
        await self._bus.publish(EventTopic.HOST, name, {"change": "maintenance", "on": on})
        return changed

    async def remove(self, name: str) -> None:
        """Forget a host. Its VMs, their history and the host itself are left alone.

        :raise Conflict: an application or migration on it is still open.
        """
        await asyncio.to_thread(self._store.hosts.remove, name)
        self._driven -= {name}
        for notify in self._on_removed:
            notify(name)
        self.contacts.forget(name)
        if name in self._drivers:
            await self._drivers.pop(name)[1].close()
        await self._bus.publish(EventTopic.HOST, name, {"change": "removed"})

    async def get(self, name: str) -> Host:
        """:raise NotFound: no such host."""
        return await asyncio.to_thread(self._store.hosts.get, name)

    async def driver(self, name: str) -> Driver:
        """The host's driver, kept from call to call.

        :raise NotFound: no such host.
        """
        if name not in self._drivers:
            host = await self.get(name)
            self._check_reachable_here(host)
            check_uri(host.uri, keys_dir=self._keys_dir)  # it may be from before there were rules
            if name not in self._drivers:  # another task may have come first
                self._drivers[name] = (host, self._factory(host))
        return self._drivers[name][1]

    @asynccontextmanager
    async def driver_at(self, uri: str) -> AsyncIterator[Driver]:
        """A driver for an address: the host's that has it, or else one for the block alone, as of
        a host that was removed."""
        for host in await self.all():
            if host.uri == uri and self.is_reachable_here(host):
                yield await self.driver(host.name)
                return
        check_uri(uri, keys_dir=self._keys_dir)
        driver = self._factory(Host("", uri, "", "", datetime.now(UTC)))
        try:
            yield driver
        finally:
            await driver.close()

    def is_reachable_here(self, host: Host) -> bool:
        """Whether a host's address means the same here as where it was added."""
        return self._identity is None or host.machine in ("", self._identity.machine)

    def _check_reachable_here(self, host: Host) -> None:
        """:raise HostUnreachable: its address means another machine than this one."""
        if self._identity is not None and not self.is_reachable_here(host):
            raise HostElsewhere(
                f"{host.uri} means the machine {host.machine}, and this service runs on "
                f"{self._identity.machine}",
                field="host",
                remedy=f"ask the service {host.owner} there",
            )

    async def probe(self, name: str) -> HostFacts:
        """A host's facts by a connection of its own, closed afterwards: the way there and the
        authentication are tried anew.

        :raise HostUnreachable: it does not answer.
        """
        host = await self.get(name)
        self._check_reachable_here(host)
        return await self._probe(host)

    async def probe_uri(self, uri: str) -> HostFacts:
        """The facts of who answers at a URI, by a connection of its own, closed afterwards.

        :raise InvalidInput: the URI names what vmtune may not pass on.
        :raise HostUnreachable: nobody answers.
        """
        return await self._probe(Host("", uri, "", "", datetime.now(UTC)))

    async def _probe(self, host: Host) -> HostFacts:
        check_uri(host.uri, keys_dir=self._keys_dir)
        driver = self._factory(host)
        try:
            return await driver.host_facts()
        finally:
            await driver.close()

    async def facts(self, name: str) -> HostFacts:
        """Probe a host; its peer URI and migration address are the operator's where given."""
        async with self.noting(name):
            driver = await self.driver(name)
            facts = await driver.host_facts()
        host = self._drivers[name][0]
        facts = replace(
            facts,
            peer_uri=host.peer_uri or facts.peer_uri,
            migration_address=host.migration_address or facts.migration_address,
        )
        await self.contacts.answered(name, facts)
        return facts

    def is_this_machine(self, name: str) -> bool:
        """Whether the address of a connected host means this machine, such as
        ``qemu:///system``."""
        known = self._drivers.get(name)
        return known is not None and known[0].names_no_machine

    @asynccontextmanager
    async def noting(self, name: str) -> AsyncIterator[None]:
        """Notes whether a host answers what it is asked in the block."""
        try:
            yield
        except HostUnreachable as error:
            await self.contacts.silent(name, error.problems[0])
            raise
        await self.contacts.answered(name)

    async def silence_of(self, name: str, error: HostUnreachable) -> HostUnreachable:
        """*error* for who asked for a VM: which host does not answer, since when and why, and what
        to do."""
        if isinstance(error, HostElsewhere):
            return error  # it says all that
        why = error.problems[0]
        await self.contacts.silent(name, why)
        since = self.contacts.of(name).silent_since
        when = f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since else ""
        check = f"`vmtune host check {name}` shows which step fails"
        remedy = f"{why.remedy}; {check}" if why.remedy else check
        message = f"{name} does not answer{when}: {why.message}"
        return HostUnreachable(message, field="host", remedy=remedy)

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
