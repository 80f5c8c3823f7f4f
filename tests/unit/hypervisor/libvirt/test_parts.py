"""The small parts of the libvirt driver, without libvirt."""

from __future__ import annotations

import asyncio
import builtins
import gc
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from vmtune.errors import (
    CommandRefused,
    HostUnreachable,
    NotFound,
    OutcomeUnknown,
    SetupError,
    VmtuneError,
)
from vmtune.hypervisor.libvirt import connection
from vmtune.hypervisor.libvirt import errors as libvirt_errors
from vmtune.hypervisor.libvirt import library as libvirt_library
from vmtune.hypervisor.libvirt.calls import Connection, Domain, without_questions
from vmtune.hypervisor.libvirt.connection import Link
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.hypervisor.libvirt.errors import LibvirtRefused, translate, unreachable
from vmtune.hypervisor.libvirt.events import read_event
from vmtune.hypervisor.libvirt.host import LocalDaemon, derive_peer_uri, find_local_daemon
from vmtune.hypervisor.libvirt.iothreads import iothread_number
from vmtune.hypervisor.libvirt.library import Library
from vmtune.hypervisor.libvirt.monitor import NOT_RUNNING, LibvirtMonitor
from vmtune.hypervisor.libvirt.threads import Workers
from vmtune.hypervisor.libvirt.vm import read_totals
from vmtune.hypervisor.protocol import DriverEvent, EventKind
from vmtune.model.host.facts import VmState

VM = UUID("09c0f619-80b8-5779-af9e-2b2ab883721e")


@pytest.mark.parametrize(
    ("number", "alive", "kind", "code"),
    [
        (libvirt_errors.NO_DOMAIN, True, NotFound, "not_found"),
        (libvirt_errors.OPERATION_TIMEOUT, True, CommandRefused, "busy"),
        (libvirt_errors.OPERATION_INVALID, True, CommandRefused, "command_refused"),
        (88, True, CommandRefused, "access_denied"),
        (38, True, CommandRefused, "command_refused"),
        (38, False, OutcomeUnknown, "outcome_unknown"),
        (libvirt_errors.NO_DOMAIN, False, OutcomeUnknown, "outcome_unknown"),
    ],
)
def test_libvirts_errors_by_what_they_mean(
    number: int, alive: bool, kind: type[VmtuneError], code: str
) -> None:
    error = translate(number, "libvirt's words", alive, "qemu:///system")
    assert isinstance(error, kind)
    assert error.problems[0].code == code
    assert "libvirt's words" in error.message


@pytest.mark.parametrize(
    ("uri", "number", "hint"),
    [
        ("qemu:///system", 38, "start libvirtd"),
        ("qemu+unix:///system?socket=/x", 38, "start libvirtd"),
        ("qemu+ssh://root@a/system", 38, "virsh -c 'qemu+ssh://root@a/system'"),
        ("qemu+tls://a/system", 7, "listens there"),
        ("qemu+tcp://a/system", 45, "credentials"),
    ],
)
def test_no_connection_says_what_to_do(uri: str, number: int, hint: str) -> None:
    (problem,) = unreachable(uri, number, "why").problems
    assert uri in problem.message
    assert problem.field == "uri"
    assert hint in problem.remedy


@pytest.mark.parametrize(
    "why",
    [
        "authentication unavailable: no polkit agent available to authenticate action "
        "'org.libvirt.unix.manage'",
        "Failed to connect socket to '/run/libvirt/libvirt-sock': Permission denied",
    ],
)
def test_a_user_who_is_not_let_in_is_told_the_group(why: str) -> None:
    (problem,) = unreachable("qemu:///system", 79, why).problems
    assert "may not use libvirt on this machine" in problem.message
    assert "usermod --append --groups libvirt" in problem.remedy


@pytest.mark.parametrize(
    ("uri", "peer"),
    [
        ("qemu:///system", ""),
        ("qemu+unix:///system?socket=/run/x", ""),
        ("qemu+tcp://localhost/system", ""),
        ("qemu+tcp://127.0.0.1:16509/system", ""),
        ("qemu+tcp://[::1]/system", ""),
        ("qemu+tls://b.example/system", "qemu+tls://b.example/system"),
        ("qemu+ssh://root@b:22/system?keyfile=/k&no_tty=1", "qemu+ssh://root@b:22/system"),
    ],
)
def test_a_peer_uri_is_derived_only_from_a_name_that_others_know(uri: str, peer: str) -> None:
    assert derive_peer_uri(uri) == peer
    assert LibvirtDriver(uri, peer_uri="qemu+tls://x/system").peer_uri == "qemu+tls://x/system"


@pytest.mark.parametrize(
    ("uri", "opened"),
    [
        ("qemu:///system", "qemu:///system"),
        ("qemu+ssh://a/system", "qemu+ssh://a/system?no_tty=1"),
        ("qemu+ssh://a/system?keyfile=/k", "qemu+ssh://a/system?keyfile=/k&no_tty=1"),
        ("qemu+ssh://a/system?no_tty=0", "qemu+ssh://a/system?no_tty=0"),
    ],
)
def test_ssh_is_not_let_ask(uri: str, opened: str) -> None:
    assert without_questions(uri) == opened


def job(id: str, status: str = "running") -> tuple[Any, ...]:
    """As libvirt passes on what QEMU says of a job."""
    return ("JOB_STATUS_CHANGE", 1, 2, json.dumps({"id": id, "status": status}))


@pytest.mark.parametrize(
    ("name", "details", "kind", "detail"),
    [
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (2, 0), EventKind.VM_STATE, VmState.RUNNING.value),
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (2, 1), EventKind.VM_STATE, VmState.INCOMING.value),
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (3, 1), EventKind.VM_STATE, VmState.PAUSED.value),
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (5, 1), EventKind.VM_STATE, VmState.SHUT_OFF.value),
        ("VIR_DOMAIN_EVENT_ID_LIFECYCLE", (5, 3), EventKind.VM_STATE, VmState.MIGRATED.value),
        ("VIR_DOMAIN_EVENT_ID_MIGRATION_ITERATION", (4,), EventKind.MIGRATION_ITERATION, "4"),
        ("VIR_DOMAIN_EVENT_ID_JOB_COMPLETED", ({},), EventKind.MIGRATION_STATUS, "job ended"),
        (
            "MIGRATION",
            ("MIGRATION", 1, 2, json.dumps({"status": "active"})),
            EventKind.MIGRATION_STATUS,
            "active",
        ),
        ("JOB_STATUS_CHANGE", job("drive-ide0-0-0"), EventKind.DISK_COPY, "drive-ide0-0-0"),
    ],
)
def test_events(name: str, details: tuple[Any, ...], kind: EventKind, detail: str) -> None:
    assert read_event(name, VM, details) == DriverEvent(kind, VM, detail)


@pytest.mark.parametrize(
    "details", [job("copy-vda-libvirt-3-format"), job("vmtune-copy-disk0"), job("drive-x", "ready")]
)
def test_other_jobs_and_what_a_copy_does_later_are_no_events(details: tuple[Any, ...]) -> None:
    assert read_event("JOB_STATUS_CHANGE", VM, details) is None


def test_a_definition_is_no_event() -> None:
    assert read_event("VIR_DOMAIN_EVENT_ID_LIFECYCLE", VM, (0, 0)) is None


def test_totals_are_those_of_a_migration_only() -> None:
    job = {
        "operation": 4,
        "time_elapsed": 1200,
        "downtime": 80,
        "setup_time": 3,
        "memory_processed": 5000,
        "memory_iteration": 4,
    }
    totals = read_totals(job)
    assert totals is not None
    assert (totals.total_time_ms, totals.downtime_ms, totals.setup_time_ms) == (1200, 80, 3)
    assert (totals.transferred_bytes, totals.iterations) == (5000, 4)
    assert read_totals({**job, "operation": 2}) is None
    assert read_totals({}) is None


@pytest.mark.parametrize(
    ("owner", "number"),
    [("iothread1", 1), ("iothread12", 12), ("io1", 0), ("7", 0), ("iothread", 0)],
)
def test_iothreads_by_libvirts_number(owner: str, number: int) -> None:
    assert iothread_number(owner) == number


def test_without_libvirt_python_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import: Callable[..., Any] = builtins.__import__

    def no_libvirt(name: str, *rest: Any, **more: Any) -> Any:
        if name == "libvirt":
            raise ImportError("No module named 'libvirt'")
        return real_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", no_libvirt)
    with pytest.raises(SetupError) as missing:
        libvirt_library.load_library.__wrapped__()
    assert "libvirt-dev" in missing.value.problems[0].remedy


class LibvirtError(Exception):
    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.get_error_code = lambda: number


class FakeRaw:
    """A connection of libvirt-python's, as far as the link uses it."""

    def __init__(self, domain: object = None) -> None:
        self._domain = domain
        self.alive = True
        self.by_proxy = False
        self.looked_up = 0
        self.was_closed = threading.Event()
        self.on_close: Callable[..., None] = lambda *_: None

    def isAlive(self) -> int:  # noqa: N802 - libvirt's name
        return int(self.alive or self.by_proxy)

    def registerCloseCallback(self, call: Callable[..., None], _: object) -> None:  # noqa: N802
        self.on_close = call

    def unregisterCloseCallback(self) -> None:  # noqa: N802
        pass

    def domainEventRegisterAny(self, *_: object) -> None:  # noqa: N802
        pass

    def lookupByUUIDString(self, _: str) -> object:  # noqa: N802
        self.looked_up += 1
        return self._domain

    def close(self) -> None:
        self.was_closed.set()

    def getHostname(self) -> str:  # noqa: N802
        if not self.alive:
            raise LibvirtError(38, "Cannot recv data: Connection reset by peer")
        return "a"


class Host:
    """Hands out connections to a daemon that can be ended."""

    def __init__(self) -> None:
        self.opened: list[FakeRaw] = []
        self.running = True
        self.domain: object = None
        names = ("LIFECYCLE", "MIGRATION_ITERATION", "JOB_COMPLETED")
        constants = {f"VIR_DOMAIN_EVENT_ID_{name}": 0 for name in names}
        libvirt = SimpleNamespace(libvirtError=LibvirtError, **constants)
        qemu = SimpleNamespace(qemuMonitorEventRegister=lambda *_: 0)
        self.library = Library(libvirt, qemu)  # type: ignore[arg-type]  # stands for modules

    def open(self, uri: str) -> Connection:
        if not self.running:
            raise HostUnreachable(f"no connection to {uri}")
        self.opened.append(FakeRaw(self.domain))
        return Connection(self.library, uri, self.opened[-1])

    def end_connection(self) -> None:
        self.opened[-1].alive = False

    def end_behind_proxy(self) -> None:
        """virtqemud ends; virtproxyd, to which the connection is, does not."""
        self.opened[-1].by_proxy = True
        self.end_connection()


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


class TestMonitor:
    """What a command ends with when there is no QEMU, or no longer."""

    @staticmethod
    async def refusal(command: str, number: int, active: bool) -> VmtuneError:
        def monitor(*_: object) -> str:
            raise LibvirtError(number, "domain is not running")

        host = Host()
        host.library.qemu.qemuMonitorCommand = monitor
        host.domain = SimpleNamespace(isActive=lambda: int(active))
        link = Link("x", host.open)
        try:
            with pytest.raises(VmtuneError) as refused:
                await LibvirtMonitor(link, VM).execute(command)
        finally:
            await link.close()
        return refused.value

    @pytest.mark.parametrize("command", ["query-migrate", "migrate-set-parameters"])
    @pytest.mark.parametrize("active", [True, False])
    async def test_a_command_that_was_never_sent_is_refused(
        self, command: str, active: bool
    ) -> None:
        """libvirt says so for a while before it says that the VM is not active."""
        error = await self.refusal(command, libvirt_errors.OPERATION_INVALID, active)
        assert isinstance(error, CommandRefused)
        assert error.problems[0].code == NOT_RUNNING

    async def test_a_change_that_qemu_died_of_may_have_been_made(self) -> None:
        error = await self.refusal("migrate-set-parameters", 1, active=False)
        assert isinstance(error, OutcomeUnknown)

    async def test_a_question_that_qemu_died_of_has_no_answer(self) -> None:
        error = await self.refusal("query-migrate", 1, active=False)
        assert error.problems[0].code == NOT_RUNNING

    async def test_the_vm_is_looked_up_once_for_a_connection(self) -> None:
        """And again where libvirt has refused a command of it."""
        host = Host()
        refuses = False

        def monitor(*_: object) -> str:
            if refuses:
                raise LibvirtError(libvirt_errors.OPERATION_TIMEOUT, "cannot acquire the lock")
            return '{"return": {}}'

        host.library.qemu.qemuMonitorCommand = monitor
        host.domain = SimpleNamespace(isActive=lambda: 1)
        link = Link("x", host.open)
        lent = LibvirtMonitor(link, VM)
        for _ in range(3):
            assert await lent.execute("query-migrate") == {}
        assert host.opened[0].looked_up == 1
        refuses = True
        with pytest.raises(VmtuneError):
            await lent.execute("query-migrate")
        refuses = False
        assert await lent.execute("query-migrate") == {}
        assert host.opened[0].looked_up == 2
        await link.close()

    async def test_libvirts_own_refusal_comes_as_it_is(self) -> None:
        error = await self.refusal("query-migrate", libvirt_errors.OPERATION_TIMEOUT, active=True)
        assert error.problems[0].code == "busy"


class TestLocalDaemon:
    """This process as the daemon behind a socket."""

    @staticmethod
    @contextmanager
    def listening(folder: Path) -> Iterator[Path]:
        path = folder / "sock"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            yield path

    def test_it_is_found_by_its_socket(self, tmp_path: Path) -> None:
        with self.listening(tmp_path) as path:
            daemon = find_local_daemon(f"qemu+unix:///system?socket={path}")
        assert daemon == LocalDaemon(os.getpid())

    def test_a_session_is_not_looked_for(self, tmp_path: Path) -> None:
        with self.listening(tmp_path) as path:
            assert find_local_daemon(f"qemu+unix:///session?socket={path}") is None

    def test_a_remote_one_has_no_process_here(self, tmp_path: Path) -> None:
        with self.listening(tmp_path) as path:
            assert find_local_daemon(f"qemu+tcp://b/system?socket={path}") is None

    def test_its_network_is_this_one(self) -> None:
        value = int(Path("/proc/sys/net/core/optmem_max").read_text())
        assert LocalDaemon(os.getpid()).optmem_max_bytes() == value

    def test_who_has_ended_tells_nothing(self) -> None:
        daemon = LocalDaemon(1 << 30)  # more than the kernel gives out
        assert daemon.can_lock_beyond_limits() is None
        assert daemon.optmem_max_bytes() is None
        assert daemon.qemu("guest", str(VM)) is None


class TestState:
    """virDomainState and its reason, as a state of vmtune's."""

    @staticmethod
    def status(state: tuple[int, int], statistics: int = 0) -> tuple[VmState, bool]:
        def job_info() -> list[int]:
            if statistics:
                raise LibvirtError(statistics, "only available on the source host")
            return [0]

        raw = SimpleNamespace(
            state=lambda _: list(state),
            UUIDString=lambda: str(VM),
            name=lambda: "guest",
            jobInfo=job_info,
        )
        status = Domain(Host().open("x"), raw).status()
        return status.state, status.arriving

    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            ((1, 1), VmState.RUNNING),
            ((3, 1), VmState.PAUSED),
            ((3, 2), VmState.PAUSED),
            ((5, 1), VmState.SHUT_OFF),
            ((5, 4), VmState.MIGRATED),
            ((6, 1), VmState.OTHER),
        ],
    )
    def test_a_vm_that_does_not_arrive(self, state: tuple[int, int], expected: VmState) -> None:
        assert self.status(state) == (expected, False)

    @pytest.mark.parametrize("state", [(3, 2), (3, 11)])
    def test_a_vm_that_arrives(self, state: tuple[int, int]) -> None:
        refused = libvirt_errors.OPERATION_UNSUPPORTED
        assert self.status(state, refused) == (VmState.INCOMING, True)

    def test_a_vm_that_runs_in_postcopy_still_arrives(self) -> None:
        refused = libvirt_errors.OPERATION_UNSUPPORTED
        assert self.status((1, 10), refused) == (VmState.RUNNING, True)
