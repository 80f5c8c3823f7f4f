"""The VMs of all hosts: as the hosts list them right now, and where each one runs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TypeVar
from uuid import UUID

from vmtune.errors import HostUnreachable, NotFound, Problem, VmtuneError
from vmtune.hypervisor.asking import once_asked
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import HostFacts, VmFacts, VmState, VmSummary
from vmtune.model.host.inventory import EventTopic, Vm
from vmtune.model.migration.record import Migration
from vmtune.model.profile import check_labels
from vmtune.services.coalescing import Coalescer
from vmtune.services.events import EventBus
from vmtune.services.hosts.connections import DriverFactory, HostConnections, ServiceIdentity
from vmtune.services.hosts.search import Located, Search
from vmtune.storage import Store

_T = TypeVar("_T")
_LIST_TIMEOUT_S = 10.0
_FIND_TIMEOUT_S = 2.0
_MAX_REMEMBERED = 100_000
"""Twice what the largest installation that is computed for has; what is forgotten is looked up."""
_PRESENT = (VmState.RUNNING, VmState.PAUSED)


@dataclass(frozen=True, slots=True)
class SeenVm:
    """A VM as its host lists it right now; of an unknown state where the host does not answer, and
    as it was seen last."""

    host: str
    summary: VmSummary
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class VmListing:
    """The VMs of the hosts that answered, and why others did not."""

    vms: tuple[SeenVm, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Listed:
    """What a host has listed.

    :param begun_at_s: when it was asked, and *published* how many events there were by then.
    """

    begun_at_s: float
    published: int
    vms: Mapping[UUID, VmSummary]


class HostService(HostConnections):
    """Lists and finds the VMs of all hosts, and keeps the connections."""

    def __init__(
        self,
        store: Store,
        bus: EventBus,
        factory: DriverFactory,
        identity: ServiceIdentity | None = None,
        keys_dir: PurePath | None = None,
    ) -> None:
        super().__init__(store, bus, factory, identity, keys_dir)
        self._last_host: dict[UUID, str] = {}
        self._lists = Coalescer[VmListing]()
        self._listed: dict[str, _Listed] = {}

    async def list_vms(
        self,
        host: str | None = None,
        among: Collection[str] | None = None,
        max_age_s: float = 0.0,
    ) -> VmListing:
        """List the VMs of one host, or of all at once. Equal requests are coalesced.

        :param among: of all, only those of these names; None for all.
        :param max_age_s: how old a host's list may be, if no event has been published since.

        :raise HostUnreachable: the one host that was named does not answer. Of all hosts,
            those that do not answer are listed as problems.
        """
        only = None if among is None else frozenset(among)
        return await self._lists.run(
            (host, only, max_age_s), lambda: self._list(host, only, max_age_s)
        )

    async def _list(
        self, host: str | None, among: frozenset[str] | None, max_age_s: float
    ) -> VmListing:
        problems: Sequence[Problem] = ()
        if host is not None:
            listed: Mapping[str, Mapping[UUID, VmSummary]] = {
                host: await self._ask(host, max_age_s)
            }
        else:
            names = [known.name for known in await self.all()]
            if among is not None:
                names = [name for name in names if name in among]
            listed, problems = await self.ask_each(names, max_age_s)
        labels = await asyncio.to_thread(self._remember, listed)
        seen = tuple(
            SeenVm(name, vm, labels.get(uuid, {}))
            for name in listed
            for uuid, vm in listed[name].items()
        )
        return VmListing(seen, tuple(problems))

    async def ask_each(
        self, names: Collection[str], max_age_s: float = 0.0
    ) -> tuple[Mapping[str, Mapping[UUID, VmSummary]], Sequence[Problem]]:
        """The VMs that these hosts list, and why some hosts do not answer."""
        asked = (self._ask(name, max_age_s) for name in names)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        listed: dict[str, Mapping[UUID, VmSummary]] = {}
        problems: list[Problem] = []
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, VmtuneError):
                problems += [replace(p, field=f"hosts.{name}") for p in answer.problems]
            elif isinstance(answer, BaseException):
                raise answer
            else:
                listed[name] = answer
        return listed, problems

    async def last_seen(self, hosts: Collection[str]) -> Sequence[SeenVm]:
        """The VMs that were seen last on these hosts, which do not answer now."""
        known = await asyncio.to_thread(self._store.vms.on_hosts, hosts)
        return [as_last_seen(vm) for vms in known.values() for vm in vms.values()]

    async def _ask(self, name: str, max_age_s: float) -> Mapping[UUID, VmSummary]:
        known, now = self._listed.get(name), time.monotonic()
        published = self._bus.published
        if (
            known is not None
            and now - known.begun_at_s < max_age_s
            and known.published == published
        ):
            return known.vms
        self._listed.pop(name, None)
        async with self.noting(name):
            vms = await self._vms_of(name)
        self._listed[name] = _Listed(now, published, vms)
        return vms

    async def _vms_of(self, name: str) -> dict[UUID, VmSummary]:
        driver = await self.driver(name)
        try:
            async with asyncio.timeout(_LIST_TIMEOUT_S):
                return {vm.uuid: vm for vm in await driver.list_vms()}
        except TimeoutError:
            raise HostUnreachable(
                f"{name} did not answer within {_LIST_TIMEOUT_S:g} s",
                field="host",
                remedy="check its libvirtd or its QEMU processes",
            ) from None

    def _remember(
        self, listed: Mapping[str, Mapping[UUID, VmSummary]]
    ) -> dict[UUID, Mapping[str, str]]:
        """Store which VM was seen where; return the labels of all that are known there."""
        now = datetime.now(UTC)
        labels: dict[UUID, Mapping[str, str]] = {}
        known = self._store.vms.on_hosts(listed)
        running = {
            uuid for vms in listed.values() for uuid in vms if vms[uuid].state is VmState.RUNNING
        }
        seen = {uuid for vms in known.values() for uuid in vms}
        for host, vms in listed.items():
            names = {uuid: vm.name for uuid, vm in vms.items()}
            passing = {
                uuid
                for uuid, vm in vms.items()
                if vm.state is VmState.INCOMING
                or (vm.state is not VmState.RUNNING and uuid in running)
            }
            stored = {(vm.uuid, vm.name) for vm in known[host].values()}
            # A listing does not wait for writers if it has nothing new to store.
            if any(
                (uuid, name) not in stored and not (uuid in passing and uuid in seen)
                for uuid, name in names.items()
            ):
                self._store.vms.remember_all(host, names, now, passing)
                known |= self._store.vms.on_hosts([host])
            labels |= {uuid: vm.labels for uuid, vm in known[host].items()}
        return labels

    def _note_found(self, host: str, vm: VmFacts) -> None:
        """Store that a VM was seen on a host, where that is news."""
        try:
            known: Vm | None = self._store.vms.get(vm.uuid)
        except NotFound:
            known = None
        passing = () if vm.state is VmState.RUNNING else {vm.uuid}
        if known is not None and (passing or (known.host, known.name) == (host, vm.name)):
            return
        with contextlib.suppress(NotFound):  # the host was removed meanwhile
            self._store.vms.remember_all(host, {vm.uuid: vm.name}, datetime.now(UTC), passing)

    async def locate(self, vm: UUID, host: str | None = None) -> tuple[str, Driver, VmFacts]:
        """The host where a VM runs, and its facts; where none runs it, one that defines it.

        :raise NotFound: no host that answers has it.
        :raise HostUnreachable: none has it, and some did not answer.
        """
        return await self._search(vm, host, lambda driver: driver.vm_facts(vm), _state_of)

    async def locate_with_host(self, vm: UUID) -> tuple[str, Driver, VmFacts, HostFacts]:
        """As :meth:`locate`, with the host's facts. The host where the VM ran last is probed
        meanwhile. What is found is known from now on, as what was listed is.

        :raise NotFound: no host that answers has it.
        :raise HostUnreachable: none has it, and some did not answer; or its host does not answer.
        """
        last = self._last_host.get(vm)
        locating = asyncio.ensure_future(self.locate(vm))
        probing: asyncio.Future[HostFacts] | None = None
        if last is not None:
            probing = asyncio.ensure_future(once_asked(lambda: self.facts(last)))
        try:
            name, driver, facts = await locating
            await asyncio.to_thread(self._note_found, name, facts)
            if probing is not None and name == last:
                return name, driver, facts, await probing
        finally:
            if probing is not None:
                # Of a host where the VM is not, whether it answers does not matter here.
                await asyncio.gather(probing, return_exceptions=True)
        return name, driver, facts, await self.facts(name)

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
            self._last_host.pop(vm, None)
            self._last_host[vm] = found.host
            if len(self._last_host) > _MAX_REMEMBERED:
                del self._last_host[next(iter(self._last_host))]
        found = found or search.resting
        if found is not None:
            return found.host, found.driver, found.answer
        if search.silent is not None:
            raise await self.silence_of(*search.silent) from search.silent[1]
        raise NotFound(
            f"no VM {vm} on {host or 'any host'}",
            field="vm",
            remedy="`vmtune vm list` shows the VMs of all hosts",
        )

    async def _found(self, vm: UUID, host: str | None, search: Search[_T]) -> Located[_T] | None:
        """Where it runs, else where it is paused."""
        if host is not None:
            return await search.among([host]) or search.paused
        last = self._last_host.get(vm) or await asyncio.to_thread(self._last_seen_on, vm)
        if last is not None:  # else a fleet is asked host by host
            found = await search.among([last])
            if found is not None:
                return found
        if search.paused is not None:
            names = await asyncio.to_thread(self._migrated_between, vm)
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

    def _last_seen_on(self, vm: UUID) -> str | None:
        """The host where the VM was listed last; None where it never was."""
        try:
            return self._store.vms.get(vm).host
        except NotFound:
            return None

    def _migrated_between(self, vm: UUID) -> list[str]:
        """The hosts of a VM's newest migration."""
        newest = self._store.migrations.list(vm=vm, limit=1).items
        return [host for each in newest for host in (each.source, each.destination) if host]

    async def label(self, vm: UUID, labels: Mapping[str, str]) -> Vm:
        """Replace a VM's labels. One that was never listed is looked for on the hosts.

        :raise NotFound: no host that answers has it.
        :raise HostUnreachable: none has it, and some did not answer.
        :raise InvalidInput: a key or value that cannot be a label.
        """
        checked = check_labels(labels)
        try:
            known = await asyncio.to_thread(self._store.vms.set_labels, vm, checked)
        except NotFound:
            await self.list_vms(await self.where(vm))
            known = await asyncio.to_thread(self._store.vms.set_labels, vm, checked)
        await self._bus.publish(EventTopic.VM, vm, {"change": "labels", "labels": checked})
        return known


def as_last_seen(vm: Vm) -> SeenVm:
    """A VM whose host does not answer."""
    return SeenVm(vm.host, VmSummary(vm.uuid, vm.name, VmState.UNKNOWN), vm.labels)


def _state_of(facts: VmFacts) -> VmState:
    return facts.state
