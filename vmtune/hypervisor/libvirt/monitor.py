"""A QEMU's monitor, which libvirt holds and lends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import nullcontext
from typing import Any, TypeVar
from uuid import UUID

from vmtune import tracing
from vmtune.errors import CommandRefused, OutcomeUnknown
from vmtune.hypervisor.guard import ASKS
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.calls.domain import Domain
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.libvirt.errors import OPERATION_INVALID, LibvirtRefused
from vmtune.hypervisor.qemu.allowlist import check

_T = TypeVar("_T")

NOT_RUNNING = "vm_not_running"
"""Code of the refusal when the VM has no QEMU."""


class LibvirtMonitor:
    """A :class:`~vmtune.hypervisor.qemu.monitor.Monitor` over virDomainQemuMonitorCommand.

    Commands of one VM go one after the other, so that they reach QEMU in the order in which
    they were made, and so that a VM that does not answer holds one thread and no more. Using
    it marks the guest as tainted (``custom-monitor``).

    :param more_commands: see :func:`vmtune.hypervisor.qemu.allowlist.check`.
    """

    def __init__(self, link: Link, vm: UUID, more_commands: Collection[str] = ()) -> None:
        self._link = link
        self._vm = vm
        self._more_commands = more_commands
        self._turn = asyncio.Lock()
        self._known: tuple[Connection, Domain] | None = None

    async def execute(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,  # any JSON
    ) -> Any:  # any JSON: the reply's "return"
        """Run one command and return its result.

        :raise CommandRefused: QEMU's or libvirt's own error text; code ``vm_not_running``
            where there is no QEMU; or vmtune does not send such a command.
        :raise NotFound: the host does not have the VM.
        :raise HostUnreachable: no connection.
        :raise OutcomeUnknown: the connection or QEMU was lost before the reply came.
        """
        check(command, arguments, self._more_commands)
        asks = command.startswith(ASKS)
        request: dict[str, Any] = {"execute": command}
        if arguments:
            request["arguments"] = dict(arguments)
        text = json.dumps(request)
        run = self._link.ask if asks else self._link.change

        def send(connection: Connection) -> str:
            return self._send(connection, text, asks)

        with nullcontext() if asks else tracing.span(f"qmp {command}", vm=str(self._vm)):
            reply = json.loads(await self.in_turn(lambda: run(send, True)))
        if "error" in reply:
            raise CommandRefused(str(reply["error"].get("desc", "QEMU gives no reason")))
        return reply.get("return")

    async def in_turn(self, run: Callable[[], Coroutine[Any, Any, _T]]) -> _T:  # any: as usual
        """Run what may have to wait for the VM, after what came before for the same VM."""
        await self._turn.acquire()
        task = asyncio.ensure_future(run())
        task.add_done_callback(lambda _: self._turn.release())
        # The turn ends when libvirt has answered, even if its caller no longer waits.
        return await asyncio.shield(task)

    def _domain(self, connection: Connection) -> Domain:
        """The VM on this connection, looked up once: to look it up for each command would double
        what a sample costs. libvirt finds it by its UUID for each command anyway."""
        known = self._known
        if known is None or known[0] is not connection:
            known = self._known = (connection, connection.domain(self._vm))
        return known[1]

    def _send(self, connection: Connection, text: str, asks: bool) -> str:
        domain = self._domain(connection)
        try:
            return domain.monitor(text)
        except LibvirtRefused as refusal:
            self._known = None
            # What is invalid about any command is that there is no QEMU to send it to.
            never_sent = refusal.number == OPERATION_INVALID
            if not never_sent and domain.is_active():
                raise
            if never_sent or asks:
                raise CommandRefused(
                    "the VM does not run", field="vm", code=NOT_RUNNING
                ) from refusal
            raise OutcomeUnknown(
                f"QEMU ended before it answered: {refusal.message}", remedy="look at the VM's log"
            ) from refusal
