"""The event stream, message by message; test_server.py has it over a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import routing
from starlette.types import Message, Scope

from tests.support.served.api import ROOT, Api, as_peer
from tests.support.simulated.fakes import VM
from vmtune.api.main import create_app
from vmtune.api.routes import events
from vmtune.model.host.inventory import EventTopic
from vmtune.services.access.access import Access


class Reader:
    """A client of the stream that has not hung up yet."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.gone = asyncio.Event()
        self._asked = False
        self._text = ""

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.sent.put(message)

    async def block(self) -> dict[str, str]:
        """The next message or comment; a comment's name is empty."""
        async with asyncio.timeout(60):
            while "\n\n" not in self._text:
                self._text += (await self.sent.get()).get("body", b"").decode()
        block, _, self._text = self._text.partition("\n\n")
        pairs = (line.partition(":") for line in block.split("\n"))
        return {name: value.strip() for name, _, value in pairs}


@asynccontextmanager
async def stream(api: Api, query: str = "") -> AsyncIterator[Reader]:
    """A stream that is listened to."""
    reader = Reader()
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/events",
        "query_string": query.encode(),
        "headers": [],
        "server": ("/socket", None),
    }
    app = as_peer(create_app(api.container.settings, api.container), ROOT)
    serving = asyncio.create_task(app(scope, reader.receive, reader.send))
    try:
        assert await reader.block() == {"": "following"}
        yield reader
    finally:
        reader.gone.set()
        async with asyncio.timeout(60):
            await serving


async def test_progress_has_no_id_and_is_not_repeated(api: Api) -> None:
    async with stream(api) as reader:
        api.container.bus.progress(EventTopic.MIGRATION, VM, {"share": 0.5})
        shown = await reader.block()
        assert shown["event"] == "migration"
        assert "id" not in shown
        data = json.loads(shown["data"])
        assert (data["id"], data["at"], data["data"]) == (None, None, {"share": 0.5})
        assert data["subject"] == str(VM)
        await api.profile("p")
        assert "id" in await reader.block()
    async with stream(api, "after=0") as reader:
        topics = [(await reader.block())["event"] for _ in range(3)]
        assert topics == ["host", "host", "profile"]


async def test_without_after_only_what_happens_from_now_on(api: Api) -> None:
    await api.profile("old")
    async with stream(api, "topic=profile&topic=vm") as reader:
        await api.post("/assignments", {"target": "default", "profile": "old"})
        await api.profile("new")
        assert json.loads((await reader.block())["data"])["subject"] == "new"


async def test_a_comment_comes_while_nothing_happens(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert routing._PING_INTERVAL == 15
    async with stream(api) as reader:
        monkeypatch.setattr(routing, "_PING_INTERVAL", 0.01)  # later: none goes before "following"
        api.container.bus.progress(EventTopic.MIGRATION, VM, {})  # ends the 15 s already begun
        assert {"": "ping"} in [await reader.block() for _ in range(2)]


async def test_it_ends_when_the_service_stops(api: Api) -> None:
    async with stream(api) as reader:
        api.container.stopping.set()
        async with asyncio.timeout(60):
            while (await reader.sent.get()).get("more_body", True):
                pass


async def test_nothing_is_told_until_it_is_known_who_still_may(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = asyncio.Event()

    async def slowly(scope: Scope, access: Access) -> bool:
        await looked.wait()
        return False

    async with stream(api) as reader:
        monkeypatch.setattr(events, "still_lets_in", slowly)
        api.container.access.tokens.notify_changed()
        await api.profile("after")
        await asyncio.sleep(0.05)
        looked.set()
        told, more = b"", True
        async with asyncio.timeout(60):
            while more:
                message = await reader.sent.get()
                told += message.get("body", b"")
                more = message.get("more_body", False)
        assert b"after" not in told


async def test_nobody_listens_once_the_client_has_gone(api: Api) -> None:
    async with stream(api):
        assert len(api.container.bus._queues) == 1
    assert len(api.container.bus._queues) == 0
