"""QEMU's guest agent: run a program in the guest.

The protocol is the guest agent's (QEMU qga/qapi-schema.json), a command and its answer in JSON,
over a link to the agent: the unix socket of its channel
(:mod:`vmtune.hypervisor.qmp.agent_socket`), or libvirt, which holds that socket.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vmtune.errors import CommandRefused, HostUnreachable, OutcomeUnknown
from vmtune.hypervisor.qemu.allowlist import NOT_ALLOWED
from vmtune.hypervisor.qemu.replies import reading_reply

PROGRAMS = ("fio", "kill")
"""What is run in guests, and nothing else."""
CHANNEL = "org.qemu.guest_agent.0"
"""The name of the port behind which guests run their agent (qemu-ga(8))."""
ANSWERS_WITHIN_S = 10
NO_AGENT = "no_guest_agent"
"""Code of the error where none answers."""
INSTALL = "install and start qemu-guest-agent in the guest"
_LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program in the guest ended.

    :param status: its exit status; below 0 the signal that ended it.
    """

    status: int
    out: str
    err: str


class Channel(Protocol):
    """Leads to one agent."""

    async def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:  # any JSON
        """What the agent answers: an object with ``return``, or ``error``.

        :raise CommandRefused: in the link's words for the agent's refusal.
        :raise HostUnreachable: no answer: no agent runs in the guest, or it hangs.
        :raise OutcomeUnknown: the agent was lost while it ran.
        """

    async def close(self) -> None:
        """Let go of it."""


class GuestAgent:
    """One guest's agent: one command at a time. :meth:`close` it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._turn = asyncio.Lock()

    async def close(self) -> None:
        """Let go of what leads to it."""
        await self._channel.close()

    async def execute(self, command: str, arguments: Mapping[str, Any]) -> Any:  # any JSON
        """Run one command of the agent.

        :raise CommandRefused: in the agent's words; it may be configured to refuse the command.
        :raise HostUnreachable: no answer: no agent runs in the guest, or it hangs.
        :raise OutcomeUnknown: the agent was lost while it ran.
        """
        _check(command, arguments)
        async with self._turn:
            reply = await self._channel.ask({"execute": command, "arguments": dict(arguments)})
        with reading_reply("what it runs"):
            if "error" in reply:
                said = str(reply["error"].get("desc", "the agent gives no reason"))
                raise CommandRefused(said)
        return reply.get("return")

    async def run(
        self, program: str, arguments: Sequence[str], max_s: float, on_progress: Callable[[], None]
    ) -> Finished:
        """Run one of PROGRAMS in the guest to its end. Cancelled, or when it takes longer, it is
        interrupted there.

        :param on_progress: called several times a second.
        :raise OutcomeUnknown: it took longer than *max_s*.
        """
        starting = asyncio.ensure_future(self._start(program, arguments))
        try:
            pid = await asyncio.shield(starting)
            return await self._finished(program, pid, max_s, on_progress)
        except (asyncio.CancelledError, OutcomeUnknown):
            await asyncio.shield(self._interrupt(starting))
            raise

    async def _start(self, program: str, arguments: Sequence[str]) -> int:
        order = {"path": program, "arg": list(arguments), "capture-output": True}
        started = await self.execute("guest-exec", order)
        with reading_reply("what it runs"):
            return int(started["pid"])

    async def _finished(
        self, program: str, pid: int, max_s: float, on_progress: Callable[[], None]
    ) -> Finished:
        deadline = time.monotonic() + max_s
        while True:
            status = await self.execute("guest-exec-status", {"pid": pid})
            with reading_reply("what it runs"):
                if status["exited"]:
                    ended = int(status.get("exitcode", -int(status.get("signal", 0))))
                    return Finished(
                        ended, _text(status.get("out-data")), _text(status.get("err-data"))
                    )
            if time.monotonic() > deadline:
                raise OutcomeUnknown(f"{program} in the guest does not end within {max_s:g} s")
            on_progress()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _interrupt(self, starting: asyncio.Future[int]) -> None:
        with contextlib.suppress(CommandRefused, HostUnreachable, OutcomeUnknown):
            pid = await starting
            await self.execute("guest-exec", {"path": "kill", "arg": ["-INT", str(pid)]})


def _check(command: str, arguments: Mapping[str, Any]) -> None:  # any JSON
    """A client of an agent may do anything in the guest: vmtune only runs fio there.

    :raise CommandRefused: it is something else.
    """
    known = command == "guest-exec-status" or (
        command == "guest-exec" and arguments.get("path") in PROGRAMS
    )
    if not known:
        raise CommandRefused(
            f"vmtune does not have guests do {command[:80]!r} {arguments.get('path', '')}".strip(),
            code=NOT_ALLOWED,
        )


def _text(data: str | None) -> str:
    try:
        return base64.b64decode(data or "", validate=True).decode(errors="replace")
    except binascii.Error as error:
        raise ValueError(f"its output is not base64: {error}") from error
