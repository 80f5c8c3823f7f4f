"""The QMP library's client, with less work for each command.

QEMU reads its monitor a byte at a time, each with a turn of its main loop (monitor_can_read in
monitor/monitor.c): a byte costs about 4 µs, so a command of 110 bytes takes longer to be read than
to be executed. So commands are sent without spaces, and without an id: QEMU answers what is not
out of band in the order in which it was sent (QEMU's docs/interop/qmp-spec.rst, "Issuing
Commands"). Each is serialised once, what waits is sent by one write, an answer goes from its line
to its caller without a queue, and no message is printed for a debug log that is off.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from typing import Any

from qemu.qmp import ExecuteError, QMPClient
from qemu.qmp.message import Message
from qemu.qmp.models import ErrorResponse
from qemu.qmp.qmp_client import BadReplyError, ExecInterruptedError


class LeanClient(QMPClient):
    """A :class:`qemu.qmp.QMPClient` that differs in nothing but what it costs."""

    def __init__(self) -> None:
        super().__init__()
        # One for each command without an id, in their order; done where it was given up.
        self._unanswered: deque[asyncio.Future[dict[str, Any]]] = deque()  # any JSON

    def _cb_outbound(self, msg: Message) -> Message:
        return msg

    def _cb_inbound(self, msg: Message) -> Message:
        return msg

    async def execute(
        self,
        cmd: str,
        arguments: Mapping[str, object] | None = None,
        oob: bool = False,
    ) -> object:
        """See :meth:`qemu.qmp.QMPClient.execute`.

        :raise ExecuteError: QEMU refused.
        :raise ExecInterruptedError: the connection ended before the answer came.
        """
        if oob:  # its answer may overtake others
            return await super().execute(cmd, dict(arguments) if arguments else None, oob=True)
        command: dict[str, object] = {"execute": cmd}
        if arguments:
            command["arguments"] = arguments
        sent = Message(json.dumps(command, separators=(",", ":")).encode(), eager=False)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._unanswered.append(answer)
        self._outgoing.put_nowait(sent)
        reply = await answer
        if "error" in reply:
            read = Message(reply)
            try:
                raise ExecuteError(ErrorResponse(read), sent, read)
            except (KeyError, TypeError) as error:
                raise BadReplyError("QMP error reply is malformed", read, sent) from error
        if "return" not in reply:
            raise BadReplyError("QMP reply has neither error nor return", Message(reply), sent)
        return reply["return"]

    async def _bh_recv_message(self) -> None:
        line = await self._readline()
        try:
            message = json.loads(line)
        except ValueError:
            message = None  # the library says what is wrong with it
        if not self._unanswered or not _is_in_turn(message):
            await self._on_message(Message(line, eager=True))
            return
        answer = self._unanswered.popleft()
        if not answer.done():
            answer.set_result(message)

    async def _bh_send_message(self) -> None:
        assert self._writer is not None
        waiting = [await self._outgoing.get()]
        while not self._outgoing.empty():
            waiting.append(self._outgoing.get_nowait())
        try:
            self._writer.write(b"".join(map(bytes, waiting)))
        finally:
            for _ in waiting:
                self._outgoing.task_done()

    async def _bh_disconnect(self) -> None:
        try:
            await super()._bh_disconnect()
        finally:
            while self._unanswered:
                answer = self._unanswered.popleft()
                if not answer.done():
                    answer.set_exception(ExecInterruptedError("Disconnected"))


def _is_in_turn(message: object) -> bool:
    """Events come between answers, and what is out of band has an id."""
    return isinstance(message, dict) and "event" not in message and message.get("id") is None
