"""Limits of this machine: raised on request, and restored when no request is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

import structlog

from vmtune.errors import CommandRefused, Forbidden, NotFound, Problem, VmtuneError
from vmtune.model.host.facts import HostFacts, VmFacts, VmState
from vmtune.model.host.inventory import EventTopic
from vmtune.model.host.limits import OPERATOR, SYSCTLS, Claims, Entry, Floor, Wish, check_limit
from vmtune.model.host.pools import headroom
from vmtune.services.events import EventBus
from vmtune.services.hosts.hosts import HostService

log = structlog.get_logger(__name__)

MAPS, OPTMEM = "vm_max_map_count", "net_core_optmem_max_bytes"
_OPTMEM_NEEDED_BYTES = 131072
_PRESENT = (VmState.RUNNING, VmState.PAUSED)


class Writer(Protocol):
    """Sets limits to what is requested. Its methods block."""

    def live(self) -> Mapping[str, int]:
        """Each limit's value right now."""

    def journal(self) -> Mapping[str, Entry]:
        """What was changed and not yet restored."""

    def reach(self, wishes: Mapping[str, Wish]) -> None:
        """Set every limit to what is requested. Idempotent.

        :raise CommandRefused: the host refuses it, or nobody may write it.
        """


class WishFile(Protocol):
    """Stores requests, so that they outlive the service. Its methods block."""

    def read(self) -> dict[str, Wish]:
        """The stored requests."""

    def write(self, wishes: Mapping[str, Wish]) -> None:
        """Store them."""


@dataclass(frozen=True, slots=True)
class LimitState:
    """One limit, and why it has its value.
    :param before: restored when no request is left; None where vmtune has not changed it.
    :param held: why it is above what is requested; empty where it is not.
    """

    tunable: str
    sysctl: str
    value: int | None
    before: int | None
    claims: Claims
    held: str


class HostLimits:
    """Raises the limits of the machine that the service runs on.

    :param allowed: the operator allows host changes. What was changed before is restored also if
        they are no longer allowed.
    """

    def __init__(
        self, hosts: HostService, bus: EventBus, writer: Writer, file: WishFile, allowed: bool
    ) -> None:
        self._hosts = hosts
        self._bus = bus
        self._writer = writer
        self._file = file
        self._allowed = allowed
        self._turn = asyncio.Lock()
        self._settled = False

    async def state(self, host: str) -> list[LimitState]:
        """Every limit of a host, as it is and why.

        :raise NotFound: no such host.
        :raise Forbidden: it is another machine.
        """
        await self._check_here(host)
        wishes = await asyncio.to_thread(self._file.read)
        live = await asyncio.to_thread(self._writer.live)
        journal = await asyncio.to_thread(self._writer.journal)
        return [
            _state(name, live.get(name), journal.get(name), wishes.get(name, Wish()))
            for name in SYSCTLS
        ]

    async def set_by_hand(self, host: str, values: Mapping[str, object]) -> list[LimitState]:
        """Raise limits until :meth:`restore`. A higher limit is not changed.

        :raise InvalidInput: no such limit, or out of bounds; nothing is changed.
        :raise Forbidden: host changes are not allowed, or it is another machine.
        :raise CommandRefused: it could not be set; the change is undone.
        """
        await self._check_here(host)
        await self.claim(OPERATOR, {n: check_limit(n, v) for n, v in values.items()})
        return await self.state(host)

    async def restore(self, host: str) -> list[LimitState]:
        """Restore everything, for all requesters; but not below what running VMs need."""
        await self._check_here(host)
        await self._change(lambda wishes: {name: Wish() for name in wishes})
        return await self.state(host)

    async def claim(self, owner: str, values: Mapping[str, int]) -> None:
        """Keep limits at *values* or more until *owner* releases them.

        :raise Forbidden: host changes are not allowed.
        :raise CommandRefused: a limit could not be set; the change is undone.
        """
        if not values:
            return
        if not self._allowed:
            raise Forbidden(
                "vmtune was not allowed to change hosts",
                field="host",
                code="host_changes_not_allowed",
                remedy="set host_changes = true in the service's settings",
            )

        def add(wishes: Mapping[str, Wish]) -> dict[str, Wish]:
            more = {n: wishes.get(n, Wish()).with_claim(owner, v) for n, v in values.items()}
            return {**wishes, **more}

        await self._change(add)

    async def release(self, owner: str) -> None:
        """Release what *owner* requested. Idempotent.
        :raise CommandRefused: a limit could not be restored; a retry may succeed.
        """

        def drop(wishes: Mapping[str, Wish]) -> dict[str, Wish]:
            return {name: wish.without(owner) for name, wish in wishes.items()}

        await self._change(drop)

    async def settle(self) -> None:
        """Complete interrupted changes, once after a start; and restore what no running VM needs
        any more. What others set meanwhile is not changed."""
        wishes = await asyncio.to_thread(self._file.read)
        journal = await asyncio.to_thread(self._writer.journal)
        held = any(not wishes.get(n, Wish()).claims for n in journal)
        if held or any(wish.floor for wish in wishes.values()) or (wishes and not self._settled):
            await self._change(dict)
        self._settled = True

    async def _change(self, change: Callable[[Mapping[str, Wish]], Mapping[str, Wish]]) -> None:
        # To its end even when the caller goes away in the middle.
        await asyncio.shield(asyncio.ensure_future(self._do_change(change)))

    async def _do_change(self, change: Callable[[Mapping[str, Wish]], Mapping[str, Wish]]) -> None:
        async with self._turn:
            before = await asyncio.to_thread(self._file.read)
            journal = await asyncio.to_thread(self._writer.journal)
            live = await asyncio.to_thread(self._writer.live)
            changed = change(before)
            wishes = {name: replace(changed.get(name, Wish()), floor=None)
                      for name in SYSCTLS if name in changed or name in journal}  # fmt: skip
            lowered = [n for n, w in wishes.items() if n in journal and (w.asked or 0) < live[n]]
            needs = await self._needs(live) if lowered else {}
            for name in lowered:
                goal = max(wishes[name].asked or 0, journal[name].before)
                if name in needs and needs[name].value > goal:
                    wishes[name] = replace(wishes[name], floor=needs[name])
            wanted = {name: wish for name, wish in wishes.items() if wish.claims or wish.floor}
            if wanted != before:
                await asyncio.to_thread(self._file.write, wanted)
            try:
                await asyncio.to_thread(self._writer.reach, wishes)
            except VmtuneError:
                await self._take_back(before)
                raise
        now = await asyncio.to_thread(self._writer.live)
        if now != live:
            log.info("limits of this machine changed", before=dict(live), now=dict(now))
            await self._bus.publish(EventTopic.HOST, "", {"change": "limits", "limits": dict(now)})

    async def _take_back(self, wishes: Mapping[str, Wish]) -> None:
        """Undo a change that could not be completed."""
        try:
            await asyncio.to_thread(self._file.write, wishes)
            await asyncio.to_thread(self._writer.reach, wishes)
        except VmtuneError as error:
            log.warning("a limit of this machine is not restored yet", reason=str(error))

    async def _needs(self, live: Mapping[str, int]) -> dict[str, Floor]:
        """What the VMs that run on this machine need. Where a host does not answer, everything
        that there is."""
        floors: dict[str, Floor] = {}
        for host in await self._hosts.all():
            if not is_local(host.uri) or not self._hosts.is_reachable_here(host):
                continue
            try:
                if not (await self._hosts.facts(host.name)).local:
                    continue
                vms = await self._running(host.name)
            except VmtuneError as error:
                why = f"{host.name} does not answer: {error.message}"
                return {limit: Floor(value, why) for limit, value in live.items()}
            for vm in vms:
                for limit, value in _needs_of(vm, live.get(MAPS)):
                    if limit not in floors or floors[limit].value < value:
                        floors[limit] = Floor(value, f"the VM {vm.name} needs it")
        return floors

    async def _running(self, host: str) -> list[VmFacts]:
        driver = await self._hosts.driver(host)
        found: list[VmFacts] = []
        for vm in await driver.list_vms():
            if vm.state in _PRESENT:
                try:
                    found.append(await driver.vm_facts(vm.uuid))
                except NotFound:
                    continue  # it has just ended
                except CommandRefused:
                    continue  # likewise
        return found

    async def _check_here(self, host: str) -> None:
        facts: HostFacts = await self._hosts.facts(host)
        if not facts.local:
            raise Forbidden(
                f"{host} is another machine",
                field="host",
                code="host_elsewhere",
                remedy="ask the vmtune that runs there, with --url",
            )


def is_local(uri: str) -> bool:
    """Whether a host's address names no other machine."""
    return not urlsplit(uri).hostname


def _needs_of(vm: VmFacts, limit: int | None) -> Sequence[tuple[str, int]]:
    found = headroom(vm, limit)
    needs = [(MAPS, max(found.max_maps, found.maps.total if found.maps else 0))]
    if vm.capabilities.get("zero-copy-send"):
        needs.append((OPTMEM, _OPTMEM_NEEDED_BYTES))
    return needs


def _state(name: str, value: int | None, entry: Entry | None, wish: Wish) -> LimitState:
    held = ""
    asked = max(wish.asked or 0, entry.before if entry else 0)
    if wish.floor is not None and entry is not None and value is not None and value > asked:
        held = wish.floor.why
    return LimitState(
        name, SYSCTLS[name].name, value, entry.before if entry else None, wish.claims, held
    )


def as_problem(state: LimitState) -> Problem:
    """Why a limit has not come back, as people read it in a record."""
    others = len(state.claims)
    why = state.held or f"{others} other{'' if others == 1 else 's'} requested it"
    return Problem(f"values.{state.tunable}", "held", why, "`vmtune host limits` shows who")
