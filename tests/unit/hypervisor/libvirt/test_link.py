"""The link to a daemon: opened once, again when it is lost, and its calls in threads."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

from tests.unit.hypervisor.libvirt.connections import Host, LibvirtError
from vmtune.errors import (
    HostUnreachable,
    OutcomeUnknown,
)
from vmtune.hypervisor.libvirt import connection
from vmtune.hypervisor.libvirt.calls.connection import Connection
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.libvirt.errors import LibvirtRefused
from vmtune.hypervisor.libvirt.threads import Workers
from vmtune.hypervisor.protocol import EventKind


class TestLink:
    async def test_a_question_is_asked_again_over_a_new_connection(self) -> None:
        host = Host()
        link = Link("x", host.open)
        assert await link.ask(Connection.hostname) == "a"
        host.end_connection()
        assert await link.ask(Connection.hostname) == "a"
        assert len(host.opened) == 2
        assert link.generation == 2
        await link.close()
        assert all(raw.was_closed.is_set() for raw in host.opened)

    async def test_a_daemon_that_is_gone_behind_its_proxy_is_gone(self) -> None:
        host = Host()
        link = Link("x", host.open)
        assert await link.ask(Connection.hostname) == "a"
        host.end_behind_proxy()
        assert await link.ask(Connection.hostname) == "a"
        assert len(host.opened) == 2
        host.end_behind_proxy()
        with pytest.raises(OutcomeUnknown):
            await link.change(Connection.hostname)
        await link.close()

    @pytest.mark.parametrize(
        "text",
        [
            "Cannot recv data: Connection reset by peer",
            "End of file while reading data: Input/output error",
            "internal error: client socket is closed",
        ],
    )
    def test_a_daemon_that_lost_another_one_is_still_there(self, text: str) -> None:
        """Of a migration, the destination's: the source says so in the same words."""
        host = Host()
        connection = host.open("x")

        def migrate() -> None:
            with connection.errors():
                raise LibvirtError(38, text)

        with pytest.raises(LibvirtRefused):
            migrate()
        host.end_behind_proxy()
        with pytest.raises(OutcomeUnknown):
            migrate()

    async def test_a_change_is_not_made_twice(self) -> None:
        host = Host()
        link = Link("x", host.open)
        await link.ask(Connection.hostname)
        host.end_connection()
        with pytest.raises(OutcomeUnknown):
            await link.change(Connection.hostname)
        await link.close()

    async def test_watchers_hear_once_that_the_connection_was_lost(self) -> None:
        host = Host()
        link = Link("x", host.open)
        events = link.events()
        await link.ask(Connection.hostname)
        host.running = False
        host.opened[-1].on_close()
        heard = [await anext(events), await anext(events)]
        assert [(event.kind, event.vm) for event in heard] == [
            (EventKind.CONNECTED, None),
            (EventKind.CONNECTION_LOST, None),
        ]
        with pytest.raises(HostUnreachable):
            await link.ask(Connection.hostname)
        await link.close()
        assert [event async for event in events] == []

    async def test_who_comes_while_it_is_opened_waits_for_the_same(self) -> None:
        host = Host()
        link = Link("x", host.open)
        assert await asyncio.gather(*(link.ask(Connection.hostname) for _ in range(5))) == ["a"] * 5
        assert len(host.opened) == 1
        await link.close()

    async def test_an_attempt_that_fails_when_nobody_waits_is_no_complaint(self) -> None:
        """Asyncio called it "Task exception was never retrieved"."""
        complaints: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        tried, let_go = asyncio.Event(), threading.Event()

        def refuse(uri: str) -> Connection:
            loop.call_soon_threadsafe(tried.set)
            let_go.wait(30)
            raise HostUnreachable(f"no connection to {uri}")

        link = Link("x", refuse)
        caller = asyncio.create_task(link.ask(Connection.hostname))
        await tried.wait()
        opening = next(task for task in asyncio.all_tasks() if task.get_name() == "open x")
        caller.cancel()
        await asyncio.wait([caller])
        let_go.set()
        await asyncio.wait([opening])
        del caller, opening
        with pytest.raises(HostUnreachable):
            await link.ask(Connection.hostname)  # another attempt takes its place
        gc.collect()
        assert complaints == []
        await link.close()

    async def test_after_close_nothing_is_opened(self) -> None:
        host = Host()
        link = Link("x", host.open)
        await link.close()
        with pytest.raises(HostUnreachable):
            await link.ask(Connection.hostname)
        assert host.opened == []

    async def test_an_attempt_that_hangs_is_left_behind_a_few_times(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(connection, "_OPEN_WITHIN_S", 0.05)
        host = Host()
        let_go, begun = threading.Event(), []

        def hang(uri: str) -> Connection:
            begun.append(uri)
            let_go.wait(30)
            return host.open(uri)

        link = Link("qemu+ssh://op@rack2/system", hang)
        for attempt in (1, 2, 3, 4, 4):
            with pytest.raises(HostUnreachable) as silent:
                await link.ask(Connection.hostname)
            assert "ssh op@rack2 true" in silent.value.problems[0].remedy
            assert len(begun) == attempt
        let_go.set()
        assert await link.ask(Connection.hostname) == "a"
        await asyncio.gather(*link._stuck)  # all attempts have come to an end
        await link.close()
        # One was used, and none of the others is kept: a thread closes each.
        assert len(host.opened) == 4
        closed = [asyncio.to_thread(raw.was_closed.wait, 30) for raw in host.opened]
        assert all(await asyncio.gather(*closed))

    async def test_calls_that_hang_leave_room_for_others(self) -> None:
        host = Host()
        link = Link("x", host.open)
        let_go = threading.Event()

        def hang(_: Connection) -> bool:
            return let_go.wait(30)

        hanging = [asyncio.create_task(link.ask(hang, waits=True)) for _ in range(8)]
        await asyncio.sleep(0)
        assert await link.ask(Connection.hostname) == "a"
        let_go.set()
        assert all(await asyncio.gather(*hanging))
        await link.close()


async def test_workers_run_no_more_at_once_than_they_may() -> None:
    workers = Workers("test", 2)
    together = threading.Semaphore(2)

    def call() -> bool:
        alone = together.acquire(blocking=False)
        threading.Event().wait(0.001)
        together.release()
        return alone

    assert all(await asyncio.gather(*(workers.submit(call) for _ in range(20))))
    workers.close()


async def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    workers = Workers("test", 1)
    let_go, begun = threading.Event(), []
    first = workers.submit(lambda: let_go.wait(30))
    second = workers.submit(lambda: begun.append(True))
    second.cancel()
    let_go.set()
    assert await first
    await workers.submit(lambda: None)
    assert begun == []
    workers.close()
