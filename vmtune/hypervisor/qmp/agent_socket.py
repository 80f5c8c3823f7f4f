"""The unix socket of a guest agent's channel, and which one it is.

A line of JSON each way. What an earlier client has left unread comes first, so that a connection
begins with guest-sync-delimited, whose answer has a byte before it that no JSON has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vmtune.errors import CommandRefused, HostUnreachable, OutcomeUnknown, SetupError
from vmtune.hypervisor.guard import OPEN, Guard
from vmtune.hypervisor.qemu.allowlist import OBJECT_FOLDERS
from vmtune.hypervisor.qemu.guest_agent import ANSWERS_WITHIN_S, CHANNEL, INSTALL, NO_AGENT
from vmtune.hypervisor.qemu.monitor import Monitor
from vmtune.hypervisor.qemu.names import children
from vmtune.hypervisor.qemu.qom import children_of
from vmtune.hypervisor.qemu.replies import reading_reply

_DELIMITER = b"\xff"
_MAX_BYTES = 32 << 20  # the agent keeps 16 MiB of output, which base64 makes a third longer
_PORT = "virtserialport"
_LISTENS = ",server=on"
_GIVE_IT_ONE = (
    "start its QEMU with -device virtio-serial -chardev socket,id=agent,path=FILE,server=on,"
    f"wait=off -device {_PORT},chardev=agent,name={CHANNEL}"
)


class SocketChannel:
    """A :class:`~vmtune.hypervisor.qemu.guest_agent.Channel` over a socket. It connects by itself.

    :param path: the socket, on which QEMU listens, or the agent itself.
    :param guard: lets through what changes something.
    """

    def __init__(self, path: Path, guard: Guard = OPEN) -> None:
        self.path = path
        self._guard = guard
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

    async def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:  # any JSON
        """One command and its answer; see
        :meth:`vmtune.hypervisor.qemu.guest_agent.Channel.ask`."""
        await self._connect()
        await self._guard.wait()
        try:
            self._guard.check()
            return await self._ask(request)
        except asyncio.CancelledError:
            self._drop()  # an answer may still arrive for a caller that stopped waiting
            raise
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            await self.close()
            raise OutcomeUnknown(
                f"the guest agent was lost before it answered {request['execute']}",
                remedy="see whether it runs in the guest, then look again",
            ) from error

    async def _connect(self) -> None:
        if self._streams is not None:
            return
        try:
            self._streams = await asyncio.open_unix_connection(str(self.path), limit=_MAX_BYTES)
            await self._synchronise()
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            await self.close()
            raise HostUnreachable(
                f"no guest agent answers on {self.path}",
                field="vm",
                code=NO_AGENT,
                remedy=f"{INSTALL}, and end other clients of its socket",
            ) from error
        except asyncio.CancelledError:
            self._drop()
            raise

    async def _synchronise(self) -> None:
        """Throw away what was left unread."""
        assert self._streams is not None
        reader, writer = self._streams
        number = secrets.randbits(31)
        request = {"execute": "guest-sync-delimited", "arguments": {"id": number}}
        async with asyncio.timeout(ANSWERS_WITHIN_S):
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
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            writer.write(json.dumps(request).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        reply = json.loads(line)
        if not isinstance(reply, dict):
            raise ValueError("no object")
        return reply


async def find_socket(monitor: Monitor) -> Path:
    """The socket of a QEMU's channel for an agent, on which that QEMU listens.

    Sources: QEMU hw/char/virtio-console.c; chardev/char-socket.c
    (``qemu_chr_compute_filename``), whose words for a socket have not changed from 7.2 to 10.0.

    :raise SetupError: it has none.
    """
    name = await _chardev(monitor)
    for row in await monitor.execute("query-chardev") if name else ():
        with reading_reply("its character devices"):
            label, words = row["label"], str(row["filename"])
        _, unix, path = words.partition("unix:")
        if label == name and unix and path.endswith(_LISTENS):
            return Path(path.removesuffix(_LISTENS))
    raise SetupError(
        "its QEMU has no channel for a guest agent"
        if not name
        else "the channel of its guest agent is not a socket on which its QEMU listens",
        field="vm",
        code=NO_AGENT,
        remedy=_GIVE_IT_ONE,
    )


async def _chardev(monitor: Monitor) -> str:
    """What the agent's port is connected to; empty where there is no such port."""
    for folder in OBJECT_FOLDERS[1:]:
        for port in children(await children_of(monitor, folder), _PORT):
            path = f"{folder}/{port}"
            if await _get(monitor, path, "name") == CHANNEL:
                return await _get(monitor, path, "chardev")
    return ""


async def _get(monitor: Monitor, path: str, name: str) -> str:
    try:
        return str(await monitor.execute("qom-get", {"path": path, "property": name}))
    except CommandRefused:
        return ""  # it was unplugged meanwhile, or has none
