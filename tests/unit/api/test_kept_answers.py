"""Answers are given again, byte for byte, until what they show has changed; never to whom they are
not for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import event

from tests.support.served.api import PREFIX, Api, admin_token, running_api
from tests.support.simulated.fakes import VM
from tests.unit.api.test_route_scopes import ROUTES
from vmtune.api.http.kept_answers import FOLLOWED, LIVE, STORED, Answer, Keeps, KeptAnswers
from vmtune.api.main import create_app
from vmtune.api.routes.router import ScopesFirst
from vmtune.model.access.scopes import EVERYTHING, Identity, Kind, Rights, Scope
from vmtune.model.host.inventory import Host
from vmtune.services.inventory_lists import InventoryLists
from vmtune.services.queries import Queries
from vmtune.storage import Store
from vmtune.storage.changes import Mark

TCP = "http://localhost:8470"


@pytest.fixture
async def tcp(tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(tmp_path, base_url=TCP) as api:
        yield api


async def rests(api: Api) -> None:
    """Wait until the service writes nothing of itself, as it does when it has just begun."""
    mark, since = await api.container.freshness.mark(), 0
    while since < 5:
        await asyncio.sleep(0.05)
        now = await api.container.freshness.mark()
        mark, since = now, since + 1 if now == mark else 0


@pytest.fixture
async def computed(api: Api, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lists that were computed, in their order; nothing else writes, and no answer becomes too
    old, however slow the machine is."""
    await rests(api)
    done: list[str] = []
    for kept in (STORED, LIVE):
        monkeypatch.setattr(kept.dependency, "max_age_s", 600.0)

    def counting(name: str) -> None:
        lists = Queries if hasattr(Queries, name) else InventoryLists
        method: Callable[..., Any] = getattr(lists, name)  # any: their own

        async def counted(*given: Any, **named: Any) -> Any:
            done.append(name)
            return await method(*given, **named)

        monkeypatch.setattr(lists, name, counted)

    for name in ("hosts", "vms", "migrations"):
        counting(name)
    return done


async def test_equal_reads_are_computed_once(api: Api, computed: list[str]) -> None:
    first = await api.send("GET", "/migrations")
    again = await api.send("GET", "/migrations")
    assert computed == ["migrations"]
    assert again.content == first.content
    same = ("content-type", "etag", "cache-control", "x-content-type-options")
    assert [again.headers[name] for name in same] == [first.headers[name] for name in same]
    assert again.headers["x-request-id"] != first.headers["x-request-id"]


async def test_other_reads_are_computed(api: Api, computed: list[str]) -> None:
    await api.get("/migrations?limit=1")
    await api.get("/migrations?limit=2")
    assert computed == ["migrations"] * 2
    assert (await api.send("HEAD", "/migrations")).status_code == 405


async def test_an_own_change_is_seen_at_once(api: Api) -> None:
    await api.post("/profiles", {"name": "p", "values": {}})
    assert len((await api.get("/hosts"))["items"]) == 2
    await api.container.hosts.add("c", "qmp+unix:///fake/c")
    assert len((await api.get("/hosts"))["items"]) == 3
    assert (await api.get(f"/vms/{VM}/explain"))["winner"] is None
    await api.post("/assignments", {"target": "default", "key": "", "profile": "p"})
    assert (await api.get(f"/vms/{VM}/explain"))["winner"]["profile"] == "p"


async def test_a_change_by_another_process_is_seen_at_once(api: Api) -> None:
    assert len((await api.get("/hosts"))["items"]) == 2
    with Store.open(api.container.settings.database_url) as other:
        other.hosts.add(Host("c", "qmp+unix:///fake/c", "", "", datetime.now(UTC)))
    assert len((await api.get("/hosts"))["items"]) == 3


async def test_what_hosts_say_is_given_again_for_a_moment_alone(
    api: Api, computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.get("/vms")  # which stores that they were seen
    await rests(api)
    computed.clear()
    await api.get("/vms")
    await api.get("/vms")
    assert computed == ["vms"]
    monkeypatch.setattr(LIVE.dependency, "max_age_s", 0.0)  # it has passed
    await api.get("/vms")
    assert computed == ["vms"] * 2


def test_nobody_sees_what_is_old() -> None:
    kept = [each.dependency for each in (STORED, FOLLOWED, LIVE)]
    ages = [each.max_age_s for each in kept if isinstance(each, Keeps)]
    assert ages == [1.0, 1.0, 0.2]


async def test_an_unchanged_answer_is_304(api: Api) -> None:
    first = await api.send("GET", "/hosts")
    etag = first.headers["etag"]
    for named in (etag, f'"other", W/{etag}', "*"):
        same = await api.send("GET", "/hosts", if_none_match=named)
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
    assert (await api.send("GET", "/hosts", if_none_match='"other"')).status_code == 200
    await api.container.hosts.add("c", "qmp+unix:///fake/c")
    changed = await api.send("GET", "/hosts", if_none_match=etag)
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag
    # Also where nothing is kept, but the content has come to be the same again.
    await api.container.hosts.remove("c")
    assert (await api.send("GET", "/hosts", if_none_match=etag)).status_code == 304


async def test_restricted_callers_get_their_own(api: Api, computed: list[str]) -> None:
    container = api.container
    mine = {"Authorization": f"Bearer {await admin_token(container, hosts=['b'])}"}
    await api.get("/hosts")
    assert [host["name"] for host in (await api.get("/hosts"))["items"]] == ["a", "b"]
    seen = [(await api.send("GET", "/hosts", **mine)) for _ in range(2)]
    assert [[host["name"] for host in each.json()["items"]] for each in seen] == [["b"]] * 2
    assert computed == ["hosts"] * 3  # nothing is kept for them
    assert all("etag" not in each.headers for each in seen)


async def test_who_may_not_read_gets_nothing_that_is_kept(api: Api) -> None:
    metrics = {"Authorization": f"Bearer {await admin_token(api.container, scopes=['metrics'])}"}
    await api.get("/hosts")
    assert (await api.send("GET", "/hosts", **metrics)).status_code == 403
    etag = (await api.send("GET", "/hosts")).headers["etag"]
    refused = await api.send("GET", "/hosts", if_none_match=etag, **metrics)
    assert refused.status_code == 403


async def test_a_revoked_token_is_refused_at_once(tcp: Api) -> None:
    made = await tcp.post("/tokens", {"name": "t", "scopes": ["read"]})
    header = {"Authorization": f"Bearer {made['token']}"}
    assert (await tcp.send("GET", "/hosts", **header)).status_code == 200
    assert (await tcp.send("GET", "/hosts", **header)).status_code == 200
    await tcp.ask("DELETE", f"/tokens/{made['id']}", expect=204)
    assert (await tcp.send("GET", "/hosts", **header)).status_code == 401
    nobody = await tcp.client.get(f"{TCP}{PREFIX}/hosts", headers={"Authorization": ""})
    assert nobody.status_code == 401


async def test_problems_are_not_kept(api: Api) -> None:
    path = "/migrations/7d1e0000-0000-4000-8000-000000000000"
    first, again = [await api.send("GET", path) for _ in range(2)]
    assert first.status_code == again.status_code == 404
    assert first.json()["instance"] != again.json()["instance"]
    assert "etag" not in first.headers


async def test_what_is_kept_is_bounded(api: Api) -> None:
    answers = KeptAnswers(create_app(api.container.settings), max_bytes=1000)

    def answer(size: int) -> Answer:
        return Answer(0.0, 0.0, Keeps(1.0), Mark(1, 1), None, {}, b"x" * size, b"")

    for number in range(20):
        answers.keep(number, "/", answer(300))
    assert answers._answers.currsize == 900
    assert list(answers._answers) == [17, 18, 19]
    answers.keep(19, "/", answer(100))
    assert answers._answers.currsize == 700
    answers.keep("large", "/", answer(2 << 20))
    assert "large" not in answers._answers


KEPT = Keeps(60.0)


class Asked:
    """Requests of one path, whose computing ends when the test says so.

    :param keeps: what its route says.
    """

    def __init__(self, keeps: Keeps | None = KEPT) -> None:
        self.mark = Mark(0, 0)
        self.computing: list[asyncio.Future[None]] = []
        self.sent: list[int] = []
        self._keeps = keeps
        self._answers = KeptAnswers(self._compute)

    async def _mark(self) -> Mark:
        return self.mark

    async def _compute(self, scope: Any, receive: Any, send: Any) -> None:
        self.computing.append(asyncio.get_running_loop().create_future())
        await self.computing[-1]
        scope["route"] = SimpleNamespace(keeps=self._keeps)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def ask(self, query: bytes = b"") -> None:
        """One request."""
        identity = Identity(Kind.TOKEN, "t", rights=Rights(frozenset({Scope.READ}), EVERYTHING))
        container = SimpleNamespace(freshness=SimpleNamespace(mark=self._mark))
        scope: Any = {
            **{"type": "http", "method": "GET", "path": "/", "query_string": query, "headers": []},
            "state": {"identity": identity},
            "app": SimpleNamespace(state=SimpleNamespace(container=container)),
        }

        async def send(message: Any) -> None:
            self.sent.append(message.get("status", 0))

        await self._answers(scope, None, send)  # type: ignore[arg-type]  # nothing is received

    async def kept(self, group: asyncio.TaskGroup) -> None:
        """An answer is kept."""
        group.create_task(self.ask())
        await until(self.computing, 1)
        self.computing[0].set_result(None)
        await until(self.sent, 2)

    def ages(self, age_s: float, took_s: float) -> None:
        """What is kept is so old, and took so long."""
        [(key, kept)] = self._answers._answers.items()
        begun_at = asyncio.get_running_loop().time() - age_s
        self._answers._answers[key] = replace(kept, begun_at=begun_at, took_s=took_s)


async def until(known: list[Any], many: int) -> None:
    while len(known) < many:  # noqa: ASYNC110 - turns of the loop, no time
        await asyncio.sleep(0)


async def turns() -> None:
    """Let all that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_those_who_come_while_it_is_computed_again_wait_for_that() -> None:
    it = Asked()
    async with asyncio.TaskGroup() as group:
        await it.kept(group)
        it.mark = Mark(1, 1)
        for _ in range(5):
            group.create_task(it.ask())
        await turns()
        assert len(it.computing) == 2
        it.computing[1].set_result(None)
    assert it.sent == [200, 0] * 6


async def test_those_who_come_after_a_change_wait_for_one_more_together() -> None:
    it = Asked()
    async with asyncio.TaskGroup() as group:
        await it.kept(group)
        for change in (1, 2, 3):
            it.mark = Mark(change, change)
            for _ in range(3):
                group.create_task(it.ask())
            await turns()
        assert len(it.computing) == 2
        it.computing[1].set_result(None)
        await until(it.computing, 3)
        await turns()
        assert it.sent == [200, 0] * 4  # those of the first change
        it.computing[2].set_result(None)
    assert len(it.computing) == 3
    assert it.sent == [200, 0] * 10


async def test_those_who_ask_anew_of_a_kept_path_wait_together() -> None:
    it = Asked()
    async with asyncio.TaskGroup() as group:
        await it.kept(group)
        for _ in range(5):
            group.create_task(it.ask(b"later_than_ms=1"))
        await turns()
        assert len(it.computing) == 2
        it.computing[1].set_result(None)
    assert it.sent == [200, 0] * 6


async def test_nobody_waits_where_nothing_is_kept() -> None:
    it = Asked(keeps=None)
    async with asyncio.TaskGroup() as group:
        await it.kept(group)
        for _ in range(3):
            group.create_task(it.ask())
        await until(it.computing, 4)
        for each in it.computing[1:]:
            each.set_result(None)
    assert it.sent == [200, 0] * 4


async def test_what_is_soon_too_old_is_computed_ahead() -> None:
    it = Asked()
    async with asyncio.TaskGroup() as group:
        await it.kept(group)
        await it.ask()
        assert len(it.computing) == 1
        it.ages(31.0, took_s=1.0)
        await it.ask()
        await turns()
        assert len(it.computing) == 1
        it.ages(59.0, took_s=1.0)
        for _ in range(3):
            await it.ask()  # given at once
        await until(it.computing, 2)
        await turns()
        assert len(it.computing) == 2
        it.computing[1].set_exception(OSError("lost"))  # nobody's
        await turns()
        await it.ask()
        await until(it.computing, 3)
        it.computing[2].set_result(None)
        await turns()
        it.ages(10.0, took_s=1.0)
        await it.ask()
    assert len(it.computing) == 3
    assert it.sent == [200, 0] * 8


def test_what_takes_long_is_not_computed_all_the_time() -> None:
    def due(took_s: float, age_s: float) -> bool:
        answer = Answer(100.0, took_s, Keeps(1.0), Mark(1, 1), None, {}, b"", b"")
        return answer.is_due(100.0 + age_s)

    assert [due(0.1, age_s) for age_s in (0.0, 0.75, 0.85)] == [False, False, True]
    assert [due(30.0, age_s) for age_s in (0.0, 0.45, 0.55)] == [False, False, True]


async def test_those_who_wait_go_on_where_it_failed() -> None:
    it = Asked()
    async with asyncio.TaskGroup() as group:
        await it.kept(group)
        it.mark = Mark(1, 1)
        for _ in range(2):
            group.create_task(it.ask())
        await turns()
        it.computing[1].cancel()
        await until(it.computing, 3)
        it.computing[2].set_result(None)
    assert it.sent == [200, 0] * 2


async def test_progress_ends_only_answers_that_show_it() -> None:
    for keeps, computed in ((Keeps(60.0), 1), (FOLLOWED.dependency, 2)):
        assert isinstance(keeps, Keeps)
        it = Asked(keeps)
        async with asyncio.TaskGroup() as group:
            await it.kept(group)
            it.mark = Mark(1, 0)
            group.create_task(it.ask())
            await turns()
            assert len(it.computing) == computed
            for each in it.computing[1:]:
                each.set_result(None)
        assert it.sent == [200, 0] * 2


async def test_answers_that_show_samples_or_events_say_so(api: Api) -> None:
    """What is written as progress is read by no other kept route."""
    read: dict[str, set[str]] = {}
    now: ContextVar[str] = ContextVar("now", default="")  # the threads of its answer have it too

    def note(*given: Any) -> None:
        tables = set(re.findall(r"(?:FROM|JOIN) (\w+)", given[2]))
        read.setdefault(now.get(), set()).update(
            {"sample_chunks", "disk_chunks", "events"} & tables
        )

    engine = api.container.freshness._changes._database._engine
    event.listen(engine, "before_cursor_execute", note)
    made = await api.post("/migrations", {"vm": str(VM), "destination": "b"}, expect=202)
    kept = {path: route.keeps for path, route in ROUTES if isinstance(route, ScopesFirst)}
    routes = {path: keeps for path, keeps in kept.items() if keeps is not None}
    assert len(routes) >= 10
    for route in routes:
        now.set(route)
        of = {"migration": made["id"], "vm": VM, "name": "a", "application": VM}
        path = route.removeprefix(PREFIX).format(**of)
        await api.send("GET", f"{path}?q=a" if "search" in path else path)
    assert {path for path, tables in read.items() if tables and path} == {
        path for path, keeps in routes.items() if keeps.progress
    }
