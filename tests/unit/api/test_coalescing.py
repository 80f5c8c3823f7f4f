"""Reads that meet share an answer, and nothing else does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from vmtune.api.http.coalescing import CoalescingMiddleware
from vmtune.model.access.scopes import FULL, Identity, Kind, Rights
from vmtune.model.access.scopes import Scope as Right

READER = Identity(Kind.TOKEN, "1", "dashboard", Rights(frozenset({Right.READ})))


class Slow:
    """An application that answers when it is let, with the number of its calls begun."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.begun = 0
        self.go_on = asyncio.Event()
        self.fails = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun += 1
        number = self.begun
        scope["route"] = f"route of call {number}"
        assert await receive() == {"type": "http.request", "body": b"", "more_body": False}
        await self.go_on.wait()
        if self.fails:
            raise RuntimeError(f"call {number}")
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        body = f"call {number}, request {scope['state']['request_id']}"
        await send({"type": "http.response.body", "body": body.encode()})


class Asker:
    """One request, as the server hands it over."""

    def __init__(
        self,
        app: CoalescingMiddleware,
        path: str = "/api/v1/vms",
        query: bytes = b"",
        method: str = "GET",
        who: Identity = READER,
        number: int = 0,
    ) -> None:
        self.messages: list[Message] = []
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query,
            "state": {"identity": who, "request_id": f"r{number}"},
        }
        self.task = asyncio.create_task(self._run(app))

    async def _run(self, app: CoalescingMiddleware) -> str:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            self.messages.append(message)

        await app(self.scope, receive, send)
        return str(self.messages[-1]["body"].decode())


async def turns() -> None:
    """Let everybody go as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def answers(askers: list[Asker]) -> list[str]:
    async with asyncio.timeout(60):
        return list(await asyncio.gather(*(asker.task for asker in askers)))


async def test_who_comes_meanwhile_shares_the_next_answer_never_the_one_under_way() -> None:
    app = Slow()
    shared = CoalescingMiddleware(app)
    first = Asker(shared, number=1)
    await turns()
    later = [Asker(shared, number=number) for number in (2, 3, 4)]
    await turns()
    assert app.begun == 1
    app.go_on.set()
    assert await answers([first, *later]) == ["call 1, request r1"] + 3 * ["call 2, request r2"]
    assert [asker.scope["route"] for asker in (first, *later)] == [
        "route of call 1", *3 * ["route of call 2"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        {"query": b"limit=1"},
        {"path": "/api/v1/vms/1"},
        {"who": Identity(Kind.USER, "0", "root", FULL)},
    ],
)
async def test_who_asks_for_something_else_or_may_see_something_else_gets_it(
    other: dict[str, Any],
) -> None:
    app = Slow()
    shared = CoalescingMiddleware(app)
    askers = [Asker(shared, number=1), Asker(shared, number=2, **other)]
    await turns()
    assert app.begun == 2
    app.go_on.set()
    assert await answers(askers) == ["call 1, request r1", "call 2, request r2"]


async def test_two_who_have_the_same_rights_share() -> None:
    app = Slow()
    shared = CoalescingMiddleware(app)
    names = [Identity(Kind.TOKEN, name, name, READER.rights) for name in ("1", "2")]
    askers = [Asker(shared, who=name, number=n) for n, name in enumerate(names)]
    await turns()
    assert app.begun == 1
    app.go_on.set()
    assert len(set(await answers(askers))) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/migrations"),
        ("DELETE", "/api/v1/migrations/1"),
        ("GET", "/api/v1/events"),
        ("GET", "/api/v1/audit"),
        ("GET", "/api/v1/session"),
        ("GET", "/api/v1/tokens"),
        ("GET", "/api/v1/runs/1/export"),
    ],
)
async def test_what_changes_something_or_depends_on_who_asks_is_never_shared(
    method: str, path: str
) -> None:
    app = Slow()
    shared = CoalescingMiddleware(app)
    askers = [Asker(shared, path, method=method, number=number) for number in range(3)]
    await turns()
    assert app.begun == 3
    app.go_on.set()
    assert len(set(await answers(askers))) == 3


async def test_a_problem_names_the_request_of_each_who_met_it() -> None:
    app = Slow(status=404)
    app.go_on.set()
    askers = [Asker(CoalescingMiddleware(app), number=1)]
    askers += [Asker(shared, number=n) for shared in [CoalescingMiddleware(app)] for n in (2, 3)]
    told = await answers(askers)
    assert [text.split(", ")[1] for text in told] == ["request r1", "request r2", "request r3"]


async def test_a_fault_is_everybodys_and_the_next_are_served() -> None:
    app = Slow()
    app.fails = True
    shared = CoalescingMiddleware(app)
    askers = [Asker(shared, number=number) for number in range(3)]
    await turns()
    app.go_on.set()
    for asker in askers:
        with pytest.raises(RuntimeError, match="call 1"):
            await asker.task
    app.fails = False
    assert await answers([Asker(shared, number=9)]) == ["call 2, request r9"]


async def test_who_goes_away_takes_the_answer_from_nobody() -> None:
    app = Slow()
    shared = CoalescingMiddleware(app)
    askers = [Asker(shared, number=number) for number in range(2)]
    await turns()
    askers[0].task.cancel()
    await turns()
    app.go_on.set()
    assert await answers(askers[1:]) == ["call 1, request r0"]
