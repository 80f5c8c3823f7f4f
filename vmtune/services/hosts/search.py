"""Asking hosts for a VM, until one says that it runs there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from vmtune.errors import HostUnreachable, NotFound
from vmtune.hypervisor.protocol import Driver
from vmtune.model.host.facts import VmState

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Located(Generic[_T]):
    """A host that has the VM, and its state there."""

    host: str
    driver: Driver
    answer: _T


@dataclass(slots=True)
class Search(Generic[_T]):
    """A search for one VM.

    :param driver: of a host.
    :param ask: what to ask it; it raises NotFound where it does not have the VM.
    :param state: the VM's state in an answer.
    :param silent: the first host that did not answer, and its error.
    """

    driver: Callable[[str], Awaitable[Driver]]
    ask: Callable[[Driver], Awaitable[_T]]
    state: Callable[[_T], VmState]
    paused: Located[_T] | None = field(default=None, init=False)
    resting: Located[_T] | None = field(default=None, init=False)
    silent: tuple[str, HostUnreachable] | None = field(default=None, init=False)

    async def among(self, hosts: Iterable[str]) -> Located[_T] | None:
        """The host of these on which it runs; None if it runs on none that answers. Records the
        first host that has it in another state, and the first error."""
        for host in hosts:
            try:
                driver = await self.driver(host)
                found = Located(host, driver, await self.ask(driver))
            except NotFound:
                continue
            except HostUnreachable as error:
                self.silent = self.silent or (host, error)
                continue
            state = self.state(found.answer)
            if state is VmState.RUNNING:
                return found
            if state is VmState.PAUSED:
                self.paused = self.paused or found
            else:
                self.resting = self.resting or found
        return None
