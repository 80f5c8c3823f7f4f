"""What goes over a QMP socket, and what is made of the answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from qemu.qmp.message import Message

from vmtune.errors import CommandRefused, OutcomeUnknown
from vmtune.hypervisor.qmp.monitor import QmpMonitor

GREETING = {"QMP": {"version": {"qemu": {"major": 10, "minor": 0, "micro": 2}, "package": ""},
                    "capabilities": []}}  # fmt: skip
MODE = {"path": "/machine", "property": "type"}
Answer = Mapping[str, Any]  # any JSON


class Peer:
    """The other end of a monitor: notes what comes, and answers in order."""

    def __init__(self) -> None:
        self.came: list[bytes] = []
        self.answers: list[Answer] = []
        self.events: list[Answer] = []
        self.open = asyncio.Event()
        self.open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(GREETING).encode() + b"\n")
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                self.came.append(data)
                for text in data.replace(b"}{", b"}\n{").splitlines():
                    await self.open.wait()
                    answer = self.answers.pop(0) if self.answers else {"return": {}}
                    command = json.loads(text)
                    reply = {**answer, **({"id": command["id"]} if "id" in command else {})}
                    for said in (*self.events, reply):
                        writer.write(json.dumps(said).encode() + b"\n")
        writer.close()


@asynccontextmanager
async def monitor(
    folder: Path, reply_timeout_s: float = 5
) -> AsyncIterator[tuple[QmpMonitor, Peer]]:
    """A monitor that is connected to a peer."""
    peer = Peer()
    server = await asyncio.start_unix_server(peer.serve, folder / "q.sock")
    made = QmpMonitor(
        folder / "q.sock", lambda *_: None, lambda: None, reply_timeout_s=reply_timeout_s
    )
    try:
        await made.connect()
        peer.came.clear()
        yield made, peer
    finally:
        await made.close()
        server.close()


async def test_a_command_has_no_byte_too_many(tmp_path: Path) -> None:
    """QEMU reads its monitor a byte at a time: each costs some 4 µs."""
    async with monitor(tmp_path) as (link, peer):
        await link.execute("qom-get", MODE)
        await link.execute("query-status")
    assert peer.came == [
        b'{"execute":"qom-get","arguments":{"path":"/machine","property":"type"}}',
        b'{"execute":"query-status"}',
    ]


async def test_commands_that_wait_are_sent_by_one_write_and_each_has_its_answer(
    tmp_path: Path,
) -> None:
    async with monitor(tmp_path) as (link, peer):
        peer.answers = [{"return": number} for number in range(30)]
        got = await asyncio.gather(*(link.execute("query-status") for _ in range(30)))
    assert got == list(range(30))
    assert len(peer.came) == 1


async def test_an_event_between_answers_is_nobodys_answer(tmp_path: Path) -> None:
    async with monitor(tmp_path) as (link, peer):
        peer.events = [{"event": "STOP", "timestamp": {"seconds": 1, "microseconds": 2}}]
        peer.answers = [{"return": "one"}, {"return": "two"}]
        got = await asyncio.gather(link.execute("query-name"), link.execute("query-status"))
    assert got == ["one", "two"]


async def test_what_is_out_of_band_may_be_answered_before_what_was_sent_before(
    tmp_path: Path,
) -> None:
    async with monitor(tmp_path) as (link, peer):
        peer.open.clear()
        first = asyncio.create_task(link.execute("query-status"))
        client: Any = link._client
        await asyncio.sleep(0.01)
        overtakes = asyncio.create_task(client.execute("migrate-pause", oob=True))
        await asyncio.sleep(0.01)
        (id_,) = client._pending
        await client._on_message(Message({"return": "soon", "id": id_}))
        assert await overtakes == "soon"
        peer.answers = [{"return": "late"}]
        peer.open.set()
        assert await first == "late"


async def test_a_lost_connection_ends_all_that_is_unanswered(tmp_path: Path) -> None:
    async with monitor(tmp_path) as (link, peer):
        peer.open.clear()
        waiting = [asyncio.create_task(link.execute("query-status")) for _ in range(3)]
        await asyncio.sleep(0.01)
        waiting[1].cancel()
        await link.close()
        peer.open.set()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [OutcomeUnknown, asyncio.CancelledError, OutcomeUnknown]


async def test_a_refusal_is_qemus_text(tmp_path: Path) -> None:
    async with monitor(tmp_path) as (link, peer):
        peer.answers = [{"error": {"class": "GenericError", "desc": "no such thing"}}]
        with pytest.raises(CommandRefused, match=r"^no such thing$"):
            await link.execute("qom-get", MODE)
        assert await link.execute("query-status") == {}


@pytest.mark.parametrize("answer", [{"error": {}}, {"error": 7}, {}], ids=str)
async def test_an_answer_that_is_none_leaves_the_outcome_unknown(
    tmp_path: Path, answer: Answer
) -> None:
    async with monitor(tmp_path) as (link, peer):
        peer.answers = [answer]
        with pytest.raises(OutcomeUnknown):
            await link.execute("qom-get", MODE)


async def test_a_late_answer_is_nobodys(tmp_path: Path) -> None:
    async with monitor(tmp_path, reply_timeout_s=0.05) as (link, peer):
        peer.open.clear()
        with pytest.raises(OutcomeUnknown, match="did not answer query-status within"):
            await link.execute("query-status")
        peer.answers = [{"return": "late"}, {"return": "next"}]
        peer.open.set()
        assert await link.execute("query-name") == "next"
