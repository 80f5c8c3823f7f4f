"""What a run needs of where it runs: two hosts, a VM on the first, and what observes it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import UUID

from vmtune.bench.migration.guest_listener import GuestListener
from vmtune.bench.migration.send_counters import SendCounters
from vmtune.bench.model.runs.run import HostSide
from vmtune.hypervisor.protocol import Driver

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two hosts.

    :param name: as plans and messages call it.
    """

    name: str
    driver: Driver


class Stage(Protocol):
    """A VM that runs on a source, and a destination that waits for it.

    Made by an async context manager, which starts it and takes it down.
    """

    @property
    def vm(self) -> UUID:
        """The VM's UUID, on both sides."""

    @property
    def kvm(self) -> bool:
        """Whether it runs by KVM, else by TCG."""

    @property
    def source(self) -> Side:
        """Where the VM runs."""

    @property
    def destination(self) -> Side:
        """Where it is to go."""

    @property
    def listener(self) -> GuestListener:
        """Listens to the guest, on whichever side it is."""

    @property
    def sends(self) -> SendCounters:
        """The source's counters of sends."""

    def pid(self, side: HostSide) -> int | None:
        """The process of that side's QEMU; None where there is none (yet)."""

    def last_words(self, side: HostSide) -> str:
        """How that side's QEMU has ended, and what it complained of last; empty where it has not
        ended and has not complained."""

    async def trace_full_rings(self, on: bool) -> None:
        """Have the source's QEMU trace each exit for a full dirty ring, or no longer.

        :raise VmtuneError: it does not take the command.
        """

    async def full_rings(self) -> int:
        """How many such exits were traced so far."""


async def finish(work: Coroutine[Any, Any, _T]) -> _T:  # any: as asyncio types coroutines
    """Do *work* to its end also when the task is cancelled meanwhile, which it is afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # it is known, and gives way to the cancellation
        raise cancelled
    return task.result()
