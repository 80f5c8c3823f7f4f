"""A VM that leaves: libvirt is asked once a second for its state, QEMU at each look."""

from __future__ import annotations

from uuid import UUID

import pytest

from vmtune.errors import CommandRefused, NotFound
from vmtune.hypervisor.libvirt.calls.domain import VmStatus
from vmtune.hypervisor.libvirt.driver import LibvirtDriver
from vmtune.hypervisor.libvirt.migrating.leaving import Leaving
from vmtune.hypervisor.libvirt.monitor import NOT_RUNNING
from vmtune.model.host.facts import VmState
from vmtune.model.migration.record import QemuStatus

VM = UUID(int=7)
RAM = {
    "total": 1 << 28, "remaining": 1 << 20, "transferred": 1 << 20, "dirty-sync-count": 2,
    "normal": 10, "duplicate": 1, "page-size": 4096, "mbps": 8.0, "dirty-pages-rate": 3,
}  # fmt: skip


class Made:
    """A driver whose libvirt and QEMU are made, and a clock that stands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.asked = 0
        self.reply: dict[str, object] = {"status": "active", "ram": RAM}
        self.refusal: CommandRefused | None = None
        self.driver = LibvirtDriver("test:///none")
        self.driver._leaving = Leaving(lambda: self.now)
        monkeypatch.setattr(self.driver, "_status", self._status)
        monkeypatch.setattr(self.driver, "_monitor", lambda vm: self)
        monkeypatch.setattr(self.driver, "migrating_ms", self._no_job)

    async def _status(self, vm: UUID) -> tuple[VmStatus, int]:
        self.asked += 1
        return VmStatus(vm, "web1", VmState.RUNNING, arriving=False), 1

    async def _no_job(self, vm: UUID) -> None:
        """libvirt has none."""

    async def execute(self, command: str) -> dict[str, object]:
        if self.refusal is not None:
            raise self.refusal
        return self.reply


async def test_libvirt_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Made(monkeypatch)
    for it.now in (0.0, 0.1, 0.5, 0.9):
        assert (await it.driver.migration(VM)).status is QemuStatus.ACTIVE
    assert it.asked == 1
    it.now = 1.0
    await it.driver.migration(VM)
    assert it.asked == 2


@pytest.mark.parametrize("status", ["completed", "postcopy-active", "cancelled"])
async def test_and_at_each_look_once_it_has_ended(
    monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    it = Made(monkeypatch)
    await it.driver.migration(VM)
    it.reply = {"status": status, "ram": RAM}
    await it.driver.migration(VM)
    assert it.asked == 1
    await it.driver.migration(VM)
    assert it.asked == 2


async def test_one_that_is_gone_meanwhile_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Made(monkeypatch)
    await it.driver.migration(VM)
    it.refusal = CommandRefused("it does not run", code=NOT_RUNNING)
    with pytest.raises(NotFound, match="web1"):
        await it.driver.migration(VM)
    it.refusal = None
    await it.driver.migration(VM)
    assert it.asked == 2
