"""What is particular to a folder of QMP sockets, with real QEMUs."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest

from tests.support.qemus import qemu
from vmtune.errors import CommandRefused, HostUnreachable, MonitorBusy, NotFound
from vmtune.hypervisor.protocol import EventKind, MigrateOrder
from vmtune.hypervisor.qmp.driver import QmpDriver
from vmtune.model.host.facts import Connection, VmState
from vmtune.model.migration.record import QemuStatus
from vmtune.model.plan.changes import Change
from vmtune.testing.fake.driver import FakeDriver

VM = UUID("5f5b1f5e-6c0e-4c8f-9d1a-0d9f6a1c7e10")
BARE = ("-machine", "none", "-nodefaults", "-display", "none")
FAST = {"max_bandwidth_bytes_per_s": 0}


@pytest.fixture(params=[pytest.param(b, id=b.label) for b in qemu.builds()])
def build(request: pytest.FixtureRequest) -> qemu.Build:
    found: qemu.Build = request.param
    if found.why_not:
        pytest.skip(found.why_not)
    return found


@pytest.fixture
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
async def drive() -> AsyncIterator[Callable[..., QmpDriver]]:
    """Makes drivers of folders, which are closed after the test."""
    drivers: list[QmpDriver] = []

    def made(folder: Path, migration_address: str = "127.0.0.1") -> QmpDriver:
        drivers.append(QmpDriver(f"qmp+unix://{folder}", migration_address, 1.0))
        return drivers[-1]

    yield made
    for driver in drivers:
        await driver.close()


@pytest.fixture
def driver(drive: Callable[..., QmpDriver], tmp_path: Path) -> QmpDriver:
    return drive(tmp_path)


async def test_a_qemu_without_uuid_is_known_by_its_name(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, drive: Callable[..., QmpDriver]
) -> None:
    drivers = []
    for folder in ("a", "b"):
        processes.enter_context(qemu.running(build, tmp_path / folder, "web", machine=BARE))
        drivers.append(drive(tmp_path / folder))
    (here,), (there,) = [await driver.list_vms() for driver in drivers]
    assert here.name == "web"
    assert here.uuid == there.uuid != UUID(int=0)


async def test_sockets_left_behind_are_passed_over(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "left.sock"))
    left.close()
    (tmp_path / "file.qmp").write_text("no socket")
    processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=BARE))
    assert [vm.uuid for vm in await driver.list_vms()] == [VM]
    with pytest.raises(NotFound):
        await driver.vm_facts(UUID(int=1))


async def test_a_folder_that_is_not_there_is_an_unreachable_host() -> None:
    driver = QmpDriver("qmp+unix:///nonexistent/folder")
    for call in (driver.list_vms(), driver.host_facts(), driver.vm_facts(VM)):
        with pytest.raises(HostUnreachable) as unreachable:
            await call
        assert unreachable.value.problems[0].field == "uri"
        assert unreachable.value.problems[0].remedy


async def test_an_empty_folder_is_a_host_without_vms(driver: QmpDriver) -> None:
    assert await driver.list_vms() == []
    facts = await driver.host_facts()
    assert (facts.connection, facts.migration_address) == (Connection.QMP, "127.0.0.1")


async def test_a_qemu_whose_monitor_is_taken_is_listed_by_its_command_line(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    running = processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=BARE))
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(str(running.socket))
        other.recv(1)
        (vm,) = await driver.list_vms()
        assert (vm.uuid, vm.name, vm.state) == (VM, "web", VmState.OTHER)
        for call in (driver.read(VM, ["multifd"]), driver.write(VM, [Change("multifd", True)])):
            with pytest.raises(MonitorBusy):
                await call
    assert (await driver.list_vms())[0].state is VmState.RUNNING


async def test_a_monitor_whose_queue_is_full_is_taken(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    running = processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=BARE))
    with ExitStack() as others:
        for _ in range(50):
            other = others.enter_context(socket.socket(socket.AF_UNIX))
            other.setblocking(False)
            if other.connect_ex(str(running.socket)) == errno.EAGAIN:
                break
        else:
            pytest.fail("the queue takes any number of clients")
        with pytest.raises(MonitorBusy):
            await driver.vm_facts(VM)


async def test_an_event_before_the_greeting_is_no_stranger(
    tmp_path: Path, driver: QmpDriver
) -> None:
    """QEMU sends its first events also to a client that it has not greeted yet."""
    event = {"event": "RESUME", "timestamp": {"seconds": 1, "microseconds": 1}}
    greeting = {"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 22}, "package": ""},
                        "capabilities": []}}  # fmt: skip
    first_lines = [event, greeting]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps(first_lines.pop(0)).encode() + b"\n")
        replies = {"query-uuid": {"UUID": str(VM)}, "query-name": {"name": "web"},
                   "query-status": {"status": "running"}}  # fmt: skip
        while message := await reader.read(4096):  # one command at a time
            command = json.loads(message)
            reply = {"return": replies.get(command["execute"], {}), "id": command.get("id")}
            writer.write(json.dumps(reply).encode() + b"\n")
        writer.close()

    async with await asyncio.start_unix_server(serve, tmp_path / "web.sock"):
        assert [vm.uuid for vm in await driver.list_vms()] == [VM]
        await driver.close()
    assert first_lines == []


async def test_a_qemu_that_hangs_costs_its_timeout_and_not_more(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    running = processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=BARE))
    os.kill(running.pid, signal.SIGSTOP)
    try:
        answers = await asyncio.gather(
            *(driver.vm_facts(VM) for _ in range(20)), return_exceptions=True
        )
    finally:
        os.kill(running.pid, signal.SIGCONT)
    assert {type(answer) for answer in answers} == {MonitorBusy}
    assert (await driver.vm_facts(VM)).name == "web"


async def test_a_qemu_that_was_started_anew_is_met_anew(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    first = processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=BARE))
    await driver.write(VM, [Change("main_loop_thread_pool_max", 8)])
    assert (await driver.vm_facts(VM)).main_loop
    first.kill()
    first.socket.unlink()
    machine = (*BARE, "-object", "iothread,id=io")
    processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=machine))
    facts = await driver.vm_facts(VM)
    assert facts.iothreads == ("io",)
    assert not facts.main_loop
    assert facts.readings["main_loop_thread_pool_max"].value == 64


async def test_the_limits_of_a_local_qemu_are_seen(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    running = processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=BARE))
    facts = await driver.vm_facts(VM)
    assert facts.pid == running.pid
    assert facts.locked_memory_limit_bytes is not None
    assert facts.may_lock_memory is not None
    assert facts.readings["locked_memory_bytes"].value == facts.locked_memory_limit_bytes


@pytest.mark.skipif(not os.access("/dev/kvm", os.W_OK), reason="/dev/kvm cannot be used here")
async def test_a_dirty_ring_is_seen_and_lets_the_dirty_limit_be_set(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    machine = (
        "-machine", "pc", "-accel", "kvm,dirty-ring-size=4096", "-cpu", "qemu64",
        "-m", "64", "-nodefaults", "-display", "none", "-S",
    )  # fmt: skip
    processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=machine))
    facts = await driver.vm_facts(VM)
    assert facts.kvm
    assert facts.dirty_ring_size_entries == 4096
    if "dirty-limit" not in facts.capabilities:
        return
    await driver.write(VM, [Change("dirty_limit", True)])
    assert (await driver.read(VM, ["dirty_limit"]))["dirty_limit"].value is True


async def test_a_migration_over_a_unix_socket_leaves_no_socket(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, drive: Callable[..., QmpDriver]
) -> None:
    processes.enter_context(qemu.running(build, tmp_path / "a", "web", VM))
    processes.enter_context(
        qemu.running(build, tmp_path / "b", "web", VM, extra=("-incoming", "defer"))
    )
    source = drive(tmp_path / "a")
    destination = drive(tmp_path / "b", "")
    order = MigrateOrder(VM, {**FAST, "multifd": True, "multifd_channels": 3}, {})
    await (await source.start_migration(order, destination)).wait()
    async with asyncio.timeout(60):
        while True:
            (there,) = await destination.list_vms()
            if there.state is VmState.RUNNING:
                break
            await asyncio.sleep(0.01)
    sockets = [p.name for p in (tmp_path / "b").iterdir() if stat.S_ISSOCK(p.stat().st_mode)]
    assert sockets == ["web.sock"]


async def test_a_migration_takes_the_addresses_that_it_is_given(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, drive: Callable[..., QmpDriver]
) -> None:
    processes.enter_context(qemu.running(build, tmp_path / "a", "web", VM))
    waiting = processes.enter_context(
        qemu.running(build, tmp_path / "b", "web", VM, extra=("-incoming", "defer"))
    )
    source, destination = drive(tmp_path / "a"), drive(tmp_path / "b", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.3", 0))
        port = free.getsockname()[1]
    addresses = {"migrate_uri": f"tcp://127.0.0.3:{port}", "listen_address": "127.0.0.3"}
    order = MigrateOrder(VM, {**addresses, "max_bandwidth_bytes_per_s": 1 << 16}, {})
    handle = await source.start_migration(order, destination)
    async with asyncio.timeout(60):
        while True:
            if (await source.migration(VM)).status is QemuStatus.ACTIVE:
                break
            await asyncio.sleep(0.01)
    assert connected_to(waiting.pid) == {f"127.0.0.3:{port}"}
    await source.abort_migration(VM)
    with pytest.raises(CommandRefused):
        await handle.wait()


def connected_to(pid: int) -> set[str]:
    """The own addresses of a process's TCP connections."""
    command = ["ss", "-Htnp", "state", "established"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[2] for line in lines if f"pid={pid}," in line}


async def test_a_qemu_that_does_not_wait_refuses_and_both_are_as_before(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, drive: Callable[..., QmpDriver]
) -> None:
    drivers = []
    for folder in ("a", "b"):
        processes.enter_context(qemu.running(build, tmp_path / folder, "web", VM))
        drivers.append(drive(tmp_path / folder))
    before = [(await d.vm_facts(VM)).readings for d in drivers]
    with pytest.raises(CommandRefused) as refused:
        await drivers[0].start_migration(MigrateOrder(VM, {"multifd": True}, {}), drivers[1])
    assert refused.value.problems[0].code == "no_incoming_qemu"
    assert [(await d.vm_facts(VM)).readings for d in drivers] == before


async def test_a_start_that_qemu_refuses_is_told_and_put_back(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, drive: Callable[..., QmpDriver]
) -> None:
    """The destination cannot listen on an address that is not its machine's."""
    processes.enter_context(qemu.running(build, tmp_path / "a", "web", VM))
    processes.enter_context(
        qemu.running(build, tmp_path / "b", "web", VM, extra=("-incoming", "defer"))
    )
    source = drive(tmp_path / "a")
    destination = drive(tmp_path / "b", "192.0.2.1")
    before = [(await d.vm_facts(VM)).readings for d in (source, destination)]
    order = MigrateOrder(VM, {"multifd": True, "multifd_channels": 7}, {"announce_rounds": 9})
    with pytest.raises(CommandRefused, match=r"192\.0\.2\.1") as refused:
        await source.start_migration(order, destination)
    assert [(await d.vm_facts(VM)).readings for d in (source, destination)] == before
    assert refused.value.problems[0].code == "cannot_listen"
    assert (await source.migration(VM)).status is QemuStatus.NONE


async def test_a_migration_to_another_kind_of_host_is_refused(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    class Elsewhere:
        """A host that is no folder of sockets."""

    processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=BARE))
    with pytest.raises(CommandRefused) as refused:
        await driver.start_migration(
            MigrateOrder(VM, {}, {}),
            Elsewhere(),  # type: ignore[arg-type]  # on purpose
        )
    assert refused.value.problems[0].code == "destination_not_direct"


async def test_events_of_a_vm_that_stops_and_goes_on(
    build: qemu.Build, processes: ExitStack, tmp_path: Path, driver: QmpDriver
) -> None:
    processes.enter_context(qemu.running(build, tmp_path, "web", VM, machine=BARE))
    await driver.vm_facts(VM)
    events = driver.events()
    monitor = next(iter(driver._folder.qemus)).monitor
    await monitor.execute("stop")
    await monitor.execute("cont")
    heard = [await anext(events) for _ in range(2)]
    assert [(e.kind, e.detail) for e in heard] == [
        (EventKind.VM_STATE, "paused"),
        (EventKind.VM_STATE, "running"),
    ]
    await events.aclose()


def test_the_fake_is_a_qmp_driver() -> None:
    """What the fake shows of migrations and faults is shown of the code for real QEMUs."""
    own = {name for name in vars(FakeDriver) if not name.startswith("__")}
    of_the_process = {"vm_facts", "read", "_ring"}  # a command line, which no fake has
    of_the_machine = {"host_facts", "empties_rings_in_part"}
    assert own <= {"_sockets", "_link"} | of_the_machine | of_the_process
