"""QEMU's guest agent, by the unix socket of its channel: run a program in the guest.

The protocol is the guest agent's (QEMU qga/qapi-schema.json): a line of JSON each way. What an
earlier client has left unread comes first, so that a connection begins with guest-sync-delimited,
whose answer has a byte before it that no JSON has.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vmtune.drivers.qmp_allowed import NOT_ALLOWED
from vmtune.drivers.replies import understanding
from vmtune.errors import CommandRefused, HostUnreachable, OutcomeUnknown

PROGRAMS = ("fio", "kill")
"""What is run in guests, and nothing else."""
_DELIMITER = b"\xff"
_ANSWERS_WITHIN_S = 10.0
_LOOK_EVERY_S = 0.1
_MOST_BYTES = 32 << 20  # the agent keeps 16 MiB of output, which base64 makes a third longer


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program in the guest ended.

    :param status: its exit status; below 0 the signal that ended it.
    """

    status: int
    out: str
    err: str


class GuestAgent:
    """One agent's socket: one command at a time. :meth:`close` it.

    :param path: the socket, on which the agent or QEMU listens.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._turn = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def close(self) -> None:
        """Let go of the socket."""
        writer = self._drop()
        if writer is not None:
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _drop(self) -> asyncio.StreamWriter | None:
        streams, self._streams = self._streams, None
        if streams is None:
            return None
        streams[1].close()
        return streams[1]

    async def execute(self, command: str, arguments: Mapping[str, Any]) -> Any:  # any JSON
        """Run one command of the agent.

        :raise CommandRefused: in the agent's words; it may have been told to take no such command.
        :raise HostUnreachable: nobody answers: no agent runs in the guest, or it hangs.
        :raise OutcomeUnknown: the agent was lost while it ran.
        """
        _check(command, arguments)
        async with self._turn:
            await self._connect()
            try:
                reply = await self._ask({"execute": command, "arguments": dict(arguments)})
            except asyncio.CancelledError:
                self._drop()  # an answer may be on its way that nobody waits for
                raise
            except (OSError, EOFError, TimeoutError, ValueError) as error:
                await self.close()
                raise OutcomeUnknown(
                    f"the guest agent was lost before it answered {command}",
                    remedy="see whether it runs in the guest, then look again",
                ) from error
        if "error" in reply:
            raise CommandRefused(str(reply["error"].get("desc", "the agent gives no reason")))
        return reply.get("return")

    async def run(
        self, program: str, arguments: Sequence[str], most_s: float, tell: Callable[[], None]
    ) -> Finished:
        """Run one of PROGRAMS in the guest to its end. Cancelled, or when it takes longer, it is
        interrupted there.

        :param tell: called several times a second.
        :raise OutcomeUnknown: it took longer than *most_s*.
        """
        starting = asyncio.ensure_future(self._start(program, arguments))
        try:
            pid = await asyncio.shield(starting)
            return await self._finished(program, pid, most_s, tell)
        except (asyncio.CancelledError, OutcomeUnknown):
            await asyncio.shield(self._interrupt(starting))
            raise

    async def _start(self, program: str, arguments: Sequence[str]) -> int:
        order = {"path": program, "arg": list(arguments), "capture-output": True}
        started = await self.execute("guest-exec", order)
        with understanding("what it runs"):
            return int(started["pid"])

    async def _finished(
        self, program: str, pid: int, most_s: float, tell: Callable[[], None]
    ) -> Finished:
        deadline = time.monotonic() + most_s
        while True:
            status = await self.execute("guest-exec-status", {"pid": pid})
            with understanding("what it runs"):
                if status["exited"]:
                    ended = int(status.get("exitcode", -int(status.get("signal", 0))))
                    return Finished(
                        ended, _text(status.get("out-data")), _text(status.get("err-data"))
                    )
            if time.monotonic() > deadline:
                raise OutcomeUnknown(f"{program} in the guest does not end within {most_s:g} s")
            tell()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def _interrupt(self, starting: asyncio.Future[int]) -> None:
        with contextlib.suppress(CommandRefused, HostUnreachable, OutcomeUnknown):
            pid = await starting
            await self.execute("guest-exec", {"path": "kill", "arg": ["-INT", str(pid)]})

    async def _connect(self) -> None:
        if self._streams is not None:
            return
        try:
            self._streams = await asyncio.open_unix_connection(str(self.path), limit=_MOST_BYTES)
            await self._synchronise()
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            await self.close()
            raise HostUnreachable(
                f"no guest agent answers on {self.path}",
                code="no_guest_agent",
                remedy="install qemu-guest-agent in the guest, and end other clients of its socket",
            ) from error

    async def _synchronise(self) -> None:
        """Throw away what was left unread."""
        assert self._streams is not None
        reader, writer = self._streams
        number = secrets.randbits(31)
        request = {"execute": "guest-sync-delimited", "arguments": {"id": number}}
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            # The byte in front ends what an earlier client had begun, and is itself an error to
            # the agent, whose answer to that is thrown away as well.
            writer.write(_DELIMITER + json.dumps(request).encode() + b"\n")
            await writer.drain()
            while True:
                await reader.readuntil(_DELIMITER)
                if json.loads(await reader.readline()).get("return") == number:
                    return

    async def _ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:  # any JSON
        assert self._streams is not None
        reader, writer = self._streams
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            writer.write(json.dumps(request).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        reply = json.loads(line)
        if not isinstance(reply, dict):
            raise ValueError("no object")
        return reply


def _check(command: str, arguments: Mapping[str, Any]) -> None:  # any JSON
    """Whoever talks to an agent may do anything in the guest: vmtune runs fio there.

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
        raise ValueError(f"its output is no base64: {error}") from error
