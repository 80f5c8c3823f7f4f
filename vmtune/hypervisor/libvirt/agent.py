"""A guest's agent, whose channel libvirt holds and lends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from vmtune.errors import HostUnreachable, OutcomeUnknown, SetupError
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.qemu.guest_agent import ANSWERS_WITHIN_S, CHANNEL, INSTALL, NO_AGENT

# virErrorNumber: libvirt's ABI.
_NOT_CONFIGURED, _UNRESPONSIVE, _UNSYNCED, _TIMEOUT = 74, 86, 97, 112


class LibvirtChannel:
    """A :class:`~vmtune.hypervisor.qemu.guest_agent.Channel` over virDomainQemuAgentCommand. Using
    it marks the guest as tainted (``custom-ga-command``)."""

    def __init__(self, link: Link, vm: UUID) -> None:
        self._link = link
        self._vm = vm

    async def close(self) -> None:
        """The channel is libvirt's."""

    async def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:  # any JSON
        """One command and its answer; see :meth:`vmtune.hypervisor.qemu.guest_agent.Channel.ask`.

        :raise SetupError: the VM has no channel for an agent.
        """
        text = json.dumps(request)

        def call(connection: Connection) -> str:
            return connection.domain(self._vm).agent(text, ANSWERS_WITHIN_S)

        try:
            reply = json.loads(await self._link.change(call))
        except LibvirtRefused as refusal:
            if refusal.number == _NOT_CONFIGURED:
                raise SetupError(
                    f"the VM has no channel for a guest agent: {refusal.message}",
                    field="vm",
                    code=NO_AGENT,
                    remedy=f"give it a channel of the type unix with the target {CHANNEL}, and "
                    f"{INSTALL}",
                ) from refusal
            if refusal.number in (_UNRESPONSIVE, _UNSYNCED):
                raise HostUnreachable(
                    f"no guest agent answers: {refusal.message}",
                    field="vm",
                    code=NO_AGENT,
                    remedy=INSTALL,
                ) from refusal
            if refusal.number == _TIMEOUT:
                raise OutcomeUnknown(
                    f"the guest agent did not answer {request['execute']}: {refusal.message}",
                    remedy="see whether it runs in the guest, then look again",
                ) from refusal
            raise
        return reply if isinstance(reply, dict) else {}
