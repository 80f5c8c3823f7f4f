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
                    reply = {**answer, "id": json.loads(text).get("id")}
                    writer.write(json.dumps(reply).encode() + b"\n")
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
        b'{"execute":"qom-get","arguments":{"path":"/machine","property":"type"},"id":"1"}',
        b'{"execute":"query-status","id":"2"}',
    ]


async def test_commands_that_wait_are_sent_by_one_write_and_each_has_its_answer(
    tmp_path: Path,
) -> None:
    async with monitor(tmp_path) as (link, peer):
        peer.answers = [{"return": number} for number in range(30)]
        got = await asyncio.gather(*(link.execute("query-status") for _ in range(30)))
    assert got == list(range(30))
    assert len(peer.came) == 1


async def test_ids_begin_anew_and_skip_those_that_are_not_answered(tmp_path: Path) -> None:
    async with monitor(tmp_path) as (link, peer):
        peer.open.clear()
        late = asyncio.create_task(link.execute("query-status"))
        client: Any = link._client
        await asyncio.sleep(0.01)
        client._number = client._IDS - 1
        peer.answers = [{"return": "late"}, {"return": "one"}, {"return": "two"}]
        others = [asyncio.create_task(link.execute("query-name")) for _ in range(2)]
        await asyncio.sleep(0.01)
        assert list(client._pending) == ["1", "0", "2"]
        peer.open.set()
        assert await asyncio.gather(late, *others) == ["late", "one", "two"]


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
