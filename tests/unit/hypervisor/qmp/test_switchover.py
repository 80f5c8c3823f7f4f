"""The switchover of a migration that copies disks, in ways that real QEMUs rarely go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import pytest

from tests.support.simulated.fakes import NEWEST, VM, recording
from vmtune.errors import CommandRefused, OutcomeUnknown
from vmtune.hypervisor.protocol import MigrateOrder
from vmtune.hypervisor.qmp import copies
from vmtune.hypervisor.qmp.copies import Pair
from vmtune.model.migration.record import QemuStatus
from vmtune.testing.fake.driver import FakeDriver
from vmtune.testing.fake.qemu import FakeQemu, Fault, FaultKind, Network

NAME = Pair("disk0", "", "").name
DISK = {
    "device": "disk0",
    "inserted": {
        "node-name": "node0", "drv": "raw", "ro": False,
        "image": {"filename": "/x", "virtual-size": 1 << 20},
    },
}  # fmt: skip


class Copying(FakeQemu):
    """A QEMU with a disk.

    :ivar job: the state of the copy; empty where there is none.
    """

    job = ""
    error = ""
    exported = False

    def answer(self, command: str, arguments: Mapping[str, Any]) -> Any:
        told = _BLOCK.get(command)
        if told is None:
            return super().answer(command, arguments)
        self.commands.append((command, deepcopy(dict(arguments))))
        return told(self)

    def asked(self, *commands: str) -> list[str]:
        return [command for command, _ in self.commands if command in commands]

    def _jobs(self) -> list[dict[str, Any]]:
        return [{"id": NAME, "status": self.job, "error": self.error}] if self.job else []

    def _nodes(self) -> list[dict[str, Any]]:
        return [{"node-name": NAME}] if self.asked("blockdev-add") else []

    def _exports(self) -> list[dict[str, Any]]:
        return [{"id": NAME, "type": "nbd"}] if self.exported else []

    def _let(self, **fields: Any) -> dict[str, Any]:
        for name, value in fields.items():
            setattr(self, name, value)
        return {}

    def _goes_on(self) -> dict[str, Any]:
        if self.outgoing.status is not QemuStatus.PRE_SWITCHOVER:
            raise CommandRefused("Migration not in expected state")
        self.outgoing.status = QemuStatus.DEVICE
        return {}


_BLOCK: Mapping[str, Callable[[Copying], Any]] = {
    "query-block": lambda _: [deepcopy(DISK)],
    "query-jobs": Copying._jobs,
    "query-named-block-nodes": Copying._nodes,
    "query-block-exports": Copying._exports,
    "nbd-server-start": lambda _: {},
    "nbd-server-stop": lambda _: {},
    "block-export-add": lambda qemu: qemu._let(exported=True),
    "block-export-del": lambda qemu: qemu._let(exported=False),
    "blockdev-add": lambda _: {},
    "blockdev-del": lambda _: {},
    "blockdev-mirror": lambda qemu: qemu._let(job="ready"),
    "block-job-cancel": lambda _: {},
    "job-dismiss": lambda qemu: qemu._let(job=""),
    "migrate-continue": Copying._goes_on,
}


async def until(holds: Callable[[], object]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it does not come")


class Both:
    """A migration that waits with its switchover."""

    def __init__(self) -> None:
        network: Network = {}
        self.here = Copying(recording(NEWEST), VM, network=network, paced=True)
        self.there = Copying(recording(NEWEST), VM, network=network, incoming=True)
        self.source = FakeDriver([self.here], "a")
        self.destination = FakeDriver([self.there], "b")

    async def begun(self, job: str = "running") -> Any:
        order = MigrateOrder(VM, {"copy_storage": True}, {})
        handle = await self.source.start_migration(order, self.destination)
        await until(lambda: self.here.asked("migrate"))
        self.here.job, self.here.status = job, "finish-migrate"
        self.here.outgoing.status = QemuStatus.PRE_SWITCHOVER
        return handle


@pytest.fixture
def both() -> Both:
    return Both()


async def test_it_goes_on_once_the_copies_have_ended(both: Both) -> None:
    handle = await both.begun()
    await until(lambda: both.here.asked("block-job-cancel"))
    assert not both.here.asked("migrate-continue")
    both.here.job = "concluded"
    await until(lambda: both.here.asked("migrate-continue"))
    assert both.there.asked("nbd-server-stop")
    both.here.step()
    await handle.wait()
    assert both.here.asked("migrate-continue") == ["migrate-continue"]
    await both.source.close()


async def test_a_guest_whose_copies_do_not_end_runs_on(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link is down, and whoever waited for it would wait with the guest stopped."""
    monkeypatch.setattr(copies, "_DRAINS_WITHIN_S", 0.01)
    handle = await both.begun()
    await until(lambda: both.here.asked("migrate_cancel"))
    both.here.job = "concluded"
    with pytest.raises(CommandRefused, match="do not end within") as ended:
        await handle.wait()
    assert ended.value.problems[0].code == "copy_failed"
    assert not both.here.asked("migrate-continue")
    await both.source.close()


async def test_so_does_one_whose_copy_has_failed(both: Both) -> None:
    both.here.error = "No space left on device"
    handle = await both.begun("concluded")
    with pytest.raises(CommandRefused, match="No space left"):
        await handle.wait()
    assert both.here.asked("migrate_cancel") == ["migrate_cancel"]
    await both.source.close()


async def test_so_does_one_whose_destination_cannot_be_told(both: Both) -> None:
    handle = await both.begun("running")
    both.there.die()
    both.here.job = "concluded"
    with pytest.raises(CommandRefused, match="cancelled at its switchover"):
        await handle.wait()
    assert both.here.asked("migrate_cancel") == ["migrate_cancel"]
    await both.source.close()


async def test_what_qemu_does_not_take_it_is_told_again(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_DRAINS_WITHIN_S", 0.01)
    both.here.faults.append(Fault(FaultKind.REFUSE, "migrate_cancel", text="not now"))
    handle = await both.begun()
    await until(lambda: both.here.asked("migrate_cancel"))
    both.here.job = "concluded"
    with pytest.raises(CommandRefused, match="do not end within"):
        await handle.wait()
    await both.source.close()


async def test_one_that_was_aborted_meanwhile_is_cancelled(both: Both) -> None:
    handle = await both.begun()
    await until(lambda: both.here.asked("block-job-cancel"))
    await both.source.abort_migration(VM)
    both.here.job = "concluded"
    with pytest.raises(CommandRefused) as ended:
        await handle.wait()
    assert ended.value.problems[0].code == "migration_cancelled"
    await both.source.close()


async def test_where_the_connection_was_lost_the_copies_stay_and_the_next_look_goes_on(
    both: Both,
) -> None:
    """Without its copies nobody could end the guest's wait without losing what it has written."""
    handle = await both.begun()
    await until(lambda: both.here.asked("block-job-cancel"))
    both.here.lose()
    with pytest.raises(OutcomeUnknown):
        await handle.wait()
    assert not both.here.asked("blockdev-del")
    assert not any(arguments.get("force") for _, arguments in both.here.commands)
    assert (await both.source.migration(VM)).status is QemuStatus.PRE_SWITCHOVER
    both.here.job = "concluded"
    await until(lambda: both.here.asked("migrate-continue"))
    await both.source.close()


async def test_one_that_nobody_follows_any_more_is_cancelled_where_its_copies_do_not_end(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_DRAINS_WITHIN_S", 0.01)
    both.here.commands.append(("blockdev-add", {}))  # by an earlier process
    both.here.job, both.here.outgoing.status = "running", QemuStatus.PRE_SWITCHOVER
    both.here.outgoing.uri = "tcp:b:1"
    await both.source.migration(VM)
    await until(lambda: both.here.asked("migrate_cancel"))
    assert not both.here.asked("migrate-continue")
    await both.source.close()


class Exporter:
    """The monitor of a QEMU that exports what it is told to, besides what others have it do.

    :param stuck: what was exported is never gone.
    """

    def __init__(self, *others: tuple[str, str], refuses: str = "", stuck: bool = False) -> None:
        self._others, self._refuses, self._stuck = others, refuses, stuck
        self._ours: list[tuple[str, str]] = []
        self.asked: list[str] = []

    async def execute(self, command: str, arguments: Mapping[str, Any] | None = None) -> Any:
        self.asked.append(command)
        if command == self._refuses:
            raise CommandRefused("no")
        if command == "block-export-add":
            assert arguments is not None
            self._ours.append((arguments["id"], arguments["type"]))
        if command == "block-export-del" and not self._stuck:
            self._ours.clear()
        if command == "query-block-exports":
            return [{"id": id, "type": kind} for id, kind in (*self._others, *self._ours)]
        return {}


PAIRS = [Pair("disk0", "node0", "node0")]


async def test_a_server_that_exports_nothing_is_stopped_again() -> None:
    monitor = Exporter(refuses="block-export-add")
    with pytest.raises(CommandRefused):
        await copies.export(monitor, PAIRS, "127.0.0.1", None, "")
    assert monitor.asked[-1] == "nbd-server-stop"


@pytest.mark.parametrize(("kind", "stops"), [("vhost-user-blk", True), ("nbd", False)])
async def test_what_others_export_is_not_waited_for(kind: str, stops: bool) -> None:
    monitor = Exporter(("theirs", kind))
    await copies.export(monitor, PAIRS, "127.0.0.1", None, "")
    await copies.unexport(monitor)
    assert ("nbd-server-stop" in monitor.asked) is stops


async def test_another_s_server_is_not_stopped() -> None:
    monitor = Exporter()
    await copies.unexport(monitor)
    assert monitor.asked == ["query-block-exports"]


async def test_an_export_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_ENDS_WITHIN_S", 0.01)
    monitor = Exporter(stuck=True)
    await copies.export(monitor, PAIRS, "127.0.0.1", None, "")
    with pytest.raises(OutcomeUnknown, match="exports of disks"):
        await copies.unexport(monitor)
